#include "kube/reflector.hpp"

#include <algorithm>
#include <malloc.h>
#include <random>

#include <fmt/format.h>

#include "api/decode.hpp"
#include "base/log.hpp"
#include "kube/path.hpp"
#include "kube/status_error.hpp"
#include "net/run.hpp"

namespace kwatt::kube {
namespace {

using Kind = WatchEvent::Kind;

constexpr std::size_t kErrorBodyLimit = 64 * 1024;
constexpr Duration kErrorBodyIdle{10'000};

// From so many objects on a list leaves enough freed memory behind to be worth giving back.
constexpr std::size_t kLargeList = 5000;

constexpr const char* kFailures = "kwatt_watch_failures_total";
constexpr const char* kFailuresHelp = "Lists and watches that failed, by what was wrong";
constexpr std::string_view kSilent = "silent";
constexpr const char* kLists = "kwatt_lists_total";
constexpr const char* kListsHelp = "Complete lists of a resource";

WatchFsm::Random make_random() {
  return [engine = std::mt19937_64{std::random_device{}()}]() mutable {
    return std::uniform_real_distribution<double>{0.0, 1.0}(engine);
  };
}

// What a failed request or a broken stream means for the protocol.
WatchFailure failure_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::expired:
      return WatchFailure::expired;
    case ErrorCode::too_many_requests:
      return WatchFailure::throttled;
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
      return WatchFailure::unavailable;
    case ErrorCode::internal:
      return WatchFailure::internal;
    default:
      return WatchFailure::other;
  }
}

WatchFailure failure_of(const api::Status& status) {
  return resource_version_too_large(status) ? WatchFailure::too_large : failure_of(code_of(status));
}

}  // namespace

Reflector::Reflector(Client& client, WatchTarget target, ReflectorOptions options,
                     ReflectorSink& sink, const Clock& clock, Metrics& metrics)
    : client_(client),
      target_(std::move(target)),
      options_(options),
      sink_(sink),
      clock_(clock),
      metrics_(metrics),
      fsm_(options.watch, make_random()),
      frames_(options.limits),
      path_(path_of(target_.resource, target_.namespace_name)) {}

Task<void> Reflector::run() {
  for (const auto failure :
       {WatchFailure::expired, WatchFailure::too_large, WatchFailure::throttled,
        WatchFailure::unavailable, WatchFailure::internal, WatchFailure::other}) {
    count(kFailures, kFailuresHelp, "reason", to_string(failure), 0);
  }
  count(kFailures, kFailuresHelp, "reason", kSilent, 0);
  count(kLists, kListsHelp, "result", "success", 0);
  WatchAction action = fsm_.next(event(Kind::start));
  for (;;) {
    // A watch is given up as soon as the machine turns to something else.
    if (action.kind != WatchAction::Kind::read) stream_.reset();
    switch (action.kind) {
      case WatchAction::Kind::list: {
        const WatchEvent listed = co_await list(action);
        action = fsm_.next(listed);
        break;
      }
      case WatchAction::Kind::commit:
        sink_.list_complete();
        if (sink_.size() >= kLargeList) ::malloc_trim(0);
        sink_.contact(clock_.monotonic());
        count(kLists, kListsHelp, "result", "success");
        action = fsm_.next(event(Kind::committed));
        break;
      case WatchAction::Kind::watch: {
        const WatchEvent opened = co_await open_watch(action);
        action = fsm_.next(opened);
        break;
      }
      case WatchAction::Kind::read:
        action = co_await read_watch();
        break;
      case WatchAction::Kind::sleep:
        log::debug("list and watch pauses", {{"resource", target_.resource.plural},
                                             {"reason", action.why},
                                             {"pause_ms", action.pause.count()}});
        co_await net::sleep(action.pause);
        action = fsm_.next(event(Kind::slept));
        break;
      case WatchAction::Kind::apply:  // done within read_watch()
        action = fsm_.next(event(Kind::applied));
        break;
    }
    metrics_.set("kwatt_store_objects", "Objects in the local store",
                 {{"resource", target_.resource.plural}}, static_cast<double>(sink_.size()));
  }
}

WatchEvent Reflector::event(Kind kind) const {
  return {.kind = kind, .now = clock_.monotonic()};
}

WatchEvent Reflector::failed(WatchFailure failure, const Error& error) {
  // We are being cancelled: the next co_await ends run(), and nothing is wrong.
  if (error.code == ErrorCode::cancelled) return event(Kind::failed);
  log::warn(
      "list and watch failed",
      {{"resource", target_.resource.plural}, {"failure", to_string(failure)}, {"error", error}});
  count(kFailures, kFailuresHelp, "reason", to_string(failure));
  WatchEvent made = event(Kind::failed);
  made.failure = failure;
  made.retry_after = error.retry_after;
  return made;
}

WatchEvent Reflector::failed(const Error& error) {
  return failed(failure_of(error.code), error);
}

WatchEvent Reflector::failed(const api::Status& status) {
  return failed(failure_of(status), to_error(status, path_));
}

Task<WatchEvent> Reflector::failed_response(net::BodyStream& stream) {
  const int http_status = stream.status();
  const std::string retry_after(stream.headers().get("Retry-After"));
  auto body = co_await stream.read_all(kErrorBodyLimit, kErrorBodyIdle);
  co_return failed(status_of_response(http_status, retry_after, body ? *body : std::string{}));
}

std::string Reflector::query(const WatchAction& action) const {
  std::string text;
  const auto add = [&](std::string_view key, std::string_view value) {
    text += fmt::format("{}{}={}", text.empty() ? '?' : '&', key, percent_encode(value));
  };
  if (!target_.field_selector.empty()) add("fieldSelector", target_.field_selector);
  if (!target_.label_selector.empty()) add("labelSelector", target_.label_selector);
  if (action.kind == WatchAction::Kind::watch) {
    add("watch", "1");
    add("allowWatchBookmarks", "true");
    add("timeoutSeconds", std::to_string(action.timeout.count()));
  }
  if (!action.resource_version.empty()) add("resourceVersion", action.resource_version);
  if (action.limit > 0) add("limit", std::to_string(action.limit));
  if (!action.continue_token.empty()) add("continue", action.continue_token);
  return text;
}

Task<WatchEvent> Reflector::list(const WatchAction& action) {
  if (action.first_page) {
    sink_.list_started();
    log::debug("listing", {{"resource", target_.resource.plural}, {"reason", action.why}});
  }
  auto opened = co_await client_.open(path_ + query(action));
  if (!opened) co_return failed(opened.error());
  net::BodyStream& stream = **opened;
  if (stream.status() != 200) co_return co_await failed_response(stream);
  auto read = co_await read_list(stream);
  if (!read) co_return failed(read.error().with_context("list " + path_));
  co_return *read;
}

Task<Result<WatchEvent>> Reflector::read_list(net::BodyStream& stream) {
  api::ListSplitter items(options_.limits);
  const api::OnValue take = [this](std::string& item) { return sink_.list_item(item); };
  for (;;) {
    auto piece = co_await stream.read_some(options_.list_idle);
    if (!piece) co_return piece.error();
    if (piece->empty()) break;
    if (auto fed = items.feed(*piece, take); !fed) co_return fed.error();
  }
  if (auto whole = items.finish(); !whole) co_return whole.error();
  auto meta = api::decode_list_envelope(items.envelope());
  if (!meta) co_return meta.error();
  if (meta->kind == "Status") co_return to_error(meta->status, path_);
  WatchEvent page = event(Kind::page);
  page.resource_version = std::move(meta->resource_version);
  page.continue_token = std::move(meta->continue_token);
  co_return page;
}

Task<WatchEvent> Reflector::open_watch(const WatchAction& action) {
  auto opened = co_await client_.open(path_ + query(action));
  if (!opened) co_return failed(opened.error());
  if ((*opened)->status() != 200) co_return co_await failed_response(**opened);
  stream_ = std::move(*opened);
  frames_ = api::ValueSplitter(options_.limits);
  const MonotonicPoint now = clock_.monotonic();
  give_up_at_ = now + action.timeout + options_.watch.idle_margin;
  sink_.contact(now);
  co_return event(Kind::opened);
}

// One piece of the stream, which may hold no frame, or many.
Task<WatchAction> Reflector::read_watch() {
  const auto left = std::chrono::ceil<Duration>(give_up_at_ - clock_.monotonic());
  if (left <= Duration{0}) {
    co_return fsm_.next(failed(fail(ErrorCode::timeout, "the watch has outlived its time")));
  }
  auto piece = co_await stream_->read_some(std::min(left, options_.watch_silence));
  if (!piece && piece.error().code == ErrorCode::timeout && clock_.monotonic() < give_up_at_) {
    // Ordinary for a kind of which there is nothing: it gets no bookmarks either.
    log::info("a silent watch is opened anew", {{"resource", target_.resource.plural}});
    count(kFailures, kFailuresHelp, "reason", kSilent);
    co_return fsm_.next(event(Kind::ended));
  }
  if (!piece) co_return fsm_.next(failed(piece.error().with_context("watch " + path_)));
  // Half a frame at the end of the stream is dropped: the next watch brings it whole.
  if (piece->empty()) co_return fsm_.next(event(Kind::ended));
  after_frame_ = WatchAction{.kind = WatchAction::Kind::read};
  const api::OnValue take = [this](std::string& json) { return take_frame(json); };
  auto fed = frames_.feed(*piece, take);
  // take_frame() stops the feeding when the machine turns away from this stream; any other error
  // is the splitter's, about bytes that are no frames.
  if (!fed && after_frame_.kind == WatchAction::Kind::read) {
    co_return fsm_.next(failed(fed.error().with_context("watch " + path_)));
  }
  co_return after_frame_;
}

Result<void> Reflector::take_frame(std::string& json) {
  WatchAction action = fsm_.next(event_of(json));
  if (action.kind == WatchAction::Kind::apply) {
    sink_.apply();
    action = fsm_.next(event(Kind::applied));
  }
  const bool go_on = action.kind == WatchAction::Kind::read;
  after_frame_ = std::move(action);
  if (!go_on) return fail(ErrorCode::cancelled, "the rest of the stream is not wanted");
  return {};
}

WatchEvent Reflector::event_of(std::string& json) {
  auto frame = api::open_watch_frame(json);
  if (!frame) return failed(frame.error().with_context("watch " + path_));
  if (frame->type == api::WatchType::error) return failed(frame->status);
  sink_.contact(clock_.monotonic());
  if (frame->type == api::WatchType::unknown) {
    log::warn("watch event of an unknown type is skipped",
              {{"resource", target_.resource.plural}, {"type", frame->type_text.substr(0, 64)}});
    return event(Kind::skipped);
  }
  count("kwatt_watch_events_total", "Events received from watches", "type", frame->type_text);
  if (frame->type == api::WatchType::bookmark) {
    WatchEvent made = event(Kind::bookmark);
    made.resource_version = std::move(frame->resource_version);
    return made;
  }
  const auto change = frame->type == api::WatchType::deleted ? ReflectorSink::Change::remove
                                                             : ReflectorSink::Change::put;
  auto version = sink_.change(change, {frame->object.data, frame->object.size});
  if (!version) return failed(version.error().with_context("watch " + path_));
  WatchEvent made = event(Kind::change);
  made.resource_version = std::move(*version);
  return made;
}

void Reflector::count(const char* name, const char* help, std::string_view label,
                      std::string_view value, double by) {
  metrics_.add(name, help,
               {{"resource", target_.resource.plural}, {std::string(label), std::string(value)}},
               by);
}

}  // namespace kwatt::kube
