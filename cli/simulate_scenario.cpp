// A scenario file: the options of simulate and compare, written down.
#include <filesystem>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "cli/policy_file.hpp"
#include "cli/simulate.hpp"

namespace kwatt::cli {
namespace {

// Paths in a scenario count from its folder; words that are no paths (synthetic:…, 20x32x128, a
// number) stay as they are.
std::string from_folder(const std::filesystem::path& folder, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  const std::filesystem::path there = folder / path;
  return std::filesystem::exists(there) ? there.lexically_normal().string() : path;
}

std::string carbon_from(const std::filesystem::path& folder, const std::string& one) {
  const std::size_t equals = one.find('=');
  const std::size_t begin = equals == std::string::npos ? 0 : equals + 1;
  const std::size_t colon = one.find(':', begin);
  const std::string path = one.substr(begin, colon == std::string::npos ? colon : colon - begin);
  const std::string rest = colon == std::string::npos ? "" : one.substr(colon);
  return one.substr(0, begin) + from_folder(folder, path) + rest;
}

// A scalar, or a sequence of scalars joined as the command line would have them.
Result<std::vector<std::string>> words_of(const YAML::Node& node) {
  std::vector<std::string> words;
  if (node.IsScalar()) return std::vector<std::string>{node.Scalar()};
  if (!node.IsSequence()) {
    return fail(ErrorCode::parse, "expected a word or a list of words");
  }
  for (const YAML::Node& one : node) {
    if (!one.IsScalar()) return fail(ErrorCode::parse, "expected a list of words");
    words.push_back(one.Scalar());
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

}  // namespace

Result<void> load_scenario(const CLI::App& verb, SimulateOptions& options) {
  auto text = read_text(options.scenario);
  if (!text) return text.error().with_context("--scenario");
  const std::filesystem::path folder = std::filesystem::path(options.scenario).parent_path();
  std::vector<std::string> arguments;
  try {
    const YAML::Node root = YAML::Load(*text);
    if (!root.IsMap()) {
      return fail(ErrorCode::parse, options.scenario +
                                        ": expected options by name, such as "
                                        "\"machines: 20x32x128\"");
    }
    for (const auto& entry : root) {
      const std::string key = entry.first.Scalar();
      const auto where = [&] {
        return fmt::format("{}:{}: {}", options.scenario, entry.first.Mark().line + 1, key);
      };
      auto words = words_of(entry.second);
      if (!words) return words.error().with_context(where());
      if (key == "traces" || key == "trace") {
        if (!verb.get_option("TRACE")->empty()) continue;
        for (const std::string& word : *words) {
          arguments.push_back(from_folder(folder, word));
        }
        continue;
      }
      const CLI::Option* option = verb.get_option_no_throw("--" + key);
      const bool known = option != nullptr && key != "scenario" && key != "help";
      // One file serves simulate and compare.
      const bool of_other =
          key == "strategy" || key == "strategies" || key == "seed" || key == "seeds";
      if (!known && of_other) continue;
      if (!known) {
        return fail(ErrorCode::invalid_argument, where() + ": there is no such option");
      }
      if (!option->empty()) continue;
      std::string value = joined(*words);
      if (key == "carbon") {
        for (std::string& word : *words) word = carbon_from(folder, word);
        value = joined(*words);
      } else if (key == "machines" || key == "policy") {
        value = from_folder(folder, value);
      }
      arguments.push_back(fmt::format("--{}={}", key, value));
    }
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::parse, fmt::format("{}: {}", options.scenario, error.what()));
  }
  // What the command line said is not among `arguments`, so it stays as it is.
  CLI::App parser;
  const bool many = verb.get_option_no_throw("--strategies") != nullptr;
  declare_simulate(parser, options, many);
  try {
    parser.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", options.scenario, error.what()));
  }
  return {};
}

}  // namespace kwatt::cli
