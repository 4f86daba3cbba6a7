#pragma once
// Plots as SVG text: bars with whiskers, and lines. Colours are classes c0 … c7 of the page's style
// (html.cpp), so that light and dark are its business.
#include <string>
#include <utility>
#include <vector>

namespace kwatt::simulator::report {

inline constexpr std::size_t kColors = 8;

struct Bar {
  std::string label;
  double value = 0, half_width = 0;  // of the whisker; 0: none
};

struct Line {
  std::string label;
  std::size_t color = 0;                          // any number; colours repeat with another dash
  std::vector<std::pair<double, double>> points;  // by x
  bool steps = false;                             // level between points, as a distribution is
};

// What <, >, & and quotes are in HTML and SVG.
std::string escaped(std::string_view text);

// One horizontal bar each, from 0. Values that are not finite count as 0.
std::string bar_plot(const std::string& title, const std::string& unit,
                     const std::vector<Bar>& bars);
// y from 0 on. Nothing to draw (no line with two points): says so.
std::string line_plot(const std::string& title, const std::string& x_unit,
                      const std::string& y_unit, const std::vector<Line>& lines);

// Values at which an axis from 0 to `most` has its marks: 0, and steps of 1, 2 or 5 times a power
// of ten, about four of them, the last one at or above `most`.
std::vector<double> ticks(double most);

}  // namespace kwatt::simulator::report
