#include "planner/cap_budget.hpp"

#include <algorithm>
#include <charconv>

#include "planner/request.hpp"

namespace kwatt::planner {
namespace {

std::optional<std::int64_t> our_cap(const api::Node& node) {
  const std::string key{names::kPowerCap};
  const std::string* text = node.meta.annotations.find(key);
  if (text == nullptr || request_on(node).keys.count(key) == 0) return std::nullopt;
  std::int64_t watts = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), watts);
  if (error != std::errc{} || end != text->data() + text->size() || watts <= 0) return std::nullopt;
  return watts;
}

// In watts, rounded up: a bound.
std::int64_t maximum_of(const NodeView& node) {
  const std::int64_t modelled = (node.model.curve.maximum().count() + 999) / 1000;
  if (node.model.specified || node.machine == nullptr) return modelled;
  const std::int64_t given = node.machine->spec.cap_range.max_watts;
  if (given > 0) return given;
  const std::int64_t reported = node.machine->status.report.cap_max_watts;
  return reported > 0 ? reported : modelled;
}

// What the agent confirms for a machine that carries this cap.
std::int64_t bound_under(const NodeView& node, std::int64_t requested, std::int64_t maximum) {
  const api::AgentReport& report = node.machine->status.report;
  // A machine that does not run, or has just come up, has lost what the old report says.
  const bool effective = node.power_state() == api::PowerState::On && node.ready &&
                         report.converged && report.effective_cap_watts > 0 &&
                         report.effective_cap_watts <= requested;
  return effective ? std::min(requested, maximum) : maximum;
}

}  // namespace

bool draws_power(const NodeView& node) {
  return node.power_state() != api::PowerState::Off || !node.operation().id.empty();
}

CapFacts cap_facts(const NodeView& node) {
  CapFacts facts;
  facts.maximum = maximum_of(node);
  if (node.machine != nullptr) {
    const api::CapRange& given = node.machine->spec.cap_range;
    const api::AgentReport& report = node.machine->status.report;
    facts.cap_max = given.max_watts > 0 ? given.max_watts : report.cap_max_watts;
    facts.cap_min = given.min_watts > 0 ? given.min_watts : report.cap_min_watts;
  }
  facts.requested = our_cap(*node.node);
  facts.kept = facts.requested && request_on(*node.node).keep_cap;
  facts.bound =
      facts.requested ? bound_under(node, *facts.requested, facts.maximum) : facts.maximum;
  const api::Operation& operation = node.operation();
  if (!operation.id.empty() && operation.kind == api::OperationKind::SetCap) {
    const std::int64_t coming = operation.request.power_cap_watts.value_or(facts.maximum);
    facts.bound = std::max(facts.bound, std::min(coming, facts.maximum));
  }
  if (!draws_power(node)) facts.bound = 0;
  return facts;
}

PowerLedger::PowerLedger(const Snapshot& snapshot, const std::vector<NodeName>& selected,
                         std::int64_t budget_watts)
    : budget_(budget_watts) {
  if (budget_ <= 0) return;
  for (const NodeName& name : selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end()) continue;
    const std::int64_t bound = cap_facts(found->second).bound;
    by_node_[name] = bound;
    bound_ += bound;
  }
}

std::int64_t PowerLedger::more(const NodeView& node, std::optional<std::int64_t> watts) const {
  const std::int64_t maximum = maximum_of(node);
  const std::int64_t wanted = std::min(watts.value_or(maximum), maximum);
  const auto now = by_node_.find(node.name());
  return std::max<std::int64_t>(0, wanted - (now == by_node_.end() ? 0 : now->second));
}

bool PowerLedger::fits(const NodeView& node, std::optional<std::int64_t> watts) const {
  if (budget_ <= 0) return true;
  const std::int64_t extra = more(node, watts);
  return extra == 0 || bound_ + extra <= budget_;
}

bool PowerLedger::raise(const NodeView& node, std::optional<std::int64_t> watts) {
  if (!fits(node, watts)) return false;
  if (budget_ <= 0) return true;
  const std::int64_t extra = more(node, watts);
  by_node_[node.name()] += extra;
  bound_ += extra;
  return true;
}

std::optional<std::map<NodeName, std::int64_t>> share_power(std::int64_t budget,
                                                            const std::vector<ShareOf>& shares) {
  std::map<NodeName, std::int64_t> given;
  std::int64_t left = budget;
  for (const ShareOf& share : shares) {
    given[share.name] = share.floor;
    left -= share.floor;
  }
  if (left < 0) return std::nullopt;
  // First what is needed (never more than what is there), then the rest evenly, each in rounds: a
  // share that reaches its limit leaves its part to the others.
  const auto fill = [&](auto limit_of) {
    for (;;) {
      std::int64_t wanted = 0;
      for (const ShareOf& share : shares) {
        wanted += std::max<std::int64_t>(0, limit_of(share) - given[share.name]);
      }
      if (wanted <= 0 || left <= 0) return;
      const std::int64_t pot = std::min(left, wanted);
      std::int64_t spent = 0;
      for (const ShareOf& share : shares) {
        const std::int64_t gap = std::max<std::int64_t>(0, limit_of(share) - given[share.name]);
        // Rounded down: the sum stays within the pot.
        const std::int64_t part = static_cast<std::int64_t>(static_cast<__int128_t>(pot) * gap /
                                                            std::max<std::int64_t>(1, wanted));
        given[share.name] += part;
        spent += part;
      }
      left -= spent;
      if (spent == 0) return;  // less than a watt each: not worth a change
    }
  };
  fill([](const ShareOf& share) { return std::min(share.need, share.ceiling); });
  fill([](const ShareOf& share) { return share.ceiling; });
  return given;
}

}  // namespace kwatt::planner
