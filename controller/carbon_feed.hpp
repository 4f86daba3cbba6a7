#pragma once
// Carbon intensities for the job queue: asks the sources of --carbon-sources for the zones that
// policies name, and gives what is expected of them.
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "models/carbon/forecast.hpp"
#include "net/run.hpp"
#include "planner/queue/gate.hpp"
#include "telemetry/carbon_config.hpp"
#include "telemetry/carbon_state.hpp"
#include "telemetry/carbon_zones.hpp"

namespace kwatt::controller {

// Single-threaded, on the controller's strand.
class CarbonFeed {
 public:
  // `clock` outlives it. `changed` is called when a zone has other values, or its first answer.
  CarbonFeed(std::vector<std::unique_ptr<telemetry::CarbonSource>> sources, Duration interval,
             const Clock& clock, std::function<void()> changed);

  // What is known of the zone; from the first call on it is asked for. What the source has
  // published ahead counts as it is; else the zone's past is forecast, as long as its newest value
  // is not older than carbon.staleAfter. Until the first answer, but for no longer than
  // kFirstAnswer, it is pending.
  planner::queue::Outlook outlook(const api::CarbonSpec& carbon, const std::string& zone);

  // The same in the words of the condition CarbonDataAvailable, for all zones of a policy whose
  // carbon.source is not empty.
  telemetry::CarbonState state(const api::CarbonSpec& carbon,
                               const std::vector<std::string>& zones);

  // Reads what is due, until the executor ends.
  net::Task<void> run();

  static constexpr Duration kFirstAnswer = std::chrono::seconds{30};

 private:
  using Key = std::pair<std::string, std::string>;  // source and zone
  struct Zone {
    MonotonicPoint wanted{};  // since when it is asked for
    bool fetched = false;
    std::vector<models::carbon::Reading> newest;  // of the last good fetch
    telemetry::CarbonZones past;
    // What the past has taught, of the hour it was learned in.
    std::optional<TimePoint> learned_hour;
    std::optional<models::carbon::IntensityForecaster> learned;
  };
  net::Task<void> fetch(Key key);
  telemetry::CarbonSource* source(const std::string& name) const;
  Zone* zone_of(const std::string& source,
                const std::string& zone);  // nullptr: cannot be asked for
  models::carbon::Forecast forecast(Zone& known, const std::string& zone, TimePoint now,
                                    Duration stale_after) const;

  std::vector<std::unique_ptr<telemetry::CarbonSource>> sources_;
  Duration interval_;
  const Clock& clock_;
  std::function<void()> changed_;
  std::map<Key, Zone> zones_;
  net::Signal wanted_;
};

}  // namespace kwatt::controller
