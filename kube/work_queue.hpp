#pragma once
// Which key to work on next, as a pure structure: no key twice at once, none lost, delays, retries
// that slow down, priorities. The present is passed in; waiting is kube/async_queue.hpp's.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/metrics.hpp"
#include "base/time.hpp"

namespace kwatt::kube {

inline constexpr int kPriorityNormal = 0;
inline constexpr int kPriorityLow = -100;  // first list, resync: yields to what just happened

struct WorkQueueOptions {
  std::string name;  // the metric labels name and controller
  Duration first_retry{5};
  Duration longest_retry = std::chrono::seconds{1000};
  Metrics* metrics = nullptr;  // outlives the queue; nullptr: none
};

class WorkQueue {
 public:
  explicit WorkQueue(WorkQueueOptions options);

  struct Item {
    std::string key;
    int priority = kPriorityNormal;
  };

  // Adds `key`, to be ready after `after` (<= 0: now). A key that waits already keeps the earlier
  // moment and the higher priority; one whose priority rises goes to the end of its new level. A
  // key that is being processed comes back after done(). Ignored after shut_down().
  void add(std::string_view key, MonotonicPoint now, int priority = kPriorityNormal,
           Duration after = Duration{0});
  // Adds after the next retry pause of this key: 5 ms × 2^failures, at most 1000 s.
  void add_rate_limited(std::string_view key, MonotonicPoint now, int priority = kPriorityNormal);
  // The key had success: its next failure starts at 5 ms again.
  void forget(std::string_view key);
  int failures(std::string_view key) const;

  // The next ready key that is not being processed: highest priority first, first come first served
  // among equals. It counts as being processed until done(). nullopt: none is ready.
  std::optional<Item> get(MonotonicPoint now);
  void done(std::string_view key, MonotonicPoint now);

  // When the earliest delayed key becomes ready; nullopt: none is waiting.
  std::optional<MonotonicPoint> next_ready() const;

  // No more intake; what is ready, delayed or would be retried is dropped. Running keys go on.
  void shut_down();
  bool shutting_down() const { return shutting_down_; }
  bool drained() const { return shutting_down_ && processing_.empty(); }

  std::size_t depth() const { return ready_.size(); }      // ready, not being processed
  std::size_t waiting() const { return waiting_.size(); }  // delayed
  std::size_t processing() const { return processing_.size(); }

  // Sets the gauges that depend on the time; call now and then.
  void refresh_metrics(MonotonicPoint now) const;

 private:
  struct Entry {
    int priority = kPriorityNormal;
    std::uint64_t sequence = 0;              // first come, first served
    std::optional<MonotonicPoint> ready_at;  // delayed until then; nullopt: ready
    MonotonicPoint ready_since{};            // for the latency
  };
  struct ReadyOrder {
    int priority;
    std::uint64_t sequence;
    const std::string* key;
    bool operator<(const ReadyOrder& other) const {
      if (priority != other.priority) return priority > other.priority;
      return sequence < other.sequence;
    }
  };
  struct WaitingOrder {
    MonotonicPoint at;
    std::uint64_t sequence;
    const std::string* key;
    bool operator<(const WaitingOrder& other) const {
      if (at != other.at) return at < other.at;
      return sequence < other.sequence;
    }
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  template <class Value>
  using ByKey = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  void link(const std::string& key, const Entry& entry);
  void unlink(const std::string& key, const Entry& entry);
  void became_ready(const std::string& key, Entry& entry, MonotonicPoint now);
  void promote(MonotonicPoint now);
  void count(const char* name, const char* help) const;
  void show_depth() const;

  WorkQueueOptions options_;
  ByKey<Entry> entries_;              // what is to be done ("dirty")
  std::set<ReadyOrder> ready_;        // entries that are ready and not being processed
  std::set<WaitingOrder> waiting_;    // entries that are delayed
  ByKey<MonotonicPoint> processing_;  // since when
  ByKey<int> failures_;
  std::uint64_t next_sequence_ = 0;
  bool shutting_down_ = false;
};

}  // namespace kwatt::kube
