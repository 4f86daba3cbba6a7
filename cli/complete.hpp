#pragma once
// Completion of the command line: what may stand in place of the last, unfinished word.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/program.hpp"

namespace kwatt::cli {

inline constexpr const char* kCompleteVerb = "__complete";

// What can stand there: fixed words, or names that only the API server knows.
struct Expected {
  std::vector<std::string> words;
  enum class Names { none, nodes, policies, subjects } names = Names::none;
  bool operator==(const Expected&) const = default;
};
// `words` are those after the program's name; the last one is the unfinished one, perhaps "".
Expected expected_after(const CLI::App& app, const std::vector<std::string>& words);

// Prints the candidates, one per line, and then ":4", which tells kubectl (cobra's protocol) and
// our bash function that file names are none. Without an API server: only fixed words.
int complete(const std::vector<std::string>& words, World& world);

}  // namespace kwatt::cli
