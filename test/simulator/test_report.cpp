#include <cmath>

#include <doctest/doctest.h>

#include "simulator/report/plot.hpp"
#include "simulator/report/report.hpp"
#include "test/simulator/room.hpp"

namespace kwatt::simulator::report {
namespace {

using namespace std::chrono_literals;

Run run_of(const std::string& strategy, std::uint64_t seed, double kwh) {
  Run run{strategy, "t", seed, {}};
  run.outcome.energy_kwh = kwh;
  run.outcome.submitted = run.outcome.completed = 10;
  run.outcome.length = 2h;
  run.outcome.timeline.hold(7'200'000, {100, 5, 1000, 1, 0});
  run.outcome.nodes.push_back({"n1", "z", 4000, {}});
  return run;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_SUITE("simulator") {
  TEST_CASE("estimate: mean and 95 % interval by Student's t") {
    CHECK(estimate({}).mean == 0);
    CHECK(estimate({3}).mean == 3);
    CHECK(estimate({3}).half_width == 0);
    const Estimate five = estimate({1, 2, 3, 4, 5});
    CHECK(five.mean == doctest::Approx(3));
    CHECK(five.half_width == doctest::Approx(2.776 * std::sqrt(2.5 / 5)));
    CHECK(estimate({7, 7, 7}).half_width == doctest::Approx(0));
  }

  TEST_CASE("table: one column for each strategy, intervals over seeds, no rows of nothing") {
    const std::vector<Run> runs = {run_of("A", 1, 1), run_of("A", 2, 3), run_of("B", 1, 4),
                                   run_of("B", 2, 4)};
    const auto rows = table_of(runs);
    CHECK(rows[0] == std::vector<std::string>{"FIGURE", "A", "B"});
    CHECK(rows[1] == std::vector<std::string>{"Energy (kWh)", "2 ± 12.71", "4 ± 0"});
    for (const auto& row : rows) CHECK(row[0] != "Migrations");
  }

  TEST_CASE("csv: fields with commas and quotes are quoted") {
    CHECK(csv_field("a") == "a");
    CHECK(csv_field("a,\"b\"") == "\"a,\"\"b\"\"\"");
    CHECK(schedule_line("j,1", "n", "S", 123.456, *parse_rfc3339("2026-01-05T00:00:00Z")) ==
          "\"j,1\",n,S,123.456,2026-01-05T00:00:00Z\n");
    const std::string csv = csv_of({run_of("A", 1, 1.5)});
    CHECK(csv.starts_with("trace,strategy,seed,energyKWh,"));
    CHECK(csv.find("\nt,A,1,1.5,") != csv.npos);
  }

  TEST_CASE("metrics: by strategy, node and time, with the same totals") {
    const std::string csv = metrics_csv_of({run_of("A", 1, 0.2)});
    CHECK(csv.find("\nstrategy,t,A,1,,,,0.2,") != csv.npos);
    CHECK(csv.find("\nnode,t,A,1,n1,z,,") != csv.npos);
    CHECK(count_of(csv, "\ntime,t,A,1,") > 100);
    const std::size_t columns = count_of(csv.substr(0, csv.find('\n')), ",");
    for (std::size_t at = 0; at < csv.size(); at = csv.find('\n', at) + 1) {
      CHECK(count_of(csv.substr(at, csv.find('\n', at) - at), ",") == columns);
    }
  }

  TEST_CASE("json: counts are whole numbers, names are escaped") {
    const std::string json = json_of({run_of("A \"quoted\"", 1, 0.25)});
    CHECK(json.find(R"("strategy":"A \"quoted\"")") != json.npos);
    CHECK(json.find(R"("energyKWh":0.25,)") != json.npos);
    CHECK(json.find(R"("jobsCompleted":10,)") != json.npos);
  }

  TEST_CASE("html: one file with every plot, nothing from elsewhere, names escaped") {
    const std::string page = html_of({run_of("<b>A</b>", 1, 1), run_of("B", 1, 2)}, "a & b");
    CHECK(count_of(page, "<svg class=\"plot\"") == 13);
    CHECK(page.find("<b>A") == page.npos);
    CHECK(page.find("&lt;b&gt;A&lt;/b&gt;") != page.npos);
    CHECK(page.find("a &amp; b") != page.npos);
    CHECK(page.find("http") == page.npos);
    CHECK(page.find("prefers-color-scheme:dark") != page.npos);
    CHECK(count_of(page, "<svg") == count_of(page, "</svg>"));
    CHECK(html_of({}, "t").find("There are no runs") != page.npos);
  }

  TEST_CASE("plots: axes are round numbers that hold everything, bad numbers do no harm") {
    CHECK(ticks(10) == std::vector<double>{0, 2, 4, 6, 8, 10});
    CHECK(ticks(46) == std::vector<double>{0, 10, 20, 30, 40, 50});
    for (const double most : {-5.0, 0.0, 1e-9, 0.3, 7.0, 99.0, 1234.5, 1e12}) {
      CAPTURE(most);
      const auto marks = ticks(most);
      CHECK(marks.size() >= 2);
      CHECK(marks.size() <= 7);
      CHECK(marks.back() >= most);
    }
    CHECK(ticks(std::nan("")).size() == 2);
    const std::string plot =
        line_plot("t", "x", "y", {{"a", 0, {{0, 0}, {1, std::nan("")}}, false}});
    CHECK(plot.find("nan") == plot.npos);
    CHECK(line_plot("t", "x", "y", {}).find("nothing to show") != plot.npos);
    CHECK(bar_plot("t", "", {{"a", -1, 0}}).find("-") ==
          bar_plot("t", "", {{"a", 0, 0}}).find("-"));
  }

  TEST_CASE("distribution: quantiles within one percent, the rest exact") {
    Distribution d;
    CHECK(d.quantile(0.5) == 0);
    for (std::int64_t i = 1; i <= 10'000; ++i) d.add(i * 37);
    CHECK(d.count() == 10'000);
    CHECK(d.mean() == doctest::Approx(37 * 5000.5));
    CHECK(d.minimum() == 37);
    CHECK(d.maximum() == 370'000);
    for (const double share : {0.01, 0.25, 0.5, 0.95, 0.99}) {
      CHECK(d.quantile(share) == doctest::Approx(370'000 * share).epsilon(0.012));
    }
    CHECK(d.quantile(1) == doctest::Approx(370'000).epsilon(0.011));
    CHECK(d.cdf().back().share == 1);
    CHECK(d.cdf(50).size() == 50);
    d.add(-5);
    CHECK(d.minimum() == 0);
  }

  TEST_CASE("timeline: means of what held, in at most a thousand steps") {
    Timeline t;
    t.hold(5'000, {100, 0, 0, 0, 0});
    t.hold(20'000, {200, 0, 0, 0, 0});
    const auto points = t.points();
    REQUIRE(points.size() == 2);
    CHECK(points[0].mean.watts == doctest::Approx(150));
    CHECK(points[1].mean.watts == doctest::Approx(200));
    t.hold(Duration{24h * 365}.count(), {300, 0, 0, 0, 0});
    CHECK(t.points().size() <= Timeline::kPoints);
    double joules = 0;
    for (const auto& point : t.points()) {
      const Duration step = std::min(t.step(), Duration{24h * 365} - point.at);
      joules += point.mean.watts * static_cast<double>(step.count()) / 1000;
    }
    CHECK(joules == doctest::Approx(500 + 3000 + 300.0 * (365 * 86'400 - 20)));
  }

  TEST_CASE("intensity: values hold for their step, ends hold on") {
    const TimePoint start = *parse_rfc3339("2026-01-05T00:00:00Z");
    const Intensity series{start, 1h, {10, 20, 30}, 0};
    CHECK(series.at(start - 1h) == 10);
    CHECK(series.at(start + 59min) == 10);
    CHECK(series.at(start + 1h) == 20);
    CHECK(series.at(start + 99h) == 30);
    CHECK(series.next_change(start) == start + 1h);
    CHECK(series.next_change(start - 5h) == start + 1h);
    CHECK(series.next_change(start + 2h) == TimePoint::max());
    CHECK(series.mean(start + 30min, start + 90min) == doctest::Approx(15));
    const Intensities zones = {{"", {start, 1h, {}, 7}}, {"a", series}};
    CHECK(intensity_of(zones, "a").at(start) == 10);
    CHECK(intensity_of(zones, "b").at(start) == 7);
    CHECK(intensity_of({}, "b").at(start) == 0);
  }
}

}  // namespace
}  // namespace kwatt::simulator::report
