#pragma once
// What a verb of kubectl-kwatt is made of. Each verb has one file with one function that declares
// its options and says what it does:
//
//   void add_wake(CLI::App& app, Chosen& chosen) {
//     auto options = std::make_shared<Options>();
//     CLI::App* verb = add_verb(app, "wake", "Wake a node", "  kubectl kwatt wake node-7\n");
//     verb->add_option("NODE", options->node, "The node")->required();
//     verb->callback([&chosen, options] {
//       chosen.work = [options](Session& session) { return wake(session, *options); };
//     });
//   }
//
// and is listed in program.cpp.
#include <functional>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/clock.hpp"
#include "kube/client.hpp"
#include "kube/fetch.hpp"

namespace kwatt::cli {

// Exit statuses of the program.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // refused, not found, no connection, a test not passed
inline constexpr int kUsage = 2;   // the command line is wrong

// What a verb works with. Outlives its work.
struct Session {
  kube::Client& client;
  const Clock& clock;
  std::ostream& out;           // the answer
  std::ostream& err;           // progress and warnings
  std::string namespace_name;  // of the kubeconfig's context
  kube::Fetch fetch;           // what is no object: services behind the API server
  kube::Send send;             // the same with any method
};

// Does what was asked and returns the exit status; an error is shown as one sentence, status 1.
using Work = std::function<kube::Task<Result<int>>(Session&)>;

// What the command line asked for: `work`, or something that needs no API server.
struct Chosen {
  Work work;
  std::function<int(std::ostream& out)> local;
  // The same for what may fail: an error is shown as one sentence, status 1.
  std::function<Result<int>(std::ostream& out, const Clock& clock)> offline;
  std::function<int(std::ostream& out, std::ostream& err)> tool;  // the same with progress
};

// A subcommand whose help ends with `examples` (indented lines).
CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& description,
                   const std::string& examples);

// The verbs, each in the file of its name.
void add_why(CLI::App& app, Chosen& chosen);
void add_status(CLI::App& app, Chosen& chosen);
void add_history(CLI::App& app, Chosen& chosen);
void add_estimate(CLI::App& app, Chosen& chosen);
void add_wake_test(CLI::App& app, Chosen& chosen);
void add_override_verbs(CLI::App& app, Chosen& chosen);  // wake, hold, release
void add_exclude_verbs(CLI::App& app, Chosen& chosen);   // exclude, include
void add_suspend_verbs(CLI::App& app, Chosen& chosen);   // suspend, resume
void add_recommend_site(CLI::App& app, Chosen& chosen);
void add_carbon(CLI::App& app, Chosen& chosen);
void add_simulate_verbs(CLI::App& app, Chosen& chosen);  // simulate, compare
void add_record(CLI::App& app, Chosen& chosen);
void add_reasons(CLI::App& app, Chosen& chosen);
void add_completion(CLI::App& app, Chosen& chosen);
void add_version(CLI::App& app, Chosen& chosen);

}  // namespace kwatt::cli
