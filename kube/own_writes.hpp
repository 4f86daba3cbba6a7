#pragma once
// Has the cache seen what we wrote ourselves? A pass is skipped until it has (KEP-5647).
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/time.hpp"

namespace kwatt::kube {

// Resource versions are opaque and compared for equality only: feed it every version the store
// delivers. A version may be skipped over (two lists, merged events), so that a write stops
// counting after `give_up`; what is written with a stale cache then still meets its own
// resourceVersion. Not thread-safe.
class OwnWrites {
 public:
  explicit OwnWrites(Duration give_up = std::chrono::seconds{10}) : give_up_(give_up) {}

  // We wrote the object and the server answered with this version. Only the newest counts. The
  // watch may well have been faster than the answer: then it counts as seen at once.
  void wrote(std::string_view key, std::string_view resource_version, MonotonicPoint now);
  // The store delivered this version of the object (or its deletion, with any version).
  void observed(std::string_view key, std::string_view resource_version);
  void deleted(std::string_view key);
  // True: the cache is older than our last write to any object, or to this one.
  bool pending(MonotonicPoint now);
  bool pending(std::string_view key, MonotonicPoint now);

 private:
  struct Write {
    std::string resource_version;
    MonotonicPoint at;
  };
  static constexpr std::size_t kRemembered = 1024;

  Duration give_up_;
  std::unordered_map<std::string, Write> writes_;
  std::deque<std::pair<std::string, std::string>> recent_;  // what was delivered last: key, version
};

}  // namespace kwatt::kube
