#include "cli/complete.hpp"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "cli/read.hpp"

namespace kwatt::cli {
namespace {

using Names = Expected::Names;

// cobra's directive "no file names".
constexpr const char* kDirective = ":4";

constexpr const char* kBashFunction =
    R"BASH(# bash completion of kubectl-kwatt; for kubectl itself put kubectl_complete-kwatt into PATH.
_kubectl_kwatt() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == :* ]] || COMPREPLY+=("$line")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_kwatt kubectl-kwatt
)BASH";

const CLI::App* verb_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (verb->check_name(name)) return verb;
  }
  return nullptr;
}

const CLI::Option* option_named(const CLI::App& app, const std::string& word) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_name(word)) return option;
  }
  return nullptr;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// What the value of an option or positional may be.
Expected values_of(const CLI::Option& option) {
  const std::string name = option.get_positional() ? option.get_name(true) : option.get_name();
  if (name == "NODE") return {{}, Names::nodes};
  if (name == "POLICY") return {{}, Names::policies};
  if (name == "WHAT") return {{}, Names::subjects};
  if (name == "COMMAND") return {{"pc"}, Names::none};
  if (name == "SHELL") return {{"bash"}, Names::none};
  if (option.check_name("--policy")) return {{}, Names::policies};
  // "table|json|yaml": one of these words.
  Expected expected;
  std::istringstream words(option.get_type_name());
  for (std::string word; std::getline(words, word, '|');) expected.words.push_back(word);
  if (expected.words.size() < 2) return {};
  std::sort(expected.words.begin(), expected.words.end());
  return expected;
}

kube::Task<Result<int>> print_names(Session& session, Names names, std::string prefix) {
  const auto print = [&](const std::string& candidate) {
    if (candidate.starts_with(prefix)) session.out << candidate << "\n";
  };
  const bool subjects = names == Names::subjects;
  if (names == Names::nodes || subjects) {
    auto nodes = co_await read_all<api::Node>(session, kube::resources::nodes());
    if (!nodes) co_return nodes.error();
    for (const auto& node : *nodes) print((subjects ? "node/" : "") + node.meta.name);
  }
  if (names == Names::policies || subjects) {
    auto policies =
        co_await read_all<api::EnergyPolicy>(session, kube::resources::energy_policies());
    if (!policies) co_return policies.error();
    for (const auto& policy : *policies) print((subjects ? "policy/" : "") + policy.meta.name);
  }
  if (subjects && prefix.starts_with("pod/")) {
    auto pods = co_await read_all<api::Pod>(session, kube::resources::pods());
    if (!pods) co_return pods.error();
    for (const auto& pod : *pods) print("pod/" + pod.key());
  }
  co_return kDone;
}

}  // namespace

Expected expected_after(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* verb = nullptr;
  const CLI::Option* open = nullptr;  // an option that still waits for its value
  std::size_t positionals = 0;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (open != nullptr) {
      open = nullptr;
    } else if (word.starts_with("-")) {
      const CLI::Option* option = verb == nullptr ? nullptr : option_named(*verb, word);
      if (option == nullptr) option = option_named(app, word);
      if (option != nullptr && takes_value(*option)) open = option;
    } else if (verb == nullptr) {
      verb = verb_named(app, word);
      if (verb == nullptr) return {};
    } else {
      ++positionals;
    }
  }
  if (open != nullptr) return values_of(*open);
  const std::string last = words.empty() ? std::string() : words.back();
  Expected expected;
  if (last.starts_with("-")) {
    for (const CLI::App* level : {verb, &app}) {
      if (level == nullptr) continue;
      for (const CLI::Option* option : level->get_options()) {
        for (const std::string& name : option->get_lnames()) expected.words.push_back("--" + name);
      }
    }
    std::sort(expected.words.begin(), expected.words.end());
    expected.words.erase(std::unique(expected.words.begin(), expected.words.end()),
                         expected.words.end());
    return expected;
  }
  if (verb == nullptr) {
    for (const CLI::App* one : app.get_subcommands({})) expected.words.push_back(one->get_name());
    return expected;
  }
  for (const CLI::Option* option : verb->get_options()) {
    if (!option->get_positional()) continue;
    if (positionals-- == 0) return values_of(*option);
  }
  return expected;
}

int complete(const std::vector<std::string>& words, World& world) {
  kube::FindConfig where;
  Chosen chosen;
  CLI::App app("", "kubectl-kwatt");
  declare(app, where, chosen);
  const std::string prefix = words.empty() ? std::string() : words.back();
  const Expected expected = expected_after(app, words);
  for (const std::string& word : expected.words) {
    if (word.starts_with(prefix)) world.out << word << "\n";
  }
  if (expected.names != Names::none) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "--kubeconfig") where.kubeconfig = words[i + 1];
      if (words[i] == "--context") where.context = words[i + 1];
    }
    // Somebody who types is not told of errors; there are just no names.
    std::ostringstream nowhere;
    World quiet{world.out, nowhere, world.clock, world.connect};
    perform([names = expected.names,
             prefix](Session& session) { return print_names(session, names, prefix); },
            where, quiet);
  }
  world.out << kDirective << "\n";
  return kDone;
}

void add_completion(CLI::App& app, Chosen& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = add_verb(app, "completion", "Print the completion script of a shell",
                            "  source <(kubectl-kwatt completion bash)\n");
  verb->add_option("SHELL", *shell, "bash")->required()->check(CLI::IsMember({"bash"}));
  verb->callback([&chosen, shell] {
    chosen.local = [](std::ostream& out) {
      out << kBashFunction;
      return kDone;
    };
  });
}

}  // namespace kwatt::cli
