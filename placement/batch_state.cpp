#include "placement/batch_state.hpp"

#include <algorithm>
#include <numeric>

namespace kwatt::placement {
namespace {

using filters::Amounts;

// A milliwatt, summed over nodes.
constexpr double kRounding = 1.0;

void add_times(Amounts& sum, const Amounts& part, std::int64_t k) {
  sum.cpu += part.cpu * k;
  sum.memory += part.memory * k;
  sum.ephemeral += part.ephemeral * k;
  sum.pods += part.pods * k;
  if (sum.extended.size() < part.extended.size()) sum.extended.resize(part.extended.size());
  for (std::size_t i = 0; i < part.extended.size(); ++i) sum.extended[i] += part.extended[i] * k;
}

double watts_at(const Machine& machine, std::int64_t used) {
  if (machine.full <= 0) return machine.watts[0];
  const std::int64_t tenths = std::min(used, machine.full) * 10;
  const auto below = static_cast<std::size_t>(tenths / machine.full);
  if (below >= 10) return machine.watts[10];
  const double rest =
      static_cast<double>(tenths % machine.full) / static_cast<double>(machine.full);
  return machine.watts[below] + (machine.watts[below + 1] - machine.watts[below]) * rest;
}

}  // namespace

BatchState::BatchState(const std::vector<Shape>& shapes, const std::vector<Machine>& machines)
    : shapes_(&shapes),
      machines_(&machines),
      counts_(shapes.size() * machines.size()),
      left_(shapes.size()),
      load_(machines.size()),
      pods_(machines.size()),
      cost_(machines.size()),
      touched_(machines.size(), 1) {
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    left_[s] = static_cast<std::int64_t>(shapes[s].pods.size());
  }
  for (const Machine& machine : machines) free_.push_back(machine.free);
}

std::int64_t BatchState::takes_up_to(std::size_t s, std::size_t n, std::int64_t wanted) const {
  const Shape& what = shape(s);
  if (what.open[n] == 0) return 0;
  const Amounts& room = free_[n];
  std::int64_t most = wanted;
  const auto limit = [&most](std::int64_t need, std::int64_t have) {
    if (need > 0) most = std::min(most, std::max<std::int64_t>(0, have) / need);
  };
  limit(what.need.pods, room.pods);
  limit(what.need.cpu, room.cpu);
  limit(what.need.memory, room.memory);
  limit(what.need.ephemeral, room.ephemeral);
  for (std::size_t i = 0; i < what.need.extended.size(); ++i) {
    limit(what.need.extended[i], i < room.extended.size() ? room.extended[i] : 0);
  }
  limit(what.use, machine(n).full - machine(n).base - load_[n]);
  return most;
}

void BatchState::put(std::size_t s, std::size_t n, std::int64_t k) {
  const Shape& what = shape(s);
  counts_[n * shapes() + s] += static_cast<std::int32_t>(k);
  left_[s] -= k;
  load_[n] += what.use * k;
  pods_[n] += k;
  add_times(free_[n], what.need, -k);
  cost_[n] = cost(n, load_[n], pods_[n]);
  touched_[n] = 1;
}

void BatchState::take(std::size_t s, std::size_t n, std::int64_t k) {
  put(s, n, -k);
}

double BatchState::cost(std::size_t n, std::int64_t load, std::int64_t pods) const {
  const Machine& m = machine(n);
  const double now = watts_at(m, m.base);
  return pods > 0 ? watts_at(m, m.base + load) - now + m.wake : 0;
}

double BatchState::total() const {
  return std::accumulate(cost_.begin(), cost_.end(), 0.0);
}

std::int64_t BatchState::unplaced() const {
  return std::accumulate(left_.begin(), left_.end(), std::int64_t{0});
}

bool BatchState::better_than(const BatchState& other) const {
  const std::int64_t a = unplaced(), b = other.unplaced();
  return a != b ? a < b : total() < other.total() - kRounding;
}

}  // namespace kwatt::placement
