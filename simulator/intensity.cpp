#include "simulator/intensity.hpp"

#include <algorithm>

namespace kwatt::simulator {
namespace {

std::int64_t index_at(const Intensity& series, TimePoint time) {
  if (time < series.start) return 0;
  const std::int64_t index = (time - series.start) / series.step;
  return std::min(index, static_cast<std::int64_t>(series.grams_per_kwh.size()) - 1);
}

}  // namespace

double Intensity::at(TimePoint time) const {
  if (grams_per_kwh.empty()) return otherwise;
  return grams_per_kwh[static_cast<std::size_t>(index_at(*this, time))];
}

TimePoint Intensity::next_change(TimePoint time) const {
  const auto size = static_cast<std::int64_t>(grams_per_kwh.size());
  if (size < 2) return TimePoint::max();
  const std::int64_t index = time < start ? 0 : index_at(*this, time);
  return index + 1 < size ? start + step * (index + 1) : TimePoint::max();
}

double Intensity::mean(TimePoint from, TimePoint to) const {
  if (to <= from) return at(from);
  double sum = 0;
  TimePoint time = from;
  while (time < to) {
    const TimePoint until = std::min(to, next_change(time));
    sum += at(time) * static_cast<double>((until - time).count());
    time = until;
  }
  return sum / static_cast<double>((to - from).count());
}

const Intensity& intensity_of(const Intensities& all, const std::string& zone) {
  static const Intensity none;
  auto found = all.find(zone);
  if (found == all.end()) found = all.find("");
  return found == all.end() ? none : found->second;
}

}  // namespace kwatt::simulator
