#include "kube/watch_fsm.hpp"

#include <algorithm>

namespace kwatt::kube {

std::string_view to_string(WatchFailure failure) {
  switch (failure) {
    case WatchFailure::expired:
      return "expired";
    case WatchFailure::too_large:
      return "resource_version_too_large";
    case WatchFailure::throttled:
      return "too_many_requests";
    case WatchFailure::unavailable:
      return "unavailable";
    case WatchFailure::internal:
      return "internal";
    case WatchFailure::other:
      return "other";
  }
  return "other";
}

WatchFsm::WatchFsm(WatchOptions options, Random random)
    : options_(options), random_(random), backoff_(options.backoff, std::move(random)) {}

WatchAction WatchFsm::next(const WatchEvent& event) {
  using Kind = WatchEvent::Kind;
  switch (event.kind) {
    case Kind::start:
      return list_from_start("start");
    case Kind::page:
      return page_read(event);
    case Kind::committed:
      return watch();
    case Kind::opened:
      opened_at_ = event.now;
      stream_empty_ = true;
      return {.kind = WatchAction::Kind::read};
    case Kind::change:
      return progressed(event, WatchAction::Kind::apply);
    case Kind::bookmark:
      return progressed(event, WatchAction::Kind::read);
    case Kind::applied:
    case Kind::skipped:
      return {.kind = WatchAction::Kind::read};
    case Kind::ended:
      return watch_ended(event);
    case Kind::failed:
      return phase_ == Phase::listing ? list_failed(event) : watch_failed(event);
    case Kind::slept:
      return phase_ == Phase::listing ? list_from_start("retry") : watch();
  }
  return {.kind = WatchAction::Kind::read};
}

WatchAction WatchFsm::list_from_start(std::string_view why) {
  phase_ = Phase::listing;
  first_page_ = true;
  WatchAction action{.kind = WatchAction::Kind::list, .first_page = true, .why = why};
  if (!quorum_) action.resource_version = resource_version_.empty() ? "0" : resource_version_;
  // "Not older than RV" is answered from the watch cache; a limit would force it through etcd.
  const bool any_or_newest = action.resource_version.empty() || action.resource_version == "0";
  if (any_or_newest && !unpaged_) action.limit = options_.page_limit;
  return action;
}

WatchAction WatchFsm::page_read(const WatchEvent& event) {
  if (event.resource_version.empty()) {
    return pause(event, Phase::listing, "no_resource_version");
  }
  if (first_page_) list_version_ = event.resource_version;
  first_page_ = false;
  if (!event.continue_token.empty()) {
    return {.kind = WatchAction::Kind::list,
            .continue_token = event.continue_token,
            .limit = options_.page_limit};
  }
  // All pages are of one moment, that of the first.
  resource_version_ = list_version_;
  quorum_ = unpaged_ = retried_ = false;
  return {.kind = WatchAction::Kind::commit};
}

WatchAction WatchFsm::watch() {
  phase_ = Phase::watching;
  const auto spread =
      static_cast<double>((options_.watch_maximum - options_.watch_minimum).count());
  const Duration timeout =
      options_.watch_minimum + Duration{static_cast<std::int64_t>(spread * random_())};
  return {.kind = WatchAction::Kind::watch,
          .resource_version = resource_version_,
          .timeout = std::max(std::chrono::seconds{1},
                              std::chrono::duration_cast<std::chrono::seconds>(timeout))};
}

WatchAction WatchFsm::pause(const WatchEvent& event, Phase then, std::string_view why) {
  phase_ = then;
  const Duration pause = backoff_.next(event.now);
  return {.kind = WatchAction::Kind::sleep,
          .pause = std::max(pause, event.retry_after.value_or(Duration{0})),
          .why = why};
}

WatchAction WatchFsm::progressed(const WatchEvent& event, WatchAction::Kind then) {
  // Without a resource version we could not resume after this event.
  if (event.resource_version.empty()) {
    return pause(event, Phase::listing, "no_resource_version");
  }
  resource_version_ = event.resource_version;
  stream_empty_ = false;
  expired_in_row_ = 0;
  internal_since_.reset();
  return {.kind = then};
}

WatchAction WatchFsm::watch_ended(const WatchEvent& event) {
  if (stream_empty_ && event.now - opened_at_ < options_.very_short) {
    return pause(event, Phase::watching, "very_short_watch");
  }
  return watch();
}

WatchAction WatchFsm::list_failed(const WatchEvent& event) {
  const bool stale =
      event.failure == WatchFailure::expired || event.failure == WatchFailure::too_large;
  if (stale) {
    if (!first_page_) unpaged_ = true;
    quorum_ = true;
    if (!retried_) {
      retried_ = true;
      return list_from_start(to_string(event.failure));
    }
  }
  retried_ = false;
  return pause(event, Phase::listing, to_string(event.failure));
}

WatchAction WatchFsm::watch_failed(const WatchEvent& event) {
  const std::string_view why = to_string(event.failure);
  switch (event.failure) {
    case WatchFailure::expired:
    case WatchFailure::too_large:
      quorum_ = true;
      // The list already is the one immediate retry; a server that calls its own fresh list
      // expired must not be asked in a tight loop.
      if (expired_in_row_++ == 0) return list_from_start(why);
      return pause(event, Phase::listing, why);
    case WatchFailure::throttled:
    case WatchFailure::unavailable:
      return pause(event, Phase::watching, why);
    case WatchFailure::internal:
      if (!internal_since_) internal_since_ = event.now;
      if (event.now - *internal_since_ <= options_.internal_error_window) {
        return pause(event, Phase::watching, why);
      }
      internal_since_.reset();
      return pause(event, Phase::listing, why);
    case WatchFailure::other:
      break;
  }
  return pause(event, Phase::listing, why);
}

}  // namespace kwatt::kube
