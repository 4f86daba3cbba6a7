#pragma once
// Which events are worth writing, and how: client-go's limits, pure.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/time.hpp"
#include "kube/rate_limiter.hpp"

namespace kwatt::kube {

// What the event is about.
struct ObjectReference {
  std::string api_version, kind, namespace_name, name, uid;
  auto operator<=>(const ObjectReference&) const = default;
};

struct EventNote {
  ObjectReference regarding;
  std::optional<ObjectReference> related = std::nullopt;
  bool warning = false;
  std::string reason;  // one word of api/reason.hpp, or another CamelCase word
  std::string action;  // what was done or tried, e.g. "PowerOff"
  std::string note;    // for people; cut to 1,024 characters
};

struct EventLimits {
  int similar = 10;  // more different notes than that within `window` become one
  Duration window = std::chrono::seconds{600};
  int burst = 25;  // per object, then one per `refill`
  Duration refill = std::chrono::seconds{300};
  std::size_t memory = 4096;  // so many series and objects are remembered
};

class EventCorrelator {
 public:
  explicit EventCorrelator(EventLimits limits) : limits_(limits) {}

  // create: a new Event of name `name`; repeat: the Event of that name occurred `count` times by
  // now; drop: too many about this object.
  struct Decision {
    enum class Kind { create, repeat, drop };
    Kind kind = Kind::drop;
    std::string name;
    std::string note;  // create; later occurrences cannot change it
    std::int64_t count = 1;
  };
  Decision decide(const EventNote& note, TimePoint wall, MonotonicPoint now);
  // The Event could not be written, or is gone: the next occurrence creates a new one.
  void forget(const std::string& name);

 private:
  struct SeriesKey {
    ObjectReference regarding;
    bool warning;
    std::string reason, action, note;
    auto operator<=>(const SeriesKey&) const = default;
  };
  struct Series {
    std::string name;
    std::int64_t count = 1;
    MonotonicPoint last{};
  };
  struct Similar {
    std::map<std::string, MonotonicPoint> notes;  // different notes, and when last seen
    MonotonicPoint last{};
  };
  struct Bucket {
    RateLimiter limiter;
    MonotonicPoint last{};
  };

  bool too_similar(const SeriesKey& key, MonotonicPoint now);
  void prune();

  EventLimits limits_;
  std::map<SeriesKey, Series> series_;
  std::map<SeriesKey, Similar> similar_;  // note left empty in the key
  std::map<ObjectReference, Bucket> buckets_;
  std::uint64_t serial_ = 0;
};

// At most `limit` bytes, never cutting a UTF-8 character; "..." at the end if cut.
std::string cut_note(std::string text, std::size_t limit = 1024);

}  // namespace kwatt::kube
