#pragma once
// kwatt-agent as a process: wires the parts together and runs them on one thread.
#include "agent/options.hpp"

namespace kwatt::agent {

// Runs until SIGTERM or SIGINT. Returns the exit code: 0 after an orderly stop with everything
// restored, 1 when it cannot start (the reason is logged) or something could not be restored.
int run_agent(const Options& options);

}  // namespace kwatt::agent
