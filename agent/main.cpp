#include "agent/options.hpp"
#include "agent/service.hpp"
#include "base/log.hpp"

int main(int argc, char** argv) {
  const auto parsed = kwatt::agent::parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  kwatt::log::setup("kwatt-agent", parsed.options->log_level, parsed.options->log_format);
  return kwatt::agent::run_agent(*parsed.options);
}
