#pragma once
// What consolidation asks of a forecast: a VM's load in the coming hour, from its past alone.
#include <span>

namespace kwatt::planner::consolidation {

struct Outlook {
  double mean = 0;       // share of the VM's size
  double deviation = 0;  // standard deviation of single samples around the mean
};

// `past` is utilization 0..1, oldest first, with a sample at least; values may be any finite ones.
using Forecast = Outlook (*)(std::span<const double> past);

// The mean and deviation of the last two hours of 5-minute samples, newer ones counting more. A
// deviation of a tenth counts for three samples more, so that a VM of which little is known is not
// taken for a steady one.
Outlook recent_outlook(std::span<const double> past);

}  // namespace kwatt::planner::consolidation
