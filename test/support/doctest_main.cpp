#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "test/support/source_dir.hpp"

std::string kwatt::test::source_path(const std::string& name) {
  return KWATT_SOURCE_DIR "/" + name;
}
