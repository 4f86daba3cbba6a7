#pragma once
// Carbon intensities for the job queue: asks the sources of --carbon-sources for the zones that
// policies name, and gives what is expected of them.
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "net/run.hpp"
#include "planner/queue/gate.hpp"
#include "telemetry/carbon_config.hpp"
#include "telemetry/carbon_zones.hpp"

namespace kwatt::controller {

// Single-threaded, on the controller's strand.
class CarbonFeed {
 public:
  // `clock` outlives it. `changed` is called when a zone has new values.
  CarbonFeed(std::vector<std::unique_ptr<telemetry::CarbonSource>> sources, Duration interval,
             const Clock& clock, std::function<void()> changed);

  // What is known of the zone; from the first call on it is asked for. What the source has
  // published ahead counts as it is; else the zone's past is forecast, as long as its newest value
  // is not older than carbon.staleAfter.
  planner::queue::Outlook outlook(const api::CarbonSpec& carbon, const std::string& zone);

  // Reads what is due, until the executor ends.
  net::Task<void> run();

 private:
  using Key = std::pair<std::string, std::string>;  // source and zone
  struct Zone {
    bool fetched = false;
    std::vector<models::carbon::Reading> newest;  // of the last fetch
    telemetry::CarbonZones past;
    // Of the hour it was made in.
    std::optional<TimePoint> forecast_hour;
    planner::queue::Outlook forecast;
  };
  net::Task<void> fetch(Key key);
  telemetry::CarbonSource* source(const std::string& name) const;

  std::vector<std::unique_ptr<telemetry::CarbonSource>> sources_;
  Duration interval_;
  const Clock& clock_;
  std::function<void()> changed_;
  std::map<Key, Zone> zones_;
  net::Signal wanted_;
};

}  // namespace kwatt::controller
