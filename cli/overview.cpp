#include "cli/overview.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/describe_meta.hpp"
#include "api/encode.hpp"
#include "api/state_words.hpp"
#include "cli/output.hpp"

namespace kwatt::api {

template <>
struct Describe<cli::PolicyLine> {
  using T = cli::PolicyLine;
  static constexpr std::string_view name = "PolicyLine";
  static constexpr auto fields = std::array{written<&T::name>("name"),
                                            written<&T::mode>("mode"),
                                            written<&T::ready>("ready"),
                                            written<&T::nodes>("nodes"),
                                            written<&T::on>("on"),
                                            written<&T::off>("off"),
                                            written<&T::transitioning>("transitioning"),
                                            written<&T::slow>("slow"),
                                            written<&T::capped>("capped"),
                                            written<&T::unready>("unready"),
                                            written<&T::watts>("watts"),
                                            written<&T::watts_without>("wattsWithout"),
                                            written<&T::saved_watt_hours>("savedWattHours")};
};

template <>
struct Describe<cli::ReasonCount> {
  using T = cli::ReasonCount;
  static constexpr std::string_view name = "ReasonCount";
  static constexpr auto fields =
      std::array{written<&T::reason>("reason"), written<&T::nodes>("nodes")};
};

template <>
struct Describe<cli::StateLine> {
  using T = cli::StateLine;
  static constexpr std::string_view name = "StateLine";
  static constexpr auto fields =
      std::array{written<&T::state>("state"), written<&T::nodes>("nodes"),
                 written<&T::watts>("watts"), written<&T::reasons>("reasons")};
};

template <>
struct Describe<cli::NodeLine> {
  using T = cli::NodeLine;
  static constexpr std::string_view name = "NodeLine";
  static constexpr auto fields =
      std::array{written<&T::name>("name"),          written<&T::state>("state"),
                 written<&T::reason>("reason"),      written<&T::policy>("policy"),
                 written<&T::governor>("governor"),  written<&T::watts>("watts"),
                 written<&T::cap_watts>("capWatts"), field<&T::since>("since")};
};

template <>
struct Describe<cli::Overview> {
  using T = cli::Overview;
  static constexpr std::string_view name = "Overview";
  static constexpr auto fields = std::array{
      written<&T::policies>("policies"), written<&T::states>("states"), written<&T::nodes>("nodes"),
      written<&T::watts>("watts"), written<&T::saved_watt_hours>("savedWattHours")};
};

}  // namespace kwatt::api

namespace kwatt::cli {
namespace {

PolicyLine line_of(const api::EnergyPolicy& policy) {
  const api::EnergyPolicyStatus& status = policy.status;
  PolicyLine line;
  line.name = policy.meta.name;
  line.mode = to_string(policy.spec.mode);
  if (policy.spec.suspend) line.mode += " (suspended)";
  const api::Condition* ready = api::find_condition(status.conditions, "Ready");
  line.ready = ready == nullptr ? "Unknown" : ready->status;
  if (ready != nullptr && ready->status != "True") line.ready = ready->reason;
  line.nodes = status.nodes.selected;
  line.on = status.nodes.on;
  line.off = status.nodes.off;
  line.transitioning = status.nodes.transitioning;
  line.slow = status.nodes.slow;
  line.capped = status.nodes.capped;
  line.unready = status.nodes.unready;
  line.watts = status.power.watts;
  line.watts_without = (status.power.baseline_milliwatts + 500) / 1000;
  line.saved_watt_hours = status.power.saved_watt_hours;
  return line;
}

NodeLine line_of(const api::NodePower& machine) {
  const api::NodePowerStatus& status = machine.status;
  NodeLine line;
  line.name = machine.meta.name;
  line.state = to_string(status.power_state);
  line.reason = status.decision.reason;
  line.policy = status.decision.policy;
  line.governor = status.report.governor;
  line.watts = status.watts;
  // In force by RAPL, or by the BMC.
  line.cap_watts = status.report.effective_cap_watts > 0 ? status.report.effective_cap_watts
                                                         : status.bmc.effective_cap_watts;
  line.since = status.decision.since;
  return line;
}

std::string shown(std::int64_t number) {
  return fmt::format("{}", number);
}
std::string or_dash(std::string text) {
  return text.empty() ? "-" : std::move(text);
}

std::string reasons_text(const StateLine& line) {
  std::string text;
  for (const ReasonCount& one : line.reasons) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", one.nodes, one.reason.empty() ? "undecided" : one.reason);
  }
  return text;
}

}  // namespace

Overview overview_of(const std::vector<api::EnergyPolicy>& policies,
                     const std::vector<api::NodePower>& machines) {
  Overview overview;
  for (const auto& policy : policies) {
    overview.policies.push_back(line_of(policy));
    overview.saved_watt_hours += policy.status.power.saved_watt_hours;
  }
  struct State {
    std::int64_t nodes = 0, watts = 0;
    std::map<std::string, std::int64_t> reasons;
  };
  std::map<api::PowerState, State> states;
  for (const auto& machine : machines) {
    overview.nodes.push_back(line_of(machine));
    overview.watts += machine.status.watts;
    State& state = states[machine.status.power_state];
    ++state.nodes;
    state.watts += machine.status.watts;
    ++state.reasons[machine.status.decision.reason];
  }
  for (const auto& [power, state] : states) {
    StateLine line;
    line.state = to_string(power);
    line.nodes = state.nodes;
    line.watts = state.watts;
    for (const auto& [reason, nodes] : state.reasons) line.reasons.push_back({reason, nodes});
    std::stable_sort(line.reasons.begin(), line.reasons.end(),
                     [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
    overview.states.push_back(std::move(line));
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(overview.policies.begin(), overview.policies.end(), by_name);
  std::sort(overview.nodes.begin(), overview.nodes.end(), by_name);
  return overview;
}

std::string table_of(const Overview& overview, bool nodes, TimePoint now) {
  std::string text;
  Table policies({"POLICY", "MODE", "READY", "NODES", "ON", "OFF", "CHANGING", "SLOW", "CAPPED",
                  "WATTS", "WITHOUT KWATT", "SAVED"});
  for (const PolicyLine& line : overview.policies) {
    policies.add({line.name, line.mode, line.ready, shown(line.nodes), shown(line.on),
                  shown(line.off), shown(line.transitioning), shown(line.slow), shown(line.capped),
                  shown(line.watts), shown(line.watts_without), energy(line.saved_watt_hours)});
  }
  text += policies.empty() ? "There is no EnergyPolicy, so nothing is done.\n" : policies.text();
  Table states({"STATE", "NODES", "WATTS", "WHY"});
  for (const StateLine& line : overview.states) {
    states.add({line.state, shown(line.nodes), shown(line.watts), reasons_text(line)});
  }
  text += states.empty()
              ? "\nThere is no NodePower: no policy selects a node and no agent reports.\n"
              : "\n" + states.text();
  if (!nodes || overview.nodes.empty()) return text;
  Table lines({"NODE", "STATE", "WATTS", "GOVERNOR", "CAP", "POLICY", "WHY", "FOR"});
  for (const NodeLine& line : overview.nodes) {
    lines.add({line.name, line.state, shown(line.watts), or_dash(line.governor),
               line.cap_watts > 0 ? fmt::format("{} W", line.cap_watts) : "-", or_dash(line.policy),
               or_dash(line.reason), line.since ? human(now - *line.since) : "-"});
  }
  return text + "\n" + lines.text();
}

std::string json_of(const Overview& overview) {
  return api::encode(api::type_of<Overview>(), &overview);
}

}  // namespace kwatt::cli
