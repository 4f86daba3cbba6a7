#pragma once
// YAML files as the commands read them.
#include <string>

#include "api/energy_policy.hpp"
#include "base/result.hpp"

namespace kwatt::cli {

// A YAML document as JSON, as kubectl would send it. Errors: parse, with line and column.
Result<std::string> json_of_yaml(const std::string& text);
// The file's content. Errors: not_found.
Result<std::string> read_text(const std::string& path);

struct PolicyFile {
  std::string name;
  api::EnergyPolicySpec spec;
};
// The first EnergyPolicy in the file (documents of other kinds are passed over), in mode Enforce:
// what is simulated is what it would do. Errors: not_found, parse, invalid_argument with what
// validation says.
Result<PolicyFile> read_policy(const std::string& path);

}  // namespace kwatt::cli
