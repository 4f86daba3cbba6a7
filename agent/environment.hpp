#pragma once
// What every way of running the agent starts from: the machine's files and the way to the API
// server.
#include <string>

#include "agent/options.hpp"
#include "hardware/sysfs_files.hpp"
#include "kube/config.hpp"

namespace kwatt::agent {

struct Environment {
  hardware::RootedFs sys, proc;
  std::string boot_id;
  kube::Config kube;
};
// Errors: of the files and of the configuration, saying which.
Result<Environment> open_environment(const Options& options);

}  // namespace kwatt::agent
