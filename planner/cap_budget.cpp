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
  if (reported > 0) return reported;
  const std::int64_t capacity = node.machine->status.bmc.cap_max_watts;
  return capacity > 0 ? capacity : modelled;
}

api::CapBy way_of(const NodeView& node, api::CapMethod method) {
  switch (method) {
    case api::CapMethod::BMC:
      return api::CapBy::BMC;
    case api::CapMethod::RAPL:
      return api::CapBy::RAPL;
    case api::CapMethod::Auto:
      break;
  }
  const bool offered = node.has_driver && node.machine->status.bmc.power_limit;
  return offered ? api::CapBy::BMC : api::CapBy::RAPL;
}

void agent_range(const api::NodePower& machine, CapFacts& facts) {
  const api::CapRange& given = machine.spec.cap_range;
  const api::AgentReport& report = machine.status.report;
  facts.cap_max = given.max_watts > 0 ? given.max_watts : report.cap_max_watts;
  facts.cap_min = given.min_watts > 0 ? given.min_watts : report.cap_min_watts;
}

// What the BMC says counts; where it does not say: what people say, else the model.
void bmc_range(const NodeView& node, CapFacts& facts) {
  const api::BmcStatus& bmc = node.machine->status.bmc;
  if (!bmc.power_limit) return;
  const auto first = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return a > 0 ? a : b > 0 ? b : c;
  };
  const api::CapRange& given = node.machine->spec.cap_range;
  const std::int64_t idle = (node.model.curve.at(Permille{0}).count() + 999) / 1000;
  facts.cap_max = first(bmc.cap_max_watts, given.max_watts, facts.maximum);
  facts.cap_min = first(bmc.cap_min_watts, given.min_watts, std::max<std::int64_t>(1, idle));
  const std::int64_t foreign =
      bmc.original_known ? bmc.original_cap_watts : bmc.effective_cap_watts;
  if (foreign > 0) facts.cap_max = std::min(facts.cap_max, foreign - 1);
}

// What the BMC has in force bounds the draw, even while it is being lowered.
void held_by_bmc(const api::BmcStatus& bmc, CapFacts& facts) {
  facts.held = api::CapBy::BMC;
  facts.requested = bmc.requested_cap_watts;
  facts.lost = bmc.effective_cap_watts <= 0 || bmc.effective_cap_watts > bmc.requested_cap_watts;
  facts.bound = facts.maximum;
  if (bmc.effective_cap_watts > 0) {
    facts.bound =
        std::min(facts.maximum, std::max(bmc.effective_cap_watts, bmc.requested_cap_watts));
  }
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

CapFacts cap_facts(const NodeView& node, api::CapMethod method) {
  CapFacts facts;
  facts.maximum = facts.bound = maximum_of(node);
  if (node.machine != nullptr) {
    facts.by = way_of(node, method);
    if (facts.by == api::CapBy::BMC) {
      bmc_range(node, facts);
    } else {
      agent_range(*node.machine, facts);
    }
    const api::BmcStatus& bmc = node.machine->status.bmc;
    if (bmc.original_known && bmc.requested_cap_watts > 0) {
      held_by_bmc(bmc, facts);
    } else if ((facts.requested = our_cap(*node.node))) {
      facts.held = api::CapBy::RAPL;
      facts.bound = bound_under(node, *facts.requested, facts.maximum);
    }
  }
  facts.kept = facts.held == api::CapBy::RAPL && request_on(*node.node).keep_cap;
  const api::Operation& operation = node.operation();
  if (!operation.id.empty() && operation.kind == api::OperationKind::SetCap) {
    const std::int64_t coming = operation.request.power_cap_watts.value_or(facts.maximum);
    facts.settled = std::min(coming, facts.maximum);
    facts.bound = std::max(facts.bound, facts.settled);
  } else {
    facts.settled = facts.bound;
  }
  if (!draws_power(node)) facts.bound = facts.settled = 0;
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
