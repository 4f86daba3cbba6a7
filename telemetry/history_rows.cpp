#include "telemetry/history_rows.hpp"

namespace kwatt::telemetry {

std::string_view to_string(HistoryKind kind) {
  return kHistoryKinds[static_cast<std::size_t>(kind)];
}

std::optional<HistoryKind> parse_history_kind(std::string_view word) {
  for (std::size_t i = 0; i < kHistoryKinds.size(); ++i) {
    if (kHistoryKinds[i] == word) return static_cast<HistoryKind>(i);
  }
  return std::nullopt;
}

}  // namespace kwatt::telemetry
