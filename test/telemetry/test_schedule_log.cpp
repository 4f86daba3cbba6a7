// schedule_log.csv
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "telemetry/schedule_log.hpp"
#include "test/support/folder.hpp"

using namespace kwatt;
using namespace kwatt::telemetry;

namespace {

ScheduleLine line(std::string job, double grams = 120.25) {
  return {std::move(job), "n1", "FCFS", grams, *parse_rfc3339("2026-11-20T21:00:00Z")};
}

}  // namespace

TEST_CASE("schedule log: one line for each job, quoted where a reader would stumble") {
  CHECK(schedule_line(line("default/a")) == "default/a,n1,FCFS,120.2,2026-11-20T21:00:00Z\n");
  CHECK(schedule_line(line("=a,\"b\"", -1)) == "\"'=a,\"\"b\"\"\",n1,FCFS,,2026-11-20T21:00:00Z\n");
}

TEST_CASE(
    "schedule log: the header comes once, and a log that is too long makes room for a new one") {
  const test::Folder folder;
  const std::string path = folder.path("schedule_log.csv");
  const auto read = [](const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  REQUIRE(ScheduleLog(path).add(line("a")).has_value());
  REQUIRE(ScheduleLog(path).add(line("b")).has_value());
  CHECK(read(path) ==
        std::string(kScheduleHeader) + schedule_line(line("a")) + schedule_line(line("b")));
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(ScheduleLog::kMostBytes) + 1);
  REQUIRE(ScheduleLog(path).add(line("c")).has_value());
  CHECK(read(path) == std::string(kScheduleHeader) + schedule_line(line("c")));
  CHECK(std::filesystem::exists(path + ".1"));
}

TEST_CASE("schedule log: a folder that is not there is told") {
  ScheduleLog log("/nowhere/at/all.csv");
  const auto done = log.add(line("a"));
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().message.starts_with("/nowhere/at/all.csv: cannot be opened"));
}
