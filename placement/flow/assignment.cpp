#include "placement/flow/assignment.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include <fmt/format.h>

namespace kwatt::placement::flow {
namespace {

constexpr Cost kInfinite = std::numeric_limits<Cost>::max() / 4;
constexpr std::uint32_t kNobody = 0xFFFFFFFF;

Result<void> check(const Problem& p) {
  const auto bad = [](std::string what) {
    return fail(ErrorCode::invalid_argument, "assignment: " + std::move(what));
  };
  if (p.first.size() != p.jobs() + 1 || p.first.front() != 0 || p.first.back() != p.arcs.size()) {
    return bad("`first` does not divide the arcs among the jobs");
  }
  if (p.unit_first.empty() || p.unit_first.front() != 0 || p.unit_first.back() != p.unit.size()) {
    return bad("`unit_first` does not divide the units among the nodes");
  }
  for (std::size_t i = 0; i < p.jobs(); ++i) {
    if (p.first[i] > p.first[i + 1]) return bad(fmt::format("arcs of job {} are not in order", i));
  }
  for (std::size_t j = 0; j < p.nodes(); ++j) {
    if (p.unit_first[j] > p.unit_first[j + 1]) {
      return bad(fmt::format("units of node {} are not in order", j));
    }
    for (std::uint32_t k = p.unit_first[j] + 1; k < p.unit_first[j + 1]; ++k) {
      if (p.unit[k] < p.unit[k - 1]) {
        return bad(fmt::format("unit prices of node {} fall: they must be convex", j));
      }
    }
  }
  for (const Arc& arc : p.arcs) {
    if (arc.node >= p.nodes()) return bad(fmt::format("an arc leads to node {}", arc.node));
  }
  return {};
}

// Invariant between insertions, the certificate of Solution::price: for a node with l jobs,
// unit[l - 1] <= price <= unit[l]; every job that was inserted is where cost + price is least for
// it, leaving it out counting as one more place at its own price.
class Solver {
 public:
  explicit Solver(const Problem& p)
      : p_(p),
        place_(p.jobs(), kUnplaced),
        paid_(p.jobs()),
        price_(p.nodes()),
        load_(p.nodes()),
        head_(p.nodes(), kNobody),
        next_(p.jobs(), kNobody),
        before_(p.jobs(), kNobody),
        distance_(p.nodes(), kInfinite),
        from_(p.nodes(), kNobody),
        done_(p.nodes()),
        touched_at_(p.nodes()) {
    for (std::uint32_t j = 0; j < p.nodes(); ++j) price_[j] = next_unit(j);
  }

  Solution solve() {
    for (std::uint32_t i = 0; i < p_.jobs(); ++i) {
      if (!insert_directly(i)) insert(i);
    }
    Solution found;
    for (std::uint32_t i = 0; i < p_.jobs(); ++i) {
      found.cost += place_[i] == kUnplaced ? p_.unplaced[i] : paid_[i];
    }
    for (std::uint32_t j = 0; j < p_.nodes(); ++j) {
      for (std::uint32_t k = 0; k < load_[j]; ++k) found.cost += p_.unit[p_.unit_first[j] + k];
    }
    found.node = std::move(place_);
    found.price = std::move(price_);
    return found;
  }

 private:
  struct Label {
    Cost distance;
    std::uint32_t node;
    bool operator>(const Label& o) const {
      return distance != o.distance ? distance > o.distance : node > o.node;
    }
  };

  Cost next_unit(std::uint32_t j) const {  // what one more job costs the node
    const std::uint32_t at = p_.unit_first[j] + load_[j];
    return at < p_.unit_first[j + 1] ? p_.unit[at] : kInfinite;
  }

  // The best place has a unit at its price: nobody has to move.
  bool insert_directly(std::uint32_t i) {
    const Arc* best = nullptr;
    Cost least = p_.unplaced[i];
    for (std::uint32_t a = p_.first[i]; a < p_.first[i + 1]; ++a) {
      const Cost total = p_.arcs[a].cost + price_[p_.arcs[a].node];
      if (total < least || (total == least && best != nullptr &&
                            next_unit(p_.arcs[a].node) < next_unit(best->node))) {
        best = &p_.arcs[a], least = total;
      }
    }
    if (best == nullptr) return true;  // left out
    if (next_unit(best->node) > price_[best->node]) return false;
    put(i, best->node, best->cost);
    return true;
  }

  // The shortest path from the job to a unit, over jobs that make room (Dijkstra on reduced costs),
  // then the prices that keep the invariant, then the moves.
  void insert(std::uint32_t i) {
    touched_.clear();
    heap_.clear();
    end_ = {kInfinite, kNobody};
    out_ = kNobody;
    scan(i, 0, 0);
    while (!heap_.empty()) {
      const Label top = pop();
      if (top.distance >= end_.distance) break;
      if (done_[top.node] || top.distance > distance_[top.node]) continue;
      const std::uint32_t j = top.node;
      done_[j] = true;
      const Cost unit = next_unit(j);
      if (unit < kInfinite && top.distance + unit - price_[j] < end_.distance) {
        end_ = {top.distance + unit - price_[j], j};
        out_ = kNobody;
      }
      for (std::uint32_t k = head_[j]; k != kNobody; k = next_[k]) {
        scan(k, top.distance, paid_[k] + price_[j]);
      }
    }
    const Cost length = end_.distance;
    for (const std::uint32_t j : touched_) {
      if (distance_[j] < length) price_[j] += length - distance_[j];
    }
    // Move backwards along the path; a path may end in a job that is left out.
    std::uint32_t j = end_.node;
    if (out_ != kNobody) {
      if (out_ == i) return reset();
      j = place_[out_];
      take(out_);
    }
    while (true) {
      const std::uint32_t job = from_[j];
      const std::uint32_t was = place_[job];
      const Cost cost = arc_cost_[touched_at_[j]];
      if (was != kUnplaced) take(job);
      put(job, j, cost);
      if (job == i) break;
      j = was;
    }
    reset();
  }

  // Looks at all places of job k, which is reached at `base` and now pays `now` with prices.
  void scan(std::uint32_t k, Cost base, Cost now) {
    const Cost shift = base - now;
    if (p_.unplaced[k] + shift < end_.distance) {
      end_ = {p_.unplaced[k] + shift, kNobody};
      out_ = k;
    }
    for (std::uint32_t a = p_.first[k]; a < p_.first[k + 1]; ++a) {
      const Arc& arc = p_.arcs[a];
      const Cost distance = arc.cost + price_[arc.node] + shift;
      if (distance >= distance_[arc.node] || distance >= end_.distance) continue;
      if (distance_[arc.node] == kInfinite) {
        touched_at_[arc.node] = static_cast<std::uint32_t>(touched_.size());
        touched_.push_back(arc.node);
        if (arc_cost_.size() < touched_.size()) arc_cost_.resize(touched_.size());
      }
      distance_[arc.node] = distance;
      from_[arc.node] = k;
      arc_cost_[touched_at_[arc.node]] = arc.cost;
      heap_.push_back({distance, arc.node});
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
    }
  }

  Label pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    const Label top = heap_.back();
    heap_.pop_back();
    return top;
  }

  void put(std::uint32_t i, std::uint32_t j, Cost cost) {
    place_[i] = j, paid_[i] = cost;
    next_[i] = head_[j], before_[i] = kNobody;
    if (head_[j] != kNobody) before_[head_[j]] = i;
    head_[j] = i;
    ++load_[j];
  }
  void take(std::uint32_t i) {
    const std::uint32_t j = place_[i];
    if (before_[i] != kNobody)
      next_[before_[i]] = next_[i];
    else
      head_[j] = next_[i];
    if (next_[i] != kNobody) before_[next_[i]] = before_[i];
    place_[i] = kUnplaced;
    --load_[j];
  }
  void reset() {
    for (const std::uint32_t j : touched_) distance_[j] = kInfinite, done_[j] = false;
  }

  const Problem& p_;
  std::vector<std::uint32_t> place_;
  std::vector<Cost> paid_;  // by job: the cost of its arc
  std::vector<Cost> price_;
  std::vector<std::uint32_t> load_, head_, next_, before_;  // jobs on a node, as a list
  std::vector<Cost> distance_;
  std::vector<std::uint32_t> from_;  // by node: the job from which it was reached
  std::vector<char> done_;
  std::vector<std::uint32_t> touched_at_;  // by node: its position in touched_
  std::vector<std::uint32_t> touched_;
  std::vector<Cost> arc_cost_;  // by position in touched_
  std::vector<Label> heap_;
  Label end_{};
  std::uint32_t out_ = kNobody;  // the job at whose being left out the path ends
};

}  // namespace

Result<Solution> assign(const Problem& problem) {
  if (const auto checked = check(problem); !checked) return checked.error();
  return Solver(problem).solve();
}

Result<Cost> cost_of(const Problem& problem, std::span<const std::uint32_t> node) {
  if (const auto checked = check(problem); !checked) return checked.error();
  if (node.size() != problem.jobs()) {
    return fail(ErrorCode::invalid_argument, "assignment: one node for each job");
  }
  std::vector<std::uint32_t> load(problem.nodes());
  Cost sum = 0;
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (node[i] == kUnplaced) {
      sum += problem.unplaced[i];
      continue;
    }
    const auto begin = problem.arcs.begin() + problem.first[i];
    const auto end = problem.arcs.begin() + problem.first[i + 1];
    const auto arc = std::find_if(begin, end, [&](const Arc& a) { return a.node == node[i]; });
    if (arc == end) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("assignment: job {} has no arc to node {}", i, node[i]));
    }
    const std::uint32_t unit = problem.unit_first[node[i]] + load[node[i]]++;
    if (unit >= problem.unit_first[node[i] + 1]) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("assignment: node {} takes no more than {} jobs", node[i],
                              load[node[i]] - 1));
    }
    sum += arc->cost + problem.unit[unit];
  }
  return sum;
}

}  // namespace kwatt::placement::flow
