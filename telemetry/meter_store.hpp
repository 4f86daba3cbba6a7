#pragma once
// Power readings that do not come from a node's agent: those of the machines' BMCs, polled slowly.
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "base/units.hpp"

namespace kwatt::telemetry {

struct MeterReading {
  TimePoint at;
  Milliwatts power;
  std::string source;  // the scheme of the BMC's address: "redfish", "ipmi" …
};

struct MeterStoreOptions {
  Duration keep = std::chrono::minutes{15};
  Duration max_age = std::chrono::seconds{90};  // three polls; older readings say nothing any more
  Milliwatts implausible = watts(100'000);      // no single machine draws more
};

// Bounded in time; lost at a restart. Not thread-safe.
class MeterStore {
 public:
  explicit MeterStore(MeterStoreOptions options = {}) : options_(options) {}

  // False: not newer than the last one, negative, or more than any machine draws.
  bool add(const std::string& node, MeterReading reading);
  // The newest reading at or before `when` that is not older than max_age then.
  std::optional<MeterReading> at(const std::string& node, TimePoint when) const;
  void forget(const std::string& node) { nodes_.erase(node); }

 private:
  MeterStoreOptions options_;
  std::map<std::string, std::deque<MeterReading>, std::less<>> nodes_;
};

}  // namespace kwatt::telemetry
