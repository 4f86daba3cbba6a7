// Greedy construction for place_batch().
#include <algorithm>
#include <limits>
#include <numeric>

#include "placement/batch_state.hpp"

namespace kwatt::placement {
namespace {

using filters::Amounts;

constexpr double kNoRoom = std::numeric_limits<double>::max();

bool in(const std::vector<std::uint8_t>& set, std::size_t n) {
  return !set.empty() && set[n] != 0;
}

// What is left of the batch, to see how far it could load one node.
struct Rest {
  double use = 0, cpu = 0, memory = 0, pods = 0;
  void add(const Shape& shape, double k) {
    use += static_cast<double>(shape.use) * k;
    cpu += static_cast<double>(shape.need.cpu) * k;
    memory += static_cast<double>(shape.need.memory) * k;
    pods += k;
  }
};

class Filler {
 public:
  Filler(BatchState& state, const FillRule& rule) : state_(state), rule_(rule) {}

  void run() {
    for (std::size_t s = 0; s < state_.shapes(); ++s) {
      rest_.add(state_.shape(s), static_cast<double>(state_.left(s)));
    }
    for (const std::size_t s : largest_first()) place_all(s);
  }

 private:
  // By the share of the largest machine that a pod takes, cpu or memory, whichever is more.
  std::vector<std::size_t> largest_first() const {
    double cpu = 1, memory = 1;
    for (std::size_t n = 0; n < state_.nodes(); ++n) {
      cpu = std::max(cpu, static_cast<double>(state_.machine(n).free.cpu));
      memory = std::max(memory, static_cast<double>(state_.machine(n).free.memory));
    }
    const auto size = [&](std::size_t s) {
      const Shape& shape = state_.shape(s);
      const auto wanted = static_cast<double>(std::max(shape.need.cpu, shape.use));
      return std::max(wanted / cpu, static_cast<double>(shape.need.memory) / memory);
    };
    std::vector<std::size_t> order(state_.shapes());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
    return order;
  }

  // Every pod of the shape goes where it is cheapest then. A price is asked again where something
  // changed; that the rest shrinks meanwhile is seen by the next shape.
  void place_all(std::size_t s) {
    std::vector<double> price(state_.nodes());
    const auto ask = [&](std::size_t n) {
      price[n] =
          in(rule_.closed, n) || !state_.takes(s, n) ? kNoRoom : price_on(s, n) * inequality(s, n);
    };
    for (std::size_t n = 0; n < price.size() && state_.left(s) > 0; ++n) ask(n);
    while (state_.left(s) > 0) {
      const auto least = std::min_element(price.begin(), price.end());
      if (least == price.end() || *least == kNoRoom) break;
      const auto n = static_cast<std::size_t>(least - price.begin());
      state_.put(s, n, 1);
      rest_.add(state_.shape(s), -1);
      ask(n);
    }
    // What fits nowhere will not fill a node.
    rest_.add(state_.shape(s), -static_cast<double>(state_.left(s)));
  }

  // Watts per millicore on the best stretch that begins with this pod and that what is left can
  // fill. A pod without use pays for one millicore.
  double price_on(std::size_t s, std::size_t n) const {
    const Machine& machine = state_.machine(n);
    const std::int64_t load = state_.load(n), pods = state_.pods_on(n);
    const auto use = static_cast<double>(std::max<std::int64_t>(1, state_.shape(s).use));
    const double waived = pods == 0 && in(rule_.favoured, n) ? machine.wake : 0;
    const double now = state_.cost(n) + waived;
    const auto price = [&](double extra) {
      const auto to = load + static_cast<std::int64_t>(extra);
      return (state_.cost(n, to, pods + 1) - now) / extra;
    };
    double least = price(use);
    const double reach = reachable(n);
    if (reach <= use) return least;
    least = std::min(least, price(reach));
    for (std::int64_t i = 1; i <= 10; ++i) {
      const std::int64_t to = machine.full * i / 10;
      const auto extra = static_cast<double>(to - machine.base - load);
      if (extra > use && extra < reach) least = std::min(least, price(extra));
    }
    return least;
  }

  // 1 to 1.5; 1 if not asked for.
  double inequality(std::size_t s, std::size_t n) const {
    if (!rule_.aligned) return 1;
    const Amounts &need = state_.shape(s).need, &room = state_.free(n);
    const auto share = [](std::int64_t part, std::int64_t all) {
      return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
    };
    const double cpu = share(need.cpu, room.cpu), memory = share(need.memory, room.memory),
                 pods = share(need.pods, room.pods);
    const double most = std::max({cpu, memory, pods});
    return most > 0 ? 1 + (most - (cpu + memory + pods) / 3) / most * 0.75 : 1;
  }

  double reachable(std::size_t n) const {
    const Machine& machine = state_.machine(n);
    const Amounts& room = state_.free(n);
    double reach =
        std::min(rest_.use, static_cast<double>(machine.full - machine.base - state_.load(n)));
    const auto limit = [&](std::int64_t have, double wanted) {
      if (wanted > 0 && static_cast<double>(have) < wanted) {
        reach = std::min(reach, rest_.use * static_cast<double>(have) / wanted);
      }
    };
    limit(room.cpu, rest_.cpu);
    limit(room.memory, rest_.memory);
    limit(room.pods, rest_.pods);
    return reach;
  }

  BatchState& state_;
  const FillRule& rule_;
  Rest rest_;
};

}  // namespace

void fill(BatchState& state, const FillRule& rule) {
  Filler{state, rule}.run();
}

}  // namespace kwatt::placement
