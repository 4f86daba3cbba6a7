#include <limits>

#include <doctest/doctest.h>

#include "api/quantity.hpp"

namespace kwatt::api {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST_CASE("a quantity is read as Kubernetes reads it, rounded up") {
  struct Case {
    const char* text;
    std::int64_t whole, milli;
  };
  const Case cases[] = {
      {"0", 0, 0},
      {"1", 1, 1000},
      {"100m", 1, 100},
      {"1100m", 2, 1100},
      {"0.1", 1, 100},
      {"0.0001", 1, 1},
      {"1u", 1, 1},
      {"1n", 1, 1},
      {"1000000n", 1, 1},
      {"1000001n", 1, 2},
      {"1.5Gi", 1610612736, 1610612736000},
      {"12k", 12000, 12000000},
      {"1M", 1000000, 1000000000},
      {"2G", 2000000000, 2000000000000},
      {"1Ki", 1024, 1024000},
      {"1.5Ki", 1536, 1536000},
      {"0.5Mi", 524288, 524288000},
      {"1e3", 1000, 1000000},
      {"1E3", 1000, 1000000},
      {"12e-1", 2, 1200},
      {"1e+3", 1000, 1000000},
      {"1E", 1000000000000000000, kMax},
      {"1Ei", 1152921504606846976, kMax},
      {"8Ei", kMax, kMax},
      {"16Ei", kMax, kMax},
      {"9223372036854775807", kMax, kMax},
      {"99999999999999999999999999", kMax, kMax},
      {"1e1000", kMax, kMax},
      {"1e-1000", 1, 1},
      {"0e1000", 0, 0},
      {"128974848", 128974848, 128974848000},
      {"129e6", 129000000, 129000000000},
      {"123Mi", 128974848, 128974848000},
      {".5", 1, 500},
      {"5.", 5, 5000},
      {"+2", 2, 2000},
      {"-100m", -1, -100},
      {"0.000000000000000000000000001", 1, 1},
      {"1.00000000000000000000000001", 2, 1001},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_quantity(c.text) == c.whole);
    CHECK(parse_quantity_milli(c.text) == c.milli);
  }
}

TEST_CASE("what is not a quantity is not read") {
  for (const char* text :
       {"",    " ",  "m",    "1 ",      " 1",  "1K",  "1mi", "1kB", "1.2.3", "1e",
        "1e+", "Gi", "0x10", "1e99999", "--1", "1,5", "NaN", "1i",  "1ee3",  "."}) {
    CAPTURE(text);
    CHECK_FALSE(parse_quantity(text).has_value());
    CHECK_FALSE(parse_quantity_milli(text).has_value());
  }
}

}  // namespace
}  // namespace kwatt::api
