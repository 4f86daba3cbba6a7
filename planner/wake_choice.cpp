#include "planner/wake_choice.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "planner/wake_kinds.hpp"

namespace kwatt::planner {
namespace {

using PodPtr = std::shared_ptr<const api::Pod>;
using std::chrono::minutes;

constexpr std::size_t kKindsTried = 32;
constexpr std::size_t kDropsTried = 32;

struct Fill {
  std::vector<std::size_t> pods;  // positions in the remaining ones
  std::int64_t weight = 0;        // how much of what remains it takes: count, cpu and memory
  Milliwatts increase;
};

Millicores sum_cpu(const std::vector<PodPtr>& pods) {
  Millicores sum;
  for (const PodPtr& pod : pods) sum += pod->spec->requests.cpu;
  return sum;
}

class Chooser {
 public:
  Chooser(Pass& pass, std::vector<PodPtr>& remaining, std::vector<WakeKind> kinds)
      : pass_(pass), remaining_(remaining), kinds_(std::move(kinds)) {}

  std::vector<WakeChoice> run(std::size_t limit) {
    while (!remaining_.empty() && chosen_.size() < limit && take_best()) {
    }
    if (remaining_.empty()) finish_cheaper();
    drop_redundant();
    return std::move(chosen_);
  }

 private:
  // A prefix of the choice, finished by one node that holds all the rest.
  struct Finish {
    std::size_t prefix = 0, mark = 0;
    const NodeView* node = nullptr;
    std::vector<PodPtr> pods;
    Milliwatts total{std::numeric_limits<std::int64_t>::max()};
  };

  Fill fill(const NodeView& node) {
    Fill result;
    const std::size_t mark = pass_.what_if.mark();
    pass_.what_if.assume_awake(node.name());
    std::set<std::pair<const api::PodTemplate*, std::string_view>> refused;
    std::vector<PodPtr> fitted;
    std::int64_t cpu = 0, memory = 0;
    for (std::size_t i = 0; i < remaining_.size(); ++i) {
      const PodPtr& pod = remaining_[i];
      const std::pair<const api::PodTemplate*, std::string_view> kind{pod->spec.get(),
                                                                      pod->namespace_name};
      if (refused.contains(kind)) continue;
      if (pass_.what_if.put(pod, node.name())) {
        result.pods.push_back(i);
        fitted.push_back(pod);
        cpu += pod->spec->requests.cpu.count();
        memory += pod->spec->requests.memory.count();
      } else if (pod->spec->required_pod_affinity.empty() && pod->spec->topology_spread.empty()) {
        refused.insert(kind);
      }
    }
    pass_.what_if.rollback(mark);
    result.increase = wake_increase(node, Millicores{cpu}, pass_.spec.power_off);
    const auto share = [](std::int64_t part, std::int64_t all) {
      return all <= 0 ? 0 : part / std::max<std::int64_t>(1, all / 1000);
    };
    result.weight = share(static_cast<std::int64_t>(fitted.size()) * 1000,
                          static_cast<std::int64_t>(remaining_.size()) * 1000) +
                    share(cpu, remaining_cpu_) + share(memory, remaining_memory_);
    return result;
  }

  void measure_remaining() {
    remaining_cpu_ = sum_cpu(remaining_).count();
    remaining_memory_ = 0;
    for (const PodPtr& pod : remaining_) {
      remaining_memory_ += pod->spec->requests.memory.count();
    }
  }

  // One round; false: no candidate holds any of the remaining pods.
  bool take_best() {
    measure_remaining();
    WakeKind* best_kind = nullptr;
    Fill best;
    std::size_t tried = 0;
    for (WakeKind& kind : kinds_) {
      if (kind.nodes.empty()) continue;
      if (best_kind != nullptr && (kind.rank > best_kind->rank || tried >= kKindsTried)) break;
      const NodeView& node = *kind.nodes.front();
      Fill candidate = fill(node);
      if (candidate.pods.empty()) continue;
      ++tried;
      consider_finish(node, candidate);
      if (best_kind == nullptr || better(candidate, best)) {
        best = std::move(candidate);
        best_kind = &kind;
      }
    }
    if (best_kind == nullptr) return false;
    const NodeView& node = *best_kind->nodes.front();
    best_kind->nodes.pop_front();
    std::vector<PodPtr> pods;
    for (const std::size_t i : best.pods) pods.push_back(remaining_[i]);
    for (auto i = best.pods.rbegin(); i != best.pods.rend(); ++i) {
      remaining_.erase(remaining_.begin() + static_cast<std::ptrdiff_t>(*i));
    }
    wake(node, std::move(pods), best.increase);
    return true;
  }

  // Less power per weight; equal: less power. Kinds come sorted, so the first wins ties.
  static bool better(const Fill& a, const Fill& b) {
    const std::int64_t left = a.increase.count() * b.weight, right = b.increase.count() * a.weight;
    return left != right ? left < right : a.increase < b.increase;
  }

  void consider_finish(const NodeView& node, const Fill& candidate) {
    if (candidate.pods.size() != remaining_.size()) return;
    const Milliwatts total = spent_ + candidate.increase;
    if (total >= finish_.total) return;
    finish_ = {chosen_.size(), pass_.what_if.mark(), &node, remaining_, total};
  }

  void wake(const NodeView& node, std::vector<PodPtr> pods, Milliwatts increase) {
    pass_.what_if.assume_awake(node.name());
    for (const PodPtr& pod : pods) pass_.what_if.put(pod, node.name());
    spent_ += increase;
    chosen_.push_back({&node, std::move(pods), increase});
  }

  void finish_cheaper() {
    if (finish_.node == nullptr || finish_.total >= spent_) return;
    pass_.what_if.rollback(finish_.mark);
    for (std::size_t i = finish_.prefix; i < chosen_.size(); ++i) spent_ -= chosen_[i].increase;
    chosen_.resize(finish_.prefix);
    wake(*finish_.node, finish_.pods, finish_.total - spent_);
  }

  // Dearest first: could its pods run beside the others?
  void drop_redundant() {
    std::vector<const NodeView*> order;
    for (const WakeChoice& choice : chosen_) order.push_back(choice.node);
    std::stable_sort(order.begin(), order.end(), [this](const NodeView* a, const NodeView* b) {
      return choice_of(a)->increase > choice_of(b)->increase;
    });
    if (order.size() > kDropsTried) order.resize(kDropsTried);
    for (const NodeView* node : order) {
      if (chosen_.size() < 2) return;
      const auto choice = choice_of(node);
      const std::size_t mark = pass_.what_if.mark();
      pass_.what_if.exclude(node->name());
      const bool all_elsewhere =
          std::all_of(choice->pods.begin(), choice->pods.end(),
                      [this](const PodPtr& pod) { return pass_.what_if.place(pod).has_value(); });
      if (all_elsewhere) {
        spent_ -= choice->increase;
        chosen_.erase(choice);
      } else {
        pass_.what_if.rollback(mark);
      }
    }
  }

  std::vector<WakeChoice>::iterator choice_of(const NodeView* node) {
    return std::find_if(chosen_.begin(), chosen_.end(),
                        [&](const WakeChoice& choice) { return choice.node == node; });
  }

  Pass& pass_;
  std::vector<PodPtr>& remaining_;
  std::vector<WakeKind> kinds_;
  std::vector<WakeChoice> chosen_;
  Finish finish_;
  Milliwatts spent_;
  std::int64_t remaining_cpu_ = 0, remaining_memory_ = 0;
};

}  // namespace

Milliwatts wake_increase(const NodeView& node, Millicores load, const api::PowerOffSpec& spec) {
  const std::int64_t cpu = std::max<std::int64_t>(1, node.node->allocatable.cpu.count());
  const Milliwatts running = node.model.curve.at(Permille{load.count() * 1000 / cpu});
  const Duration on_for = std::max<Duration>(spec.min_on_duration, minutes{10});
  return running + Milliwatts{node.model.boot_energy.count() * 1000 / on_for.count()};
}

std::vector<WakeChoice> choose_nodes(Pass& pass, std::vector<PodPtr>& pods,
                                     const std::vector<WakeCandidate>& candidates,
                                     std::size_t limit) {
  return Chooser{pass, pods, kinds_of(pass, candidates, pods)}.run(limit);
}

}  // namespace kwatt::planner
