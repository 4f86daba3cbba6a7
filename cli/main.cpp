#include <iostream>

#include "base/log.hpp"
#include "cli/program.hpp"

int main(int argc, char** argv) {
  // Only what goes wrong: the answer is for people, and on stdout.
  kwatt::log::setup("kubectl-kwatt", kwatt::log::Level::error, kwatt::log::Format::logfmt);
  const kwatt::SystemClock clock;
  kwatt::cli::World world{std::cout, std::cerr, clock, kwatt::cli::connect};
  return kwatt::cli::run({argv + 1, argv + argc}, world);
}
