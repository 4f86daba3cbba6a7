#include <sstream>

#include <doctest/doctest.h>

#include "simulator/traces/google_vms.hpp"
#include "simulator/traces/planetlab.hpp"

using namespace kwatt;
using namespace kwatt::simulator::traces;

TEST_CASE("a PlanetLab day is read column by column, in percent") {
  std::istringstream in("a,b\n0,100\n7,50\r\n12,3\n");
  const Result<Series> series = read_planetlab(in, "day.csv");
  REQUIRE(series.has_value());
  CHECK(series->names == std::vector<std::string>{"a", "b"});
  CHECK(series->samples == 3);
  CHECK(series->at(0, 1) == 1.0);
  CHECK(series->at(1, 0) == 0.07);
  CHECK(series->at(2, 1) == 0.03);
}

TEST_CASE("bad PlanetLab input is refused with the line and what was expected") {
  struct Case {
    const char *name, *text, *want;
  };
  const Case cases[] = {
      {"nothing", "", "day.csv:1: empty, expected a line with the names of the VMs"},
      {"an empty first line", "\n1\n", "day.csv:1: empty, expected"},
      {"no values", "a,b\n", "day.csv:2: no line of values"},
      {"a column without a name", "a,,c\n1,2,3\n", "day.csv:1: column 2 has no name"},
      {"names out of order", "b,a\n1,2\n",
       "day.csv:1: VM 'a' after 'b': expected names in bytewise"},
      {"a name twice", "a,a\n1,2\n", "day.csv:1: VM 'a' after 'a'"},
      {"too few values", "a,b\n1,2\n3\n", "day.csv:3: 1 values, expected 2, one for each VM"},
      {"too many values", "a,b\n1,2,3\n", "day.csv:2: 3 values, expected 2"},
      {"an empty line between", "a,b\n1,2\n\n3,4\n", "day.csv:3: 0 values, expected 2"},
      {"an empty line, one VM", "a\n\n", "day.csv:2: 0 values, expected 1"},
      {"a missing value", "a,b\n1,\n", "day.csv:2: VM 'b': no value, expected a whole percentage"},
      {"not a number", "a,b\n1,x\n",
       "day.csv:2: VM 'b': 'x', expected a whole percentage from 0 to 100"},
      {"NaN", "a,b\nNaN,2\n", "day.csv:2: VM 'a': 'NaN', expected"},
      {"infinity", "a,b\ninf,2\n", "day.csv:2: VM 'a': 'inf', expected"},
      {"negative", "a,b\n1,-2\n", "day.csv:2: VM 'b': '-2', expected"},
      {"minus nothing", "a,b\n1,-0\n", "day.csv:2: VM 'b': '-0', expected"},
      {"a fraction", "a,b\n1.5,2\n", "day.csv:2: VM 'a': '1.5', expected a whole percentage"},
      {"above 100", "a,b\n101,2\n", "day.csv:2: VM 'a': '101', expected"},
      {"an exponent", "a,b\n1e1,2\n", "day.csv:2: VM 'a': '1e1', expected"},
      {"a space", "a,b\n 1,2\n", "day.csv:2: VM 'a': ' 1', expected"},
  };
  for (const Case& c : cases) {
    SUBCASE(c.name) {
      std::istringstream in(c.text);
      const Result<Series> series = read_planetlab(in, "day.csv");
      REQUIRE(series.has_error());
      CHECK(series.error().code == ErrorCode::parse);
      INFO(series.error().message);
      CHECK(series.error().message.find(c.want) == 0);
    }
  }
}

TEST_CASE("Google's VMs have fractions, and more than 100 % counts as 100 %") {
  std::istringstream cpu("a,b\n5.103,120.5\n"), memory("a,b\n0,99.999\n");
  const Result<GoogleVms> vms = read_google_vms(cpu, "cpu.csv", memory, "mem.csv");
  REQUIRE(vms.has_value());
  CHECK(vms->cpu.at(0, 0) == doctest::Approx(0.05103));
  CHECK(vms->cpu.at(0, 1) == 1.0);
  CHECK(vms->memory.at(0, 1) == doctest::Approx(0.99999));
}

TEST_CASE("Google's two files must belong together") {
  struct Case {
    const char *name, *cpu, *memory, *want;
  };
  const Case cases[] = {
      {"other VMs", "a,b\n1,2\n", "a,c\n1,2\n", "mem.csv:1: VM 'c', expected 'b' as in cpu.csv"},
      {"fewer VMs", "a,b\n1,2\n", "a\n1\n", "mem.csv:1: 1 VMs, expected the 2 of cpu.csv"},
      {"fewer steps", "a\n1\n2\n", "a\n1\n", "mem.csv:2: ends after 1 steps, expected the 2 of"},
      {"bad CPU", "a\n-1\n", "a\n1\n", "cpu.csv:2: VM 'a': '-1', expected a percentage"},
      {"bad memory", "a\n1\n", "a\nx\n", "mem.csv:2: VM 'a': 'x', expected a percentage"},
      {"absurd", "a\n1e9\n", "a\n1\n", "cpu.csv:2: VM 'a': '1e9', expected"},
      {"far too much", "a\n10000000\n", "a\n1\n", "cpu.csv:2: VM 'a': '10000000', expected"},
  };
  for (const Case& c : cases) {
    SUBCASE(c.name) {
      std::istringstream cpu(c.cpu), memory(c.memory);
      const Result<GoogleVms> vms = read_google_vms(cpu, "cpu.csv", memory, "mem.csv");
      REQUIRE(vms.has_error());
      INFO(vms.error().message);
      CHECK(vms.error().message.find(c.want) == 0);
    }
  }
}
