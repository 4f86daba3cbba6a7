#include "simulator/report/plot.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "simulator/report/report.hpp"

namespace kwatt::simulator::report {
namespace {

constexpr double kWidth = 560, kLineHeight = 250;
constexpr double kLeft = 62, kRight = 14, kTop = 30, kBottom = 40;
constexpr double kBarLeft = 150, kBarRight = 86, kBarStep = 26, kBarHeight = 16;

double finite(double value) {
  return std::isfinite(value) ? value : 0;
}

std::string begin(const std::string& title, double height) {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">"
      "<text class=\"title\" x=\"0\" y=\"14\">{}</text>",
      kWidth, height, escaped(title), escaped(title));
}

std::string axis_text(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>",
                     x, y, anchor, escaped(text));
}

std::string rule(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", x1, y1, x2,
      y2);
}

std::string path_of(const Line& line, double x_scale, double y_scale) {
  std::string path;
  double last_y = 0;
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    const double x = kLeft + finite(line.points[i].first) * x_scale;
    const double y = kLineHeight - kBottom - finite(line.points[i].second) * y_scale;
    if (i == 0) {
      path += fmt::format("M{:.1f} {:.1f}", x, y);
    } else if (line.steps) {
      path += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", x, last_y, x, y);
    } else {
      path += fmt::format("L{:.1f} {:.1f}", x, y);
    }
    last_y = y;
  }
  return path;
}

// Of a mark on an axis: a round number, so no more digits than it has.
std::string mark_text(double value) {
  return fmt::format("{:.10g}", value);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::vector<double> ticks(double most) {
  most = finite(most);
  if (most <= 0) return {0, 1};
  const double rough = most / 4;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step * 5.5 >= most) break;
    step = factor * power;
  }
  std::vector<double> marks{0};
  while (marks.back() < most) marks.push_back(step * static_cast<double>(marks.size()));
  return marks;
}

std::string bar_plot(const std::string& title, const std::string& unit,
                     const std::vector<Bar>& bars) {
  const double height = kTop + kBarStep * static_cast<double>(bars.size()) + 8;
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, finite(bar.value) + finite(bar.half_width));
  const double scale = most > 0 ? (kWidth - kBarLeft - kBarRight) / most : 0;
  std::string out = begin(unit.empty() ? title : fmt::format("{} ({})", title, unit), height);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double y = kTop + kBarStep * static_cast<double>(i);
    const double value = std::max(0.0, finite(bar.value)), half = finite(bar.half_width);
    const double end = kBarLeft + value * scale;
    const double middle = y + kBarHeight / 2;
    out += fmt::format("<g class=\"bar\"><title>{}: {}</title>", escaped(bar.label), number(value));
    out += axis_text(kBarLeft - 8, middle + 4, "end", bar.label);
    out += fmt::format(
        "<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"2\"/>",
        i % kColors, kBarLeft, y, std::max(0.5, value * scale), kBarHeight);
    if (half > 0) {
      const double low = kBarLeft + std::max(0.0, value - half) * scale;
      const double high = kBarLeft + (value + half) * scale;
      out += fmt::format("<path class=\"whisker\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", low,
                         middle, high, middle);
    }
    out +=
        axis_text(end + half * scale + 6, middle + 4, "start",
                  half > 0 ? fmt::format("{} ± {}", number(value), number(half)) : number(value));
    out += "</g>";
  }
  return out + "</svg>";
}

std::string line_plot(const std::string& title, const std::string& x_unit,
                      const std::string& y_unit, const std::vector<Line>& lines) {
  double most_x = 0, most_y = 0;
  bool any = false;
  for (const Line& line : lines) {
    any |= line.points.size() >= 2;
    for (const auto& [x, y] : line.points) {
      most_x = std::max(most_x, finite(x));
      most_y = std::max(most_y, finite(y));
    }
  }
  std::string out =
      begin(y_unit.empty() ? title : fmt::format("{} ({})", title, y_unit), kLineHeight);
  if (!any) return out + axis_text(kLeft, kLineHeight / 2, "start", "nothing to show") + "</svg>";
  const std::vector<double> xs = ticks(most_x), ys = ticks(most_y);
  const double x_scale = (kWidth - kLeft - kRight) / xs.back();
  const double y_scale = (kLineHeight - kTop - kBottom) / ys.back();
  for (const double y : ys) {
    const double at = kLineHeight - kBottom - y * y_scale;
    out += rule(kLeft, at, kWidth - kRight, at) + axis_text(kLeft - 6, at + 4, "end", mark_text(y));
  }
  for (const double x : xs) {
    const double at = kLeft + x * x_scale;
    out += axis_text(at, kLineHeight - kBottom + 16, "middle", mark_text(x));
  }
  out += axis_text(kWidth - kRight, kLineHeight - 6, "end", x_unit);
  for (const Line& line : lines) {
    if (line.points.size() < 2) continue;
    out += fmt::format(
        "<path class=\"line c{} d{}\" data-series=\"{}\" d=\"{}\"><title>{}</title>"
        "</path>",
        line.color % kColors, line.color / kColors % 3, escaped(line.label),
        path_of(line, x_scale, y_scale), escaped(line.label));
  }
  return out + "</svg>";
}

}  // namespace kwatt::simulator::report
