#pragma once
// What the history holds, as values, and how it is asked.
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.hpp"
#include "base/units.hpp"

namespace kwatt::telemetry {

// One machine in one minute.
struct SampleRow {
  TimePoint minute;  // its beginning
  std::string node;
  std::optional<Milliwatts> mean, max;  // nullopt: nothing measured power
  Permille utilization;                 // mean, frequency-invariant
  std::string source;                   // of the power: "agent", "none", …
  bool operator==(const SampleRow&) const = default;
};

// A NodePower's decision became another one.
struct DecisionRow {
  TimePoint at;
  std::string node, policy;
  std::string action;  // "Keep" "On" "Off", as in status.decision.desired
  std::string reason, message;
  bool operator==(const DecisionRow&) const = default;
};

// An operation began or ended.
struct OperationRow {
  TimePoint at;
  std::string node, policy;
  std::string id, kind;  // of status.operation
  std::string phase;     // "begun" "ended" "failed"
  std::string reason, message;
  bool operator==(const OperationRow&) const = default;
};

// Energy of one node in one hour under one policy. Adding the same key again adds to it.
struct EnergyRow {
  TimePoint hour;  // its beginning
  std::string node, policy;
  Millijoules actual, baseline;
  Duration covered{0};   // of the hour
  Duration measured{0};  // of these, with a meter's reading
  bool operator==(const EnergyRow&) const = default;
};

using HistoryRow = std::variant<SampleRow, DecisionRow, OperationRow, EnergyRow>;

// In the order of the variant.
enum class HistoryKind { samples, decisions, operations, energy };
inline constexpr std::array<std::string_view, 4> kHistoryKinds = {"samples", "decisions",
                                                                  "operations", "energy"};
std::string_view to_string(HistoryKind kind);
std::optional<HistoryKind> parse_history_kind(std::string_view word);

struct HistoryQuery {
  HistoryKind kind = HistoryKind::decisions;
  std::string node, policy;               // "": all
  std::optional<TimePoint> since, until;  // since ≤ time < until
  std::size_t limit = 1000;               // the newest so many
};

}  // namespace kwatt::telemetry
