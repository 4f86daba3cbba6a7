#pragma once
// What Prometheus is asked: one instant query gives, for all nodes at once, the watts and the time
// at which they were measured. Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/source.hpp"

namespace kwatt::telemetry {

struct PowerQuery {
  Source source = Source::prometheus;
  bool whole_machine = true;
  std::string watts;     // PromQL: watts, one series for each node
  std::string measured;  // PromQL: the Unix time of that measurement, with the same labels
};

// The exporters whose metrics are known: "kepler-platform", "ipmi-exporter", … In the words of
// to_string(Source).
std::vector<Source> known_exporters();

// Its query. `labels` are those that name the node; aggregations keep them. nullopt: no exporter.
// Zones of Kepler overlap (psys holds package, package holds core): one is chosen, none are added.
std::optional<PowerQuery> query_of(Source exporter, const std::vector<std::string>& labels);

// A query of the operator's own that gives watts of whole machines. The age of a reading is known
// only if it is a plain selector; the result of an expression is as old as its evaluation.
PowerQuery own_query(const std::string& promql);

// Both parts in one: each series has the label kwatt_part, "watts" or "measured".
inline constexpr std::string_view kPartLabel = "kwatt_part";
std::string instant_query(const PowerQuery& query);

}  // namespace kwatt::telemetry
