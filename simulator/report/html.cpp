#include <algorithm>

#include <fmt/format.h>

#include "simulator/report/plot.hpp"
#include "simulator/report/report.hpp"

namespace kwatt::simulator::report {
namespace {

// Colours of M. Okabe and K. Ito, which people with colour blindness can tell apart.
constexpr const char* kHead = R"HTML(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
:root{--back:#fff;--text:#1c2126;--soft:#5b6670;--line:#d9dee3;--card:#f6f8fa;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#b07d00;--c5:#56b4e9;--c6:#6f5bb5;--c7:#7a7a7a}
@media (prefers-color-scheme:dark){:root{--back:#14181c;--text:#e6eaee;--soft:#9aa6b2;--line:#313940;
--card:#1b2127;--c0:#4aa3df;--c1:#ff8a3d;--c2:#2fc79a;--c3:#e29ac4;--c4:#e6b432;--c5:#8accf2;--c6:#a493e6;--c7:#a6a6a6}}
body{margin:0 auto;max-width:1200px;padding:24px;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:22px;margin:0 0 4px}h2{font-size:18px;margin:28px 0 8px}
p{color:var(--soft);margin:4px 0 12px}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:16px}
.plot{width:100%;background:var(--card);border-radius:8px;padding:12px;box-sizing:border-box}
.plot .title{font-size:14px;font-weight:600;fill:var(--text)}
.plot .axis{font-size:11px;fill:var(--soft)}.plot .grid{stroke:var(--line)}
.line{fill:none;stroke-width:1.6}.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}.off{display:none}
.whisker{stroke:var(--text);stroke-width:1.5}
rect.c0{fill:var(--c0)}rect.c1{fill:var(--c1)}rect.c2{fill:var(--c2)}rect.c3{fill:var(--c3)}
rect.c4{fill:var(--c4)}rect.c5{fill:var(--c5)}rect.c6{fill:var(--c6)}rect.c7{fill:var(--c7)}
path.c0{stroke:var(--c0)}path.c1{stroke:var(--c1)}path.c2{stroke:var(--c2)}path.c3{stroke:var(--c3)}
path.c4{stroke:var(--c4)}path.c5{stroke:var(--c5)}path.c6{stroke:var(--c6)}path.c7{stroke:var(--c7)}
.legend button{font:inherit;color:var(--text);background:var(--card);border:1px solid var(--line);
border-radius:6px;margin:0 6px 6px 0;padding:2px 10px;cursor:pointer}
.legend button[aria-pressed=false]{opacity:.4}.legend svg{width:22px;height:8px;margin-right:6px}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}
th,td{padding:4px 12px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
</style>
)HTML";
constexpr const char* kTail = R"HTML(<script>
document.querySelectorAll(".legend button").forEach(function(button){
  button.addEventListener("click",function(){
    var shown=button.getAttribute("aria-pressed")==="true";
    button.setAttribute("aria-pressed",String(!shown));
    button.closest("section").querySelectorAll("path.line").forEach(function(path){
      if(path.dataset.series===button.dataset.series)path.classList.toggle("off",shown);
    });
  });
});
</script></body></html>
)HTML";

constexpr double kMillisecondsPerHour = 3.6e6, kMillisecondsPerMinute = 60'000;

const Figure& figure_of(std::string_view key) {
  const auto& all = figures();
  return *std::find_if(all.begin(), all.end(), [&](const Figure& one) { return one.key == key; });
}

std::string bars_of(const std::vector<Group>& groups, std::string_view key) {
  const Figure& figure = figure_of(key);
  std::vector<Bar> bars;
  for (const Group& group : groups) {
    std::vector<double> values;
    for (const Run* run : group.runs) values.push_back(figure.value(run->outcome));
    const Estimate found = estimate(values);
    bars.push_back({group.strategy, found.mean, found.half_width});
  }
  return bar_plot(std::string(figure.title), std::string(figure.unit), bars);
}

template <class Value>
std::string over_time(const std::vector<Group>& groups, const std::string& title,
                      const std::string& unit, Value value) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Outcome& outcome = groups[i].runs.front()->outcome;
    Line line{groups[i].strategy, i, {}, false};
    double cpu = 0;
    for (const Outcome::Node& node : outcome.nodes) cpu += static_cast<double>(node.cpu_millicores);
    for (const Timeline::Point& point : outcome.timeline.points()) {
      line.points.emplace_back(static_cast<double>(point.at.count()) / kMillisecondsPerHour,
                               value(point.mean, cpu));
    }
    lines.push_back(std::move(line));
  }
  return line_plot(title, "h", unit, lines);
}

std::string distribution(const std::vector<Group>& groups, const std::string& title,
                         Distribution Outcome::*which) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Line line{groups[i].strategy, i, {{0, 0}}, true};
    for (const auto& step : (groups[i].runs.front()->outcome.*which).cdf()) {
      line.points.emplace_back(step.value / kMillisecondsPerMinute, step.share * 100);
    }
    lines.push_back(std::move(line));
  }
  return line_plot(title, "min", "% of jobs", lines);
}

std::string legend_of(const std::vector<Group>& groups) {
  std::string out = "<div class=\"legend\">";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out += fmt::format(
        "<button type=\"button\" aria-pressed=\"true\" data-series=\"{}\"><svg viewBox=\"0 0 22 "
        "8\">"
        "<path class=\"line c{} d{}\" d=\"M0 4L22 4\"/></svg>{}</button>",
        escaped(groups[i].strategy), i % kColors, i / kColors % 3, escaped(groups[i].strategy));
  }
  return out + "</div>";
}

std::string table_html(const std::vector<Run>& runs) {
  std::string out = "<div class=\"wide\"><table>";
  const auto rows = table_of(runs);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += "<tr>";
    for (const std::string& cell : rows[i]) {
      const char* tag = i == 0 ? "th" : "td";
      out += fmt::format("<{}>{}</{}>", tag, escaped(cell), tag);
    }
    out += "</tr>\n";
  }
  return out + "</table></div>";
}

std::string section_of(const std::string& trace, const std::vector<Group>& groups) {
  const Outcome& first = groups.front().runs.front()->outcome;
  std::string out = fmt::format("<section><h2>{}</h2>", escaped(trace));
  out += fmt::format(
      "<p>{} machines, {} jobs, {} services; {} seed{}, whiskers are 95 % confidence intervals "
      "over "
      "seeds; curves are those of the first seed.</p>",
      first.nodes.size(), first.submitted, first.services, groups.front().runs.size(),
      groups.front().runs.size() == 1 ? "" : "s");
  out += "<div class=\"plots\">\n";
  for (const char* key : {"energyKWh", "co2Kg", "ciAdjustedCost", "turnaroundSeconds",
                          "waitingSeconds", "powerCycles"}) {
    out += bars_of(groups, key) + "\n";
  }
  out += "</div><h2>Over time</h2>" + legend_of(groups) + "<div class=\"plots\">\n";
  out += over_time(groups, "Power", "kW",
                   [](const Level& level, double) { return level.watts / 1000; }) +
         "\n";
  out += over_time(groups, "Carbon", "kg/h",
                   [](const Level& level, double) { return level.grams_per_hour / 1000; }) +
         "\n";
  out += over_time(groups, "CPU in use", "% of all machines",
                   [](const Level& level, double cpu) {
                     return cpu > 0 ? level.used_cpu / cpu * 100 : 0;
                   }) +
         "\n";
  out += over_time(groups, "Machines on", "",
                   [](const Level& level, double) { return level.machines_on; }) +
         "\n";
  out += over_time(groups, "Jobs waiting", "",
                   [](const Level& level, double) { return level.queued; }) +
         "\n";
  out += distribution(groups, "Waiting time, cumulative", &Outcome::waiting) + "\n";
  out += distribution(groups, "Turnaround, cumulative", &Outcome::turnaround) + "\n";
  return out + "</div></section>\n";
}

}  // namespace

std::string html_of(const std::vector<Run>& runs, const std::string& title) {
  std::string out = kHead;
  out += fmt::format("<title>{}</title></head><body><h1>{}</h1>\n", escaped(title), escaped(title));
  if (runs.empty()) return out + "<p>There are no runs.</p>" + kTail;
  out += fmt::format(
      "<p>From {} on, {} h. Made by kubectl kwatt.</p>", format_rfc3339(runs.front().outcome.start),
      number(static_cast<double>(runs.front().outcome.length.count()) / kMillisecondsPerHour));
  const std::vector<Group> groups = groups_of(runs);
  std::vector<std::string> traces;
  for (const Group& group : groups) {
    if (std::find(traces.begin(), traces.end(), group.trace) == traces.end()) {
      traces.push_back(group.trace);
    }
  }
  for (const std::string& trace : traces) {
    std::vector<Group> of_trace;
    for (const Group& group : groups) {
      if (group.trace == trace) of_trace.push_back(group);
    }
    out += section_of(trace, of_trace);
  }
  return out + "<section><h2>All figures</h2>" + table_html(runs) + "</section>" + kTail;
}

}  // namespace kwatt::simulator::report
