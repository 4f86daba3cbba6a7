#pragma once
// The list-and-watch protocol as a pure state machine: what happened goes in, what to do next comes
// out. No I/O, no clock, no random source of its own (kube/reflector.cpp drives it).
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.hpp"

namespace kwatt::kube {

struct WatchOptions {
  int page_limit = 500;
  // A watch asks the server to end it after a random time between these.
  Duration watch_minimum = std::chrono::minutes{5};
  Duration watch_maximum = std::chrono::minutes{10};
  Duration idle_margin = std::chrono::seconds{5};  // a silent peer is given up so long after that
  Duration very_short = std::chrono::seconds{1};   // a watch that ends sooner, empty, has failed
  Duration internal_error_window = std::chrono::minutes{1};
  BackoffOptions backoff{};
};

// Why a list or a watch failed, as far as the protocol treats it differently.
enum class WatchFailure {
  expired,      // 410 Gone or Expired: as status, on a page, or inside the stream
  too_large,    // "Too large resource version": the server is behind what we have seen
  throttled,    // 429
  unavailable,  // connection refused or lost, silence, 503
  internal,     // 500
  other,        // everything else: 401, 403, unreadable frames, …
};
std::string_view to_string(WatchFailure failure);

struct WatchEvent {
  enum class Kind {
    start,      // the first call
    page,       // a page of the list was read: resource_version, continue_token
    committed,  // the list was put in place
    opened,     // the server accepted the watch
    change,     // ADDED, MODIFIED or DELETED: resource_version of its object
    applied,    // the change was put into the store
    bookmark,   // resource_version
    skipped,    // an event of a type we do not know
    ended,      // clean end of the watch
    failed,     // failure, retry_after
    slept,      // the pause is over
  };
  Kind kind = Kind::start;
  MonotonicPoint now{};
  std::string resource_version{}, continue_token{};
  WatchFailure failure = WatchFailure::other;
  std::optional<Duration> retry_after = std::nullopt;
};

struct WatchAction {
  enum class Kind {
    list,    // get one page; a first page starts a fresh temporary copy
    commit,  // put the complete list in place
    watch,   // open the watch
    apply,   // put the change just reported into the store
    read,    // wait for the next frame
    sleep,   // pause
  };
  Kind kind = Kind::read;
  // list: sent only if not nullopt ("" is sent as absent as well: a quorum read).
  std::string resource_version{};
  std::string continue_token{};     // list
  int limit = 0;                    // list; 0: none
  bool first_page = false;          // list
  std::chrono::seconds timeout{0};  // watch: timeoutSeconds
  Duration pause{0};                // sleep
  std::string_view why{};           // sleep, list: a word for log and metric
};

class WatchFsm {
 public:
  using Random = std::function<double()>;  // uniform in [0, 1)
  WatchFsm(WatchOptions options, Random random);

  WatchAction next(const WatchEvent& event);

  // The resource version up to which the store is known to be complete; opaque.
  const std::string& resource_version() const { return resource_version_; }

 private:
  enum class Phase { listing, watching };

  WatchAction list_from_start(std::string_view why);
  WatchAction watch();
  WatchAction pause(const WatchEvent& event, Phase then, std::string_view why);
  WatchAction page_read(const WatchEvent& event);
  WatchAction progressed(const WatchEvent& event, WatchAction::Kind then);
  WatchAction watch_ended(const WatchEvent& event);
  WatchAction list_failed(const WatchEvent& event);
  WatchAction watch_failed(const WatchEvent& event);

  WatchOptions options_;
  Random random_;
  Backoff backoff_;
  Phase phase_ = Phase::listing;
  std::string resource_version_;  // "": nothing complete seen yet
  std::string list_version_;      // of the first page of the list being read
  bool first_page_ = true;
  bool quorum_ = false;     // the next list must not be served from a watch cache
  bool unpaged_ = false;    // a continue token expired: take it in one piece
  bool retried_ = false;    // this list was already repeated without a pause
  int expired_in_row_ = 0;  // watches that expired before anything came from them
  MonotonicPoint opened_at_{};
  bool stream_empty_ = true;
  std::optional<MonotonicPoint> internal_since_;
};

}  // namespace kwatt::kube
