#include "telemetry/sample_store.hpp"

#include <algorithm>
#include <utility>

namespace kwatt::telemetry {
namespace {

constexpr Duration kBelievedAtLeast = std::chrono::seconds{30};

}  // namespace

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::out_of_order:
      return "out_of_order";
    case Refusal::from_the_future:
      return "from_the_future";
    case Refusal::utilization_range:
      return "utilization_range";
    case Refusal::power_range:
      return "power_range";
    case Refusal::above_machine:
      return "above_machine";
  }
  return "unknown";
}

Duration SampleStore::Stream::believed_for() const {
  // A source may measure less often than it is asked (a scrape interval above ours). One long gap
  // is an outage and no period: the smaller of the last two counts. A BMC measures when it is
  // asked: its gaps are all outages.
  const std::size_t n = steps.size();
  Duration seen{0};
  if (source == Source::bmc) return std::max(kBelievedAtLeast, 3 * period);
  if (n >= 2) seen = steps[n - 1].newest - steps[n - 2].newest;
  if (n >= 3) seen = std::min(seen, Duration{steps[n - 2].newest - steps[n - 3].newest});
  return std::max(kBelievedAtLeast, 3 * std::max(period, seen));
}

SampleStore::Stream& SampleStore::stream_of(const std::string& node, Source source) {
  std::vector<Stream>& streams = nodes_[node];
  const auto at =
      std::lower_bound(streams.begin(), streams.end(), source,
                       [](const Stream& s, Source wanted) { return s.source < wanted; });
  if (at != streams.end() && at->source == source) return *at;
  Stream fresh;
  fresh.source = source;
  return *streams.insert(at, std::move(fresh));
}

std::optional<Refusal> SampleStore::add(const std::string& node, const Sample& sample,
                                        TimePoint now, std::optional<Milliwatts> machine_maximum) {
  const auto in_range = [](Permille p) { return p >= Permille{0} && p <= Permille{1000}; };
  if (sample.has_utilization && (!in_range(sample.utilization) || !in_range(sample.busy))) {
    return Refusal::utilization_range;
  }
  if (sample.power && (*sample.power < Milliwatts{0} || *sample.power > options_.implausible)) {
    return Refusal::power_range;
  }
  if (sample.power && machine_maximum && *sample.power > *machine_maximum * 3 / 2) {
    return Refusal::above_machine;
  }
  if (sample.at > now + options_.future_tolerance) return Refusal::from_the_future;

  Stream& stream = stream_of(node, sample.source);
  std::deque<Step>& steps = stream.steps;
  if (!steps.empty() && sample.at <= steps.back().newest) return Refusal::out_of_order;
  stream.period = sample.period;
  if (steps.empty() || sample.at >= steps.back().begin + options_.resolution) {
    const auto offset = sample.at.time_since_epoch() % options_.resolution;
    steps.push_back(Step{.begin = sample.at - offset, .newest = sample.at});
  }
  Step& step = steps.back();
  step.newest = sample.at;
  if (sample.has_utilization) {
    step.count += 1;
    step.utilization += static_cast<std::int32_t>(sample.utilization.count());
    step.busy += static_cast<std::int32_t>(sample.busy.count());
  }
  if (sample.power) {
    // Watts of the packages and of the machine have no mean.
    if (step.power_count > 0 && step.whole_machine != sample.whole_machine) {
      step.power_count = 0;
      step.milliwatts = 0;
    }
    step.whole_machine = sample.whole_machine;
    step.power_count += 1;
    step.milliwatts += sample.power->count();
  }
  while (steps.size() > 1 && steps.front().newest + options_.keep < now) steps.pop_front();
  return std::nullopt;
}

std::vector<Reading> SampleStore::samples(const std::string& node) const {
  std::vector<Reading> out;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return out;
  const std::vector<Stream>& streams = found->second;

  struct Event {
    TimePoint at;
    std::size_t stream, step;
  };
  std::vector<Event> events;
  std::vector<Duration> believed_for;
  const TimePoint oldest = *newest(node) - options_.keep;  // also of a source that has ended
  for (std::size_t s = 0; s < streams.size(); ++s) {
    believed_for.push_back(streams[s].believed_for());
    for (std::size_t i = 0; i < streams[s].steps.size(); ++i) {
      if (streams[s].steps[i].newest >= oldest) {
        events.push_back({streams[s].steps[i].newest, s, i});
      }
    }
  }
  if (streams.size() > 1) {
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.at < b.at; });
  }

  out.reserve(events.size());
  std::vector<const Step*> last(streams.size(), nullptr);  // of each stream, up to now
  bool from_agent = false;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const Event& event = events[e];
    from_agent = from_agent || streams[event.stream].source == Source::agent;
    last[event.stream] = &streams[event.stream].steps[event.step];
    if (e + 1 < events.size() && events[e + 1].at == event.at) continue;
    Reading reading;
    reading.at = event.at;
    reading.from_agent = std::exchange(from_agent, false);
    for (std::size_t s = 0; s < streams.size(); ++s) {
      const Step* step = last[s];
      if (step == nullptr) continue;
      const TimePoint until = step->newest + believed_for[s];
      if (event.at > until) continue;
      if (step->count > 0 && !reading.has_utilization) {
        reading.has_utilization = true;
        reading.utilization = Permille{step->utilization / step->count};
        reading.busy = Permille{step->busy / step->count};
        reading.utilization_source = streams[s].source;
        reading.utilization_until = until;
      }
      const bool better = !reading.power || (step->whole_machine && !reading.whole_machine);
      if (step->power_count > 0 && better) {
        reading.power = Milliwatts{step->milliwatts / step->power_count};
        reading.power_source = streams[s].source;
        reading.whole_machine = step->whole_machine;
        reading.power_at = step->newest;
        reading.power_until = until;
      }
    }
    out.push_back(reading);
  }
  return out;
}

std::optional<TimePoint> SampleStore::newest(const std::string& node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  std::optional<TimePoint> newest;
  for (const Stream& stream : found->second) {
    const TimePoint at = stream.steps.back().newest;
    if (!newest || at > *newest) newest = at;
  }
  return newest;
}

std::optional<TimePoint> SampleStore::newest(const std::string& node, Source source) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  for (const Stream& stream : found->second) {
    if (stream.source == source) return stream.steps.back().newest;
  }
  return std::nullopt;
}

}  // namespace kwatt::telemetry
