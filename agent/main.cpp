#include "agent/options.hpp"
#include "agent/restore.hpp"
#include "agent/service.hpp"
#include "base/log.hpp"

int main(int argc, char** argv) {
  const auto parsed = kwatt::agent::parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  kwatt::log::setup("kwatt-agent", parsed.options->log_level, parsed.options->log_format);
  const auto& options = *parsed.options;
  return options.restore ? kwatt::agent::run_restore(options) : kwatt::agent::run_agent(options);
}
