#include "kube/event_correlator.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace kwatt::kube {
namespace {

constexpr const char* kCombined = "(combined from similar events): ";

// Halves what is remembered, the longest unused first.
template <class Map>
void forget_oldest(Map& map, std::size_t limit) {
  if (map.size() <= limit) return;
  std::vector<MonotonicPoint> times;
  times.reserve(map.size());
  for (const auto& [key, value] : map) times.push_back(value.last);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const MonotonicPoint oldest = *middle;
  std::size_t surplus = map.size() - limit / 2;
  std::erase_if(map, [&](const auto& entry) {
    if (surplus == 0 || entry.second.last > oldest) return false;
    --surplus;
    return true;
  });
}

// A name for the Event: that of the object, and something nobody else has.
std::string event_name(std::string base, TimePoint wall, std::uint64_t serial) {
  base.resize(std::min<std::size_t>(base.size(), 200));
  while (!base.empty() && (base.back() == '.' || base.back() == '-')) base.pop_back();
  return fmt::format("{}.{:x}{:04x}", base, wall.time_since_epoch().count(), serial & 0xffff);
}

}  // namespace

std::string cut_note(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  constexpr std::string_view kDots = "...";
  std::size_t end = limit - kDots.size();
  // Never inside a UTF-8 character: its later bytes are 10xxxxxx.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  text += kDots;
  return text;
}

EventCorrelator::Decision EventCorrelator::decide(const EventNote& note, TimePoint wall,
                                                  MonotonicPoint now) {
  Decision decision;
  decision.note = cut_note(note.note);
  SeriesKey key{note.regarding, note.warning, note.reason, note.action, decision.note};
  if (too_similar(key, now)) {
    decision.note = cut_note(kCombined + decision.note);
    key.note = kCombined;
  }
  auto [bucket, fresh] = buckets_.try_emplace(
      note.regarding,
      Bucket{RateLimiter{1000.0 / static_cast<double>(limits_.refill.count()), limits_.burst},
             now});
  bucket->second.last = now;
  const bool allowed = bucket->second.limiter.try_take(now);

  auto [series, first] = series_.try_emplace(key, Series{});
  Series& known = series->second;
  if (first || now - known.last > limits_.window) {
    known = Series{};
  } else {
    ++known.count;  // counted even if not written now: the next write tells the whole number
  }
  known.last = now;
  if (allowed) {
    decision.kind = known.name.empty() ? Decision::Kind::create : Decision::Kind::repeat;
    if (known.name.empty()) known.name = event_name(note.regarding.name, wall, serial_++);
    if (decision.kind == Decision::Kind::create) known.count = 1;
    decision.name = known.name;
    decision.count = known.count;
  }
  prune();
  return decision;
}

bool EventCorrelator::too_similar(const SeriesKey& key, MonotonicPoint now) {
  SeriesKey group = key;
  group.note.clear();
  Similar& similar = similar_[std::move(group)];
  similar.last = now;
  std::erase_if(similar.notes,
                [&](const auto& seen) { return now - seen.second > limits_.window; });
  const auto known = similar.notes.find(key.note);
  if (known != similar.notes.end()) {
    known->second = now;
    return false;
  }
  if (similar.notes.size() >= static_cast<std::size_t>(limits_.similar)) return true;
  similar.notes.emplace(key.note, now);
  return false;
}

void EventCorrelator::forget(const std::string& name) {
  std::erase_if(series_, [&](const auto& entry) { return entry.second.name == name; });
}

void EventCorrelator::prune() {
  forget_oldest(series_, limits_.memory);
  forget_oldest(similar_, limits_.memory);
  forget_oldest(buckets_, limits_.memory);
}

}  // namespace kwatt::kube
