// Disruption budgets in Karpenter's shape.
#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "api/window.hpp"
#include "api/words.hpp"
#include "planner/guards.hpp"

namespace kwatt::planner {

std::optional<std::int64_t> scaled_amount(const std::string& nodes, std::int64_t total) {
  std::string_view digits = nodes;
  const bool share = !digits.empty() && digits.back() == '%';
  if (share) digits.remove_suffix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || number < 0) {
    return std::nullopt;
  }
  if (!share) return number;
  if (number > 100) return std::nullopt;
  return (number * total + 99) / 100;
}

DisruptionBudgets::DisruptionBudgets(const Snapshot& snapshot, const api::DisruptionSpec& spec,
                                     const std::vector<NodeName>& selected) {
  const auto total = static_cast<std::int64_t>(selected.size());
  for (const NodeName& name : selected) {
    const auto node = snapshot.nodes.find(name);
    if (node != snapshot.nodes.end() && disrupts(node->second.operation())) ++used_;
  }
  for (std::size_t i = 0; i < spec.budgets.size(); ++i) {
    const api::Budget& budget = spec.budgets[i];
    const auto window = api::window_state(budget, snapshot.now);
    if (window && !window->active) continue;
    Active active;
    active.name = budget.name.empty() ? fmt::format("budgets[{}]", i) : budget.name;
    active.reasons = budget.reasons;
    const auto amount = scaled_amount(budget.nodes, total);
    // A budget that cannot be read (validation refuses it) forbids everything.
    active.closed = !budget.allow || !window || !amount;
    active.allowed = active.closed ? 0 : *amount;
    if (window) active.until = window->until;
    active_.push_back(std::move(active));
  }
}

const DisruptionBudgets::Active* DisruptionBudgets::tightest(std::string_view reason) const {
  const Active* least = nullptr;
  for (const Active& active : active_) {
    const bool concerned =
        active.reasons.empty() ||
        std::find(active.reasons.begin(), active.reasons.end(), reason) != active.reasons.end();
    if (!concerned) continue;
    if (least == nullptr || active.allowed < least->allowed) least = &active;
  }
  return least;
}

std::optional<Verdict> DisruptionBudgets::refuse(Reason reason) const {
  const Active* least = tightest(api::to_string(reason));
  if (least == nullptr || used_ < least->allowed) return std::nullopt;
  if (least->closed || (least->allowed == 0 && least->until)) {
    return Verdict{Reason::Window, least->until
                                       ? fmt::format("budget {} allows nothing until {}",
                                                     least->name, format_rfc3339(*least->until))
                                       : fmt::format("budget {} allows nothing", least->name)};
  }
  return Verdict{Reason::BudgetExhausted,
                 fmt::format("budget {} allows {} nodes at a time, {} are in use", least->name,
                             least->allowed, used_)};
}

std::vector<BudgetUse> DisruptionBudgets::uses() const {
  std::vector<BudgetUse> uses;
  std::set<const Active*> binding;
  for (const std::string_view reason : api::kBudgetReasons) binding.insert(tightest(reason));
  for (const Active& active : active_) {
    uses.push_back({active.name, active.allowed, used_, binding.count(&active) > 0, active.until});
  }
  return uses;
}

std::optional<TimePoint> DisruptionBudgets::next_change() const {
  std::optional<TimePoint> next;
  for (const Active& active : active_) {
    if (active.until && (!next || *active.until < *next)) next = active.until;
  }
  return next;
}

}  // namespace kwatt::planner
