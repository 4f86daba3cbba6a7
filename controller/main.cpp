#include "base/log.hpp"
#include "base/memory.hpp"
#include "controller/program.hpp"

int main(int argc, char** argv) {
  int status = 0;
  const auto options = kwatt::controller::parse_options(argc, argv, status);
  if (!options) return status;
  if (options->extender.address) kwatt::keep_freed_memory();
  kwatt::log::setup("kwatt-controller", options->log_level, options->log_format);
  return kwatt::controller::Program(*options).run();
}
