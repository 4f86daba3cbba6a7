#include <cmath>
#include <limits>
#include <sstream>

#include <doctest/doctest.h>

#include "models/carbon/intensity_csv.hpp"

namespace kwatt::models::carbon {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

TimePoint at(std::string_view text) {
  return *parse_rfc3339(text);
}

Result<CsvIntensities> read(const std::string& text, CsvShape shape = {}) {
  std::istringstream in(text);
  return read_csv(in, "ci.csv", shape);
}

TEST_CASE("a series knows its gaps, its age and its values by time") {
  const TimePoint start = at("2026-11-20T00:00:00Z");
  const auto series = IntensitySeries::make(
      {{start, 100}, {start + hours{1}, 200}, {start + hours{3}, 400}}, hours{1});
  REQUIRE(series.has_value());
  CHECK(series->size() == 4);
  CHECK(series->gaps() == 1);
  CHECK(series->end() == start + hours{4});
  CHECK(series->age(start + hours{6}) == hours{2});
  CHECK(series->age(start) == Duration{0});
  CHECK(*series->at(start + minutes{90}) == 200);
  CHECK_FALSE(series->at(start + minutes{150}));
  CHECK_FALSE(series->at(start - minutes{1}));
  CHECK_FALSE(series->at(start + hours{4}));
  CHECK(IntensitySeries().age(start) == Duration::max());
}

TEST_CASE("what is known at a time are the steps that had ended") {
  const TimePoint start = at("2026-11-20T00:00:00Z");
  const auto series = IntensitySeries::make(
      {{start, 100}, {start + hours{1}, 200}, {start + hours{3}, 400}}, hours{1});
  REQUIRE(series.has_value());
  struct Case {
    Duration after;
    std::size_t size;
  };
  // After two and a half hours the third is a gap, which ends no series.
  for (const Case& one : {Case{minutes{-5}, 0},
                          {minutes{0}, 0},
                          {minutes{59}, 0},
                          {minutes{60}, 1},
                          {minutes{150}, 2},
                          {minutes{239}, 2},
                          {minutes{240}, 4},
                          {hours{100}, 4}}) {
    INFO(one.after.count());
    CHECK(series->until(start + one.after).size() == one.size);
  }
}

TEST_CASE("half hours become hours, of which half must be known; long steps fill their hours") {
  const TimePoint start = at("2026-11-20T00:30:00Z");
  const auto halves = IntensitySeries::make({{start, 100},
                                             {start + minutes{30}, 200},
                                             {start + minutes{60}, 300},
                                             {start + minutes{150}, 500}},
                                            minutes{30});
  REQUIRE(halves.has_value());
  const IntensitySeries hourly = halves->hourly();
  CHECK(hourly.start() == at("2026-11-20T00:00:00Z"));
  REQUIRE(hourly.size() == 4);
  CHECK(*hourly.value(0) == 100);
  CHECK(*hourly.value(1) == doctest::Approx(250));
  CHECK_FALSE(hourly.value(2));
  CHECK(*hourly.value(3) == 500);

  const auto quarters =
      IntensitySeries::make({{start - minutes{30}, 100}, {start, 1}}, minutes{15});
  REQUIRE(quarters.has_value());
  CHECK(quarters->hourly().size() == 1);  // two known quarters of four

  const auto long_steps = IntensitySeries::make({{start, 100}, {start + hours{3}, 200}}, hours{3});
  REQUIRE(long_steps.has_value());
  CHECK(long_steps->hourly().size() == 7);
  CHECK(*long_steps->hourly().value(3) == doctest::Approx(150));  // half of each
}

TEST_CASE("a series refuses what no electricity is, and says when") {
  const TimePoint start = at("2026-11-20T00:00:00Z");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    std::vector<Reading> readings;
    Duration step;
    std::string_view complaint;
  };
  for (const Case& one : {
           Case{{{start, -1}}, hours{1}, "at 2026-11-20T00:00:00Z: it is negative"},
           Case{{{start, 1}, {start + hours{1}, nan}}, hours{1}, "T01:00:00Z: it is not a number"},
           Case{{{start, 312'000}}, hours{1}, "is it in grams per kWh?"},
           Case{{{start, 1}, {start, 1}}, hours{1}, "not after that of the value before"},
           Case{
               {{start, 1}, {start - hours{1}, 1}}, hours{1}, "not after that of the value before"},
           Case{{{start, 1}, {start + minutes{7}, 1}},
                hours{1},
                "off the grid of one value every 1h"},
           Case{{{start, 1}}, hours{0}, "the step of a series must be positive"},
           Case{{{start, 1}, {start + hours{9'000'000}, 1}}, hours{1}, "more than 1000000 steps"},
       }) {
    const auto series = IntensitySeries::make(one.readings, one.step);
    REQUIRE_FALSE(series.has_value());
    CHECK(series.error().code == ErrorCode::invalid_argument);
    INFO(series.error().message);
    CHECK(series.error().message.find(one.complaint) != std::string::npos);
  }
}

TEST_CASE("CSV: zones, gaps, quotes, and the forms of time that others write") {
  const auto found = read(
      "time,zone,gramsPerKWh\n"
      "2026-11-20T00:00:00Z,DE,300\n"
      "2026-11-20T00:00:00Z,FR,50.5\r\n"
      "\"2026-11-20 01:00:00\",DE,\n"
      "1795143600,FR,NaN\n"
      "2026-11-20T02:00Z,DE,280\n"
      "\n"
      "2026-11-20T04:00:00+02:00,FR,51");
  REQUIRE_MESSAGE(found.has_value(), found.error().message);
  REQUIRE(found->zones.size() == 2);
  const IntensitySeries& german = found->zones.at("DE");
  CHECK(german.step() == hours{2});
  CHECK(german.size() == 2);
  CHECK(*found->zones.at("FR").at(at("2026-11-20T02:30:00Z")) == 51);

  CsvShape electricity_maps;
  electricity_maps.time = "datetime_utc";
  electricity_maps.value = "ci_lca_g_per_kwh";
  const auto one = read(
      "\xEF\xBB\xBF"
      "datetime_utc,ci_direct_g_per_kwh,ci_lca_g_per_kwh\n"
      "2022-01-01 00:00:00,52.2,89.98\n2022-01-01 01:00:00,53.12,91.58\n",
      electricity_maps);
  REQUIRE_MESSAGE(one.has_value(), one.error().message);
  CHECK(*one->zones.at("").value(1) == 91.58);
}

TEST_CASE("CSV: a bad row is refused with file and line, or counted") {
  struct Case {
    std::string row;
    std::string_view complaint;
  };
  for (const Case& one : {
           Case{"2026-11-20T02:00:00Z,-5", "ci.csv:4: carbon intensity -5: it is negative"},
           Case{"2026-11-20T02:00:00Z,inf", "ci.csv:4: carbon intensity inf: it is not a number"},
           Case{"2026-11-20T02:00:00Z,9e9", "ci.csv:4: carbon intensity 9e9: no electricity"},
           Case{"2026-11-20T02:00:00Z,many", "ci.csv:4: \"many\" is no number of grams per kWh"},
           Case{"2026-11-20T02:00:00Z,5x", "ci.csv:4: \"5x\" is no number of grams per kWh"},
           Case{"2026-11-20T02:00:00Z", "ci.csv:4: 1 cells, at least 2 are expected"},
           Case{"yesterday,5", "ci.csv:4: \"yesterday\" is no time such as"},
           Case{"2026-02-30T02:00:00Z,5", "ci.csv:4: \"2026-02-30T02:00:00Z\" is no time"},
           Case{"2026-11-20T00:30:00Z,5",
                "ci.csv:4: 2026-11-20T00:30:00Z is not after 2026-11-20T01:00:00Z of line 3"},
           Case{"2026-11-20T01:00:00Z,5", "is not after 2026-11-20T01:00:00Z of line 3"},
       }) {
    const std::string text =
        "time,gramsPerKWh\n2026-11-20T00:00:00Z,1\n2026-11-20T01:00:00Z,2\n" + one.row + "\n";
    const auto refused = read(text);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::parse);
    INFO(refused.error().message);
    CHECK(refused.error().message.find(one.complaint) != std::string::npos);
    CsvShape lenient;
    lenient.skip_bad = true;
    const auto counted = read(text, lenient);
    REQUIRE(counted.has_value());
    CHECK(counted->skipped == 1);
    CHECK(counted->first_skipped.find(one.complaint) != std::string::npos);
    CHECK(counted->zones.at("").size() == 2);
  }
}

TEST_CASE("CSV: rows off the grid, a missing column, an empty file, an endless line") {
  CsvShape hourly;
  hourly.step = hours{1};
  const std::string text = "time,gramsPerKWh\n2026-11-20T00:00:00Z,1\n2026-11-20T00:25:00Z,2\n";
  const auto off = read(text, hourly);
  REQUIRE_FALSE(off.has_value());
  CHECK(off.error().message ==
        "ci.csv:3: 2026-11-20T00:25:00Z is off the grid of one value every 1h");
  hourly.skip_bad = true;
  CHECK(read(text, hourly)->skipped == 1);

  CHECK(read("when,gramsPerKWh\n").error().message ==
        "ci.csv:1: no column \"time\"; there are: when,gramsPerKWh");
  CHECK(read("").error().message == "ci.csv:1: the file is empty, a header is expected");
  CHECK(read("time,gramsPerKWh\n" + std::string(5000, 'x')).error().message ==
        "ci.csv:2: a line of more than 4096 bytes is no CSV");
  CHECK(read("time,gramsPerKWh\n")->zones.empty());
}

}  // namespace
}  // namespace kwatt::models::carbon
