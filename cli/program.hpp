#pragma once
// kubectl-kwatt: finds the verb, connects, runs it, and says what went wrong.
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/clock.hpp"
#include "cli/verb.hpp"
#include "kube/client.hpp"

namespace kwatt::cli {

struct Connection {
  std::unique_ptr<kube::Client> client;
  std::string namespace_name;
  kube::Fetch fetch;
  kube::Send send;
};
using Connect = std::function<Result<Connection>(boost::asio::any_io_executor,
                                                 const kube::FindConfig&, const Clock&)>;
// The real one: --kubeconfig, $KUBECONFIG, in the cluster, ~/.kube/config.
Result<Connection> connect(boost::asio::any_io_executor executor, const kube::FindConfig& where,
                           const Clock& clock);

// What the program sees of the world; tests pass their own.
struct World {
  std::ostream& out;
  std::ostream& err;
  const Clock& clock;
  Connect connect;
};

// `arguments` without the program's name. Returns the exit status (verb.hpp). Ctrl-C ends it with
// status 130.
int run(const std::vector<std::string>& arguments, World& world);

// Connects and runs `work` to its end; errors go to world.err.
int perform(const Work& work, const kube::FindConfig& where, World& world);

// All verbs and global options on `app`; for run() and for the completion.
void declare(CLI::App& app, kube::FindConfig& where, Chosen& chosen);

}  // namespace kwatt::cli
