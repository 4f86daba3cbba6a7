#include "controller/carbon_feed.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "models/carbon/published.hpp"
#include "net/run.hpp"

namespace kwatt::controller {
namespace {

using models::carbon::Forecast;
using models::carbon::Reading;

constexpr std::size_t kHours = 48;       // of forecast: twice the longest usual delay
constexpr std::size_t kMostZones = 256;  // that are asked for

}  // namespace

CarbonFeed::CarbonFeed(std::vector<std::unique_ptr<telemetry::CarbonSource>> sources,
                       Duration interval, const Clock& clock, std::function<void()> changed)
    : sources_(std::move(sources)),
      interval_(interval),
      clock_(clock),
      changed_(std::move(changed)) {}

telemetry::CarbonSource* CarbonFeed::source(const std::string& name) const {
  const auto found = std::find_if(sources_.begin(), sources_.end(),
                                  [&](const auto& one) { return one->name() == name; });
  return found == sources_.end() ? nullptr : found->get();
}

CarbonFeed::Zone* CarbonFeed::zone_of(const std::string& source_name, const std::string& zone) {
  const Key key(source_name, zone);
  if (const auto found = zones_.find(key); found != zones_.end()) return &found->second;
  if (source(source_name) == nullptr || zones_.size() >= kMostZones) return nullptr;
  Zone& made = zones_[key];
  made.wanted = clock_.monotonic();
  wanted_.notify_all();
  return &made;
}

Forecast CarbonFeed::forecast(Zone& known, const std::string& zone, TimePoint now,
                              Duration stale_after) const {
  const TimePoint hour = std::chrono::floor<std::chrono::hours>(now);
  if (known.learned_hour != hour) {
    known.learned_hour = hour;
    known.learned.reset();
    if (auto made = models::carbon::IntensityForecaster::make(models::carbon::kDefaultLearner)) {
      made->learn(known.past.series(zone), now);
      known.learned.emplace(std::move(*made));
    }
  }
  return known.learned ? known.learned->forecast(now, kHours, stale_after) : Forecast();
}

planner::queue::Outlook CarbonFeed::outlook(const api::CarbonSpec& carbon,
                                            const std::string& zone) {
  Zone* known = zone_of(carbon.source, zone);
  if (known == nullptr) return {};
  planner::queue::Outlook out;
  if (!known->fetched) {
    out.pending = clock_.monotonic() - known->wanted < kFirstAnswer;
    return out;
  }
  const TimePoint now = clock_.now();
  if (auto steps = models::carbon::published_ahead(known->newest, now)) {
    out.start = steps->start;
    out.step = steps->step;
    out.grams_per_kwh = std::move(steps->grams_per_kwh);
    return out;
  }
  Forecast made = forecast(*known, zone, now, carbon.stale_after);
  if (!made.usable()) return out;
  out.start = made.start;
  out.grams_per_kwh = std::move(made.grams);
  return out;
}

telemetry::CarbonState CarbonFeed::state(const api::CarbonSpec& carbon,
                                         const std::vector<std::string>& zones) {
  if (source(carbon.source) == nullptr) {
    std::vector<std::string> names;
    for (const auto& one : sources_) names.push_back(one->name());
    return telemetry::no_such_source(carbon.source, names);
  }
  const TimePoint now = clock_.now();
  std::vector<telemetry::CarbonState> states;
  for (const std::string& zone : zones) {
    telemetry::ZoneKnowledge told;
    told.zone = zone;
    Zone* known = zone_of(carbon.source, zone);
    if (known == nullptr) {
      told.answered = true;
      told.message = fmt::format("more than {} zones are named", kMostZones);
    } else if (known->fetched) {
      told.answered = true;
      told.failure = known->past.failure(zone);
      told.newest = known->past.newest(zone);
      if (models::carbon::published_ahead(known->newest, now)) {
        const auto next = std::find_if(known->newest.begin(), known->newest.end(),
                                       [&](const Reading& one) { return one.at > now; });
        told.newest = *std::prev(next);
        told.published_until = known->newest.back().at;
      } else {
        Forecast made = forecast(*known, zone, now, carbon.stale_after);
        told.missing = made.missing;
        told.message = std::move(made.message);
      }
    }
    states.push_back(telemetry::carbon_state(told));
  }
  return telemetry::combined(states);
}

net::Task<void> CarbonFeed::fetch(Key key) {
  telemetry::CarbonSource* from = source(key.first);
  if (from == nullptr) co_return;
  auto readings = co_await from->fetch(key.second, clock_.now());
  Zone& zone = zones_[key];
  const bool first = !zone.fetched;
  zone.fetched = true;
  if (!readings) {
    log::warn("carbon intensity not read",
              {{"source", key.first}, {"zone", key.second}, {"error", readings.error()}});
    zone.past.failed(key.second, readings.error());
    // Who waited for the first answer waits no longer.
    if (first && changed_) changed_();
    co_return;
  }
  const TimePoint now = clock_.now();
  std::vector<Reading> past;
  for (const Reading& one : *readings) {
    if (one.at <= now) past.push_back(one);
  }
  zone.past.took(key.second, past);
  if (!first && *readings == zone.newest) co_return;
  zone.newest = std::move(*readings);
  zone.learned_hour.reset();
  if (changed_) changed_();
}

net::Task<void> CarbonFeed::run() {
  MonotonicPoint due = clock_.monotonic();
  for (;;) {
    const bool all = clock_.monotonic() >= due;
    if (all) due = clock_.monotonic() + interval_;
    std::vector<Key> keys;
    for (const auto& [key, zone] : zones_) {
      if (all || !zone.fetched) keys.push_back(key);
    }
    for (const Key& key : keys) co_await fetch(key);
    const bool more = std::any_of(zones_.begin(), zones_.end(),
                                  [](const auto& one) { return !one.second.fetched; });
    if (more) continue;
    const auto pause = std::chrono::ceil<Duration>(due - clock_.monotonic());
    if (pause > Duration{0}) co_await wanted_.wait_for(pause);
  }
}

}  // namespace kwatt::controller
