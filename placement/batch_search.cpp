// Improvement for place_batch(): descent, and emptying nodes to get out of where descent ends.
#include <algorithm>
#include <limits>

#include "placement/batch_state.hpp"

namespace kwatt::placement {
namespace {

constexpr double kHopeless = 1.03;  // swaps seldom save more than the rest of this
constexpr std::size_t kNewNodes = 4;
constexpr double kEnough = 1.0;  // milliwatts a step must save, so that rounding never loops

// k pods of shape s from node a to node b, if that saves power.
bool move(BatchState& state, std::size_t s, std::size_t a, std::size_t b, std::int64_t k) {
  const std::int64_t use = state.shape(s).use * k;
  const double saved = state.cost(a) + state.cost(b) -
                       state.cost(a, state.load(a) - use, state.pods_on(a) - k) -
                       state.cost(b, state.load(b) + use, state.pods_on(b) + k);
  if (saved < kEnough) return false;
  state.take(s, a, k);
  state.put(s, b, k);
  return true;
}

bool moves(BatchState& state) {
  bool any = false;
  for (std::size_t a = 0; a < state.nodes(); ++a) {
    if (state.pods_on(a) == 0) continue;
    for (std::size_t s = 0; s < state.shapes(); ++s) {
      for (std::size_t b = 0; b < state.nodes() && state.count(s, a) > 0; ++b) {
        if (a == b || !(state.touched(a) || state.touched(b))) continue;
        const std::int64_t most = state.takes_up_to(s, b, state.count(s, a));
        // Curves bend both ways: many pods may save where one does not.
        for (std::int64_t k = most; k > 0; k /= 2) {
          if (k <= state.count(s, a) && move(state, s, a, b, k)) {
            any = true;
            break;
          }
        }
      }
    }
  }
  return any;
}

// k pods of s on a for one pod of t on b.
bool swap(BatchState& state, std::size_t s, std::size_t a, std::int64_t k, std::size_t t,
          std::size_t b) {
  if (state.count(s, a) < k || state.count(t, b) < 1) return false;
  const std::int64_t shift = state.shape(t).use - state.shape(s).use * k;  // from b to a
  if (shift == 0) return false;
  const double saved = state.cost(a) + state.cost(b) -
                       state.cost(a, state.load(a) + shift, state.pods_on(a) + 1 - k) -
                       state.cost(b, state.load(b) - shift, state.pods_on(b) - 1 + k);
  if (saved < kEnough) return false;
  state.take(s, a, k);
  state.take(t, b, 1);
  if (state.takes(t, a) && state.takes_up_to(s, b, k) == k) {
    state.put(t, a, 1);
    state.put(s, b, k);
    return true;
  }
  state.put(s, a, k);
  state.put(t, b, 1);
  return false;
}

bool swaps(BatchState& state) {
  bool any = false;
  for (std::size_t a = 0; a < state.nodes(); ++a) {
    for (std::size_t b = 0; b < state.nodes(); ++b) {
      if (a == b || state.pods_on(a) == 0 || state.pods_on(b) == 0 ||
          !(state.touched(a) || state.touched(b))) {
        continue;
      }
      for (std::size_t s = 0; s < state.shapes(); ++s) {
        if (state.count(s, a) == 0) continue;
        for (std::size_t t = 0; t < state.shapes() && state.count(s, a) > 0; ++t) {
          if (s == t || state.count(t, b) == 0) continue;
          const std::int64_t ratio =
              state.shape(t).use / std::max<std::int64_t>(1, state.shape(s).use);
          for (const std::int64_t k : {std::int64_t{1}, ratio, ratio + 1}) {
            if (k > 0 && swap(state, s, a, k, t, b)) any = true;
          }
        }
      }
    }
  }
  return any;
}

void empty(BatchState& state, std::size_t n) {
  for (std::size_t s = 0; s < state.shapes(); ++s) {
    if (const std::int64_t k = state.count(s, n); k > 0) state.take(s, n, k);
  }
}

class Search {
 public:
  Search(BatchState& best, std::int64_t rounds) : best_(best), rounds_(rounds) {
    std::vector<std::pair<std::int64_t, std::size_t>> by_size;
    std::size_t pods = 0;
    for (std::size_t s = 0; s < best.shapes(); ++s) {
      by_size.emplace_back(std::max(best.shape(s).use, best.shape(s).need.cpu), s);
      pods += best.shape(s).pods.size();
    }
    std::sort(by_size.begin(), by_size.end());
    std::size_t seen = 0;
    for (const auto& [size, s] : by_size) {
      seen += best.shape(s).pods.size();
      if (seen * 2 <= pods) small_.push_back(s);
    }
  }

  void run() {
    bool again = true;
    while (again && rounds_ > 0) {
      again = one_node(false) || new_nodes(1, 1, false) || one_node(true) || two_nodes() ||
              new_nodes(1, 1, true) || new_nodes(1, 2, false) || new_nodes(1, 2, true) ||
              new_nodes(2, 1, false) || rebuilt(1, 1) || rebuilt(1, 2) || rebuilt(2, 1) ||
              rebuilt(2, 2);
    }
  }

 private:
  using Set = std::vector<std::uint8_t>;

  // Nodes in use, the dearest per millicore first.
  std::vector<std::size_t> in_use() const {
    std::vector<std::size_t> nodes;
    for (std::size_t n = 0; n < best_.nodes(); ++n) {
      if (best_.pods_on(n) > 0) nodes.push_back(n);
    }
    const auto price = [this](std::size_t n) {
      return best_.cost(n) / static_cast<double>(std::max<std::int64_t>(1, best_.load(n)));
    };
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](std::size_t a, std::size_t b) { return price(a) > price(b); });
    return nodes;
  }
  // Those that are not, a few of them: the best by watts per millicore at the best load of their
  // curves, waking included, and the cheapest to have running at all. Of alike ones two each, which
  // may be needed together.
  std::vector<std::size_t> unused() const {
    std::vector<std::size_t> nodes;
    const auto add_first = [&](const auto& price) {
      std::vector<std::pair<double, std::size_t>> ranked;
      for (std::size_t n = 0; n < best_.nodes(); ++n) {
        if (best_.pods_on(n) == 0) ranked.emplace_back(price(n), n);
      }
      std::sort(ranked.begin(), ranked.end());
      std::size_t alike = 0;
      for (std::size_t i = 0, added = 0; i < ranked.size() && added < kNewNodes; ++i) {
        alike = i > 0 && ranked[i].first <= ranked[i - 1].first ? alike + 1 : 0;
        const std::size_t n = ranked[i].second;
        if (alike >= 2 || std::find(nodes.begin(), nodes.end(), n) != nodes.end()) continue;
        nodes.push_back(n);
        ++added;
      }
    };
    add_first([this](std::size_t n) { return price_when_new(n); });
    add_first([this](std::size_t n) { return best_.cost(n, best_.machine(n).full / 10, 1); });
    return nodes;
  }
  double price_when_new(std::size_t n) const {
    const Machine& machine = best_.machine(n);
    double least = std::numeric_limits<double>::max();
    for (std::int64_t i = 1; i <= 10; ++i) {
      const std::int64_t extra = machine.full * i / 10 - machine.base;
      if (extra > 0) least = std::min(least, best_.cost(n, extra, 1) / static_cast<double>(extra));
    }
    return least;
  }

  // One attempt; true: it is the new best. `stir`: the smaller half of the pods is placed anew
  // too, wherever they are, so that larger ones find room where those were.
  bool attempt(const std::vector<std::size_t>& emptied, const FillRule& rule, bool stir) {
    --rounds_;
    BatchState trial = best_;
    if (stir) {
      for (const std::size_t s : small_) {
        for (std::size_t n = 0; n < trial.nodes(); ++n) {
          if (const std::int64_t k = trial.count(s, n); k > 0) trial.take(s, n, k);
        }
      }
    }
    for (const std::size_t n : emptied) empty(trial, n);
    fill(trial, rule);
    // What found no room while nodes were closed may now have it.
    if (trial.unplaced() > best_.unplaced()) fill(trial, {});
    while (moves(trial)) {
    }
    if (trial.total() > best_.total() * kHopeless) return false;
    descend(trial);
    if (!trial.better_than(best_)) return false;
    best_ = std::move(trial);
    return true;
  }

  Set set_of(const std::vector<std::size_t>& nodes) const {
    Set set(best_.nodes());
    for (const std::size_t n : nodes) set[n] = 1;
    return set;
  }

  bool one_node(bool stir) {
    for (const std::size_t n : in_use()) {
      if (rounds_ <= 0) return false;
      if (attempt({n}, {set_of({n}), {}, stir}, stir)) return true;
    }
    return false;
  }

  // One or two nodes that are not in use instead of one or two that are.
  bool new_nodes(std::size_t emptied, std::size_t fresh, bool stir) {
    const auto leaving = combinations(in_use(), emptied);
    const auto coming = combinations(unused(), fresh);
    for (const auto& out : leaving) {
      const Set closed = set_of(out);
      for (const auto& in : coming) {
        if (rounds_ <= 0) return false;
        if (attempt(out, {closed, set_of(in), stir}, stir)) return true;
      }
    }
    return false;
  }

  // Everything anew on the nodes in use, but with others instead of one or two of them: for what
  // no rearrangement of a few nodes reaches, as when memory or the number of pods is short.
  bool rebuilt(std::size_t leaving, std::size_t coming) {
    const auto used = in_use();
    const auto ins = combinations(unused(), coming);
    for (const auto& out : combinations(used, leaving)) {
      for (const auto& in : ins) {
        if (rounds_ <= 0) return false;
        Set open = set_of(used), closed(best_.nodes());
        for (const std::size_t n : out) open[n] = 0;
        for (const std::size_t n : in) open[n] = 1;
        for (std::size_t n = 0; n < closed.size(); ++n) closed[n] = open[n] == 0 ? 1 : 0;
        if (attempt(used, {closed, open, true}, false)) return true;
      }
    }
    return false;
  }

  bool two_nodes() {
    for (const auto& both : combinations(in_use(), 2)) {
      if (rounds_ <= 0) return false;
      if (attempt(both, {}, false) || attempt(both, {set_of(both), {}, false}, false)) return true;
    }
    return false;
  }

  // Single nodes, or pairs, in the order of the list.
  static std::vector<std::vector<std::size_t>> combinations(const std::vector<std::size_t>& nodes,
                                                            std::size_t size) {
    std::vector<std::vector<std::size_t>> found;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (size == 1) found.push_back({nodes[i]});
      for (std::size_t j = i + 1; size == 2 && j < nodes.size(); ++j) {
        found.push_back({nodes[i], nodes[j]});
      }
    }
    return found;
  }

  BatchState& best_;
  std::int64_t rounds_;
  std::vector<std::size_t> small_;  // shapes: the smaller half of the pods
};

}  // namespace

void descend(BatchState& state) {
  while (moves(state) || swaps(state)) {
  }
  state.settle();
}

void search(BatchState& state, std::int64_t rounds) {
  Search{state, rounds}.run();
}

}  // namespace kwatt::placement
