#pragma once
// `kwatt-agent restore`: gives the machine back its original settings, once and at once.
#include "agent/options.hpp"

namespace kwatt::agent {

// For the hooks of an uninstallation, when no agent runs any more. Takes the original settings of
// this boot from NodePower status.report, whatever the Node's annotations ask for: a cap that has
// to outlive the controller goes too. Returns the exit code: 0 when all is as it was, and when
// nothing was changed in this boot; 1 when the NodePower could not be read within half a minute or
// a setting could not be restored (the reason is logged).
int run_restore(const Options& options);

}  // namespace kwatt::agent
