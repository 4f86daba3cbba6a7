#include "controller/carbon_feed.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "models/carbon/forecast.hpp"
#include "models/carbon/published.hpp"
#include "net/run.hpp"

namespace kwatt::controller {
namespace {

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

planner::queue::Outlook CarbonFeed::outlook(const api::CarbonSpec& carbon,
                                            const std::string& zone) {
  const Key key(carbon.source, zone);
  auto found = zones_.find(key);
  if (found == zones_.end()) {
    if (source(carbon.source) == nullptr || zones_.size() >= kMostZones) return {};
    found = zones_.try_emplace(key).first;
    wanted_.notify_all();
  }
  Zone& known = found->second;
  const TimePoint now = clock_.now();
  if (auto steps = models::carbon::published_ahead(known.newest, now)) {
    return {steps->start, steps->step, std::move(steps->grams_per_kwh)};
  }
  if (!known.past.state(zone, now, carbon.stale_after).available) return {};
  const TimePoint hour = std::chrono::floor<std::chrono::hours>(now);
  if (known.forecast_hour != hour) {
    known.forecast_hour = hour;
    known.forecast = {};
    auto made = models::carbon::predict_carbon(known.past.series(zone), now, kHours,
                                               models::carbon::kDefaultLearner, carbon.stale_after);
    if (made && made->usable()) known.forecast = {made->start, std::chrono::hours{1}, made->grams};
  }
  return known.forecast;
}

net::Task<void> CarbonFeed::fetch(Key key) {
  telemetry::CarbonSource* from = source(key.first);
  if (from == nullptr) co_return;
  auto readings = co_await from->fetch(key.second, clock_.now());
  Zone& zone = zones_[key];
  zone.fetched = true;
  if (!readings) {
    log::warn("carbon intensity not read",
              {{"source", key.first}, {"zone", key.second}, {"error", readings.error()}});
    zone.past.failed(key.second, readings.error());
    co_return;
  }
  const TimePoint now = clock_.now();
  std::vector<models::carbon::Reading> past;
  for (const models::carbon::Reading& one : *readings) {
    if (one.at <= now) past.push_back(one);
  }
  zone.past.took(key.second, past);
  zone.newest = std::move(*readings);
  zone.forecast_hour.reset();
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
