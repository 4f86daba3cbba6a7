#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/carbon.hpp"
#include "test/cli/fake_api.hpp"
#include "test/support/folder.hpp"

namespace kwatt::cli {
namespace {

// Three weeks of days that are clean at noon, from a Monday on.
std::string three_weeks(const std::string& more = "") {
  std::string text = "time,zone,gramsPerKWh\n";
  const TimePoint start = *parse_rfc3339("2024-01-01T00:00:00Z");
  for (int hour = 0; hour < 21 * 24; ++hour) {
    text += fmt::format("{},DE,{}\n", format_rfc3339(start + std::chrono::hours{hour}),
                        hour % 24 >= 10 && hour % 24 < 14 ? 100 : 400);
  }
  return text + more;
}

Result<CarbonView> view(const std::string& text, CarbonOptions options) {
  std::istringstream in(text);
  options.file = "ci.csv";
  return view_carbon(in, options, *parse_rfc3339("2024-01-22T00:00:00Z"));
}

TEST_CASE("carbon: the job waits for the clean hours, and the table shows when") {
  CarbonOptions options;
  options.learner = "naive-day";
  const auto seen = view(three_weeks(), options);
  REQUIRE_MESSAGE(seen.has_value(), seen.error().message);
  CHECK(seen->zone == "DE");
  const std::string table = carbon_table(*seen);
  CHECK(table.starts_with(
      "A job of 4h that must end by 2024-01-23T00:00:00Z waits until 2024-01-22T10:00:00Z: 100 "
      "g/kWh instead of 400, saves 300.0 g of CO2 (CleanerLater).\n\n"
      "HOUR                   G/KWH   FROM        JOB\n"
      "2024-01-22T00:00:00Z   400     naive-day\n"));
  CHECK(table.find("2024-01-22T09:00:00Z   400     naive-day\n"
                   "2024-01-22T10:00:00Z   100     naive-day   runs\n") != std::string::npos);
  CHECK(table.find("2024-01-22T14:00:00Z   400     naive-day\n") != std::string::npos);
  const std::string json = carbon_json(*seen);
  CHECK(json.starts_with(R"({"zone":"DE","at":"2024-01-22T00:00:00Z","length":"4h",)"
                         R"("deadline":"2024-01-23T00:00:00Z","reason":"CleanerLater",)"));
  CHECK(
      json.find(R"("chosen":{"start":"2024-01-22T10:00:00Z","gramsPerKWh":100.0,"grams":100.0})") !=
      std::string::npos);
}

TEST_CASE("carbon: without usable data the job starts at once, and the reason is told") {
  CarbonOptions options;
  options.at = "2024-01-23T05:00:00Z";
  const auto seen = view(three_weeks(), options);
  REQUIRE(seen.has_value());
  CHECK(carbon_table(*seen) ==
        "A job of 4h that must end by 2024-01-24T05:00:00Z starts at once: the newest carbon "
        "intensity is of 2024-01-21T23:00:00Z, 29h ago (NoForecast).\n");
  CHECK(carbon_json(*seen).find(R"("data":"Stale","startNow":true)") != std::string::npos);
}

TEST_CASE("carbon: what is wrong is said with the option, or with file and line") {
  struct Case {
    std::string text;
    std::function<void(CarbonOptions&)> change;
    std::string_view complaint;
  };
  for (const Case& one : {
           Case{three_weeks(), [](auto& o) { o.length = "4"; },
                "--length 4: must be a duration such as 4h or 90m"},
           Case{three_weeks(), [](auto& o) { o.deadline = "-1h"; }, "--deadline -1h: must be"},
           Case{three_weeks(), [](auto& o) { o.deadline = "999h"; },
                "forecasts reach 336h at most"},
           Case{three_weeks(), [](auto& o) { o.at = "noon"; }, "--at noon: must be a time"},
           Case{three_weeks(), [](auto& o) { o.zone = "FR"; },
                "ci.csv has no zone \"FR\"; there are: DE"},
           Case{three_weeks("2024-01-22T00:00:00Z,FR,5\n"), [](auto&) {},
                "ci.csv has several zones, name one: DE, FR"},
           Case{three_weeks("2024-01-22T00:00:00Z,DE,-5\n"), [](auto&) {},
                "ci.csv:506: carbon intensity -5: it is negative"},
           Case{"time,gramsPerKWh\n", [](auto&) {}, "ci.csv has no carbon intensity"},
           Case{three_weeks(), [](auto& o) { o.energy_kwh = 0; },
                "a job's energy must be positive"},
       }) {
    CarbonOptions options;
    one.change(options);
    const auto seen = view(one.text, options);
    REQUIRE_FALSE(seen.has_value());
    INFO(seen.error().message);
    CHECK(seen.error().message.starts_with(one.complaint));
  }
  CarbonOptions lenient;
  lenient.shape.skip_bad = true;
  const auto seen = view(three_weeks("2024-01-22T00:00:00Z,DE,-5\n"), lenient);
  REQUIRE(seen.has_value());
  CHECK(carbon_table(*seen).starts_with("1 row ignored: ci.csv:506: carbon intensity -5"));
}

TEST_CASE("carbon is a verb that needs no cluster") {
  FakeCluster cluster;
  cluster.failure = fail(ErrorCode::unavailable, "no cluster");
  const ManualClock clock{*parse_rfc3339("2024-01-22T00:00:00Z")};
  CHECK(call(cluster, clock, {"carbon"}).err == "error: --csv or --sources is needed\n");
  CHECK(call(cluster, clock, {"carbon", "--csv", "x", "--sources", "y"}).status == kUsage);
  const test::Folder folder;
  folder.write("ci.csv", three_weeks());
  folder.write("sources.json", R"({"sources":[{"name":"own","csv":{"path":")" +
                                   folder.path("ci.csv") +
                                   R"("}},{"name":"away","http":{"url":"http://127.0.0.1:1/"}}]})");
  const Called asked =
      call(cluster, clock,
           {"carbon", "DE", "--sources", folder.path("sources.json"), "--source", "own"});
  CHECK(asked.err == "");
  CHECK(asked.out.find("waits until 2024-01-22T") != std::string::npos);
  const Called unnamed =
      call(cluster, clock, {"carbon", "DE", "--sources", folder.path("sources.json")});
  CHECK(unnamed.err.ends_with("has several sources, name one with --source: own, away\n"));
  const Called away =
      call(cluster, clock,
           {"carbon", "DE", "--sources", folder.path("sources.json"), "--source", "away"});
  CHECK(away.status == kFailed);
  CHECK(away.err.starts_with("error: away: "));
  const Called missing = call(cluster, clock, {"carbon", "--csv", "/nowhere/ci.csv"});
  CHECK(missing.status == kFailed);
  CHECK(missing.err == "error: cannot open --csv /nowhere/ci.csv\n");
  CHECK(call(cluster, clock, {"carbon", "--csv", "x", "--forecast", "stars"}).status == kUsage);
}

}  // namespace
}  // namespace kwatt::cli
