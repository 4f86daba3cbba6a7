#include "kube/events.hpp"

#include <deque>

#include <boost/asio/dispatch.hpp>

#include "api/encode.hpp"
#include "api/patch.hpp"
#include "base/backoff.hpp"
#include "base/log.hpp"
#include "net/run.hpp"

namespace kwatt::kube {
namespace {

constexpr int kAttempts = 4;
constexpr Duration kRetryPause{500};

constexpr const char* kDropped = "kwatt_events_dropped_total";
constexpr const char* kDroppedHelp = "Kubernetes Events that were not written, by reason";
constexpr const char* kWritten = "kwatt_events_written_total";
constexpr const char* kWrittenHelp = "Kubernetes Events created, or counted up";

}  // namespace

struct EventRecorder::Impl {
  Impl(boost::asio::any_io_executor on, Client& api, EventRecorderOptions given, const Clock& time,
       Metrics& registry)
      : executor(std::move(on)),
        client(api),
        options(std::move(given)),
        clock(time),
        metrics(registry),
        correlator(options.limits) {
    // The API server insists on an instance.
    if (options.instance.empty()) options.instance = options.controller;
    for (const char* reason : {"rate_limited", "queue_full", "error"}) drop(reason, 0);
    metrics.add(kWritten, kWrittenHelp, {}, 0);
  }

  struct Pending {
    EventNote note;
    EventCorrelator::Decision decision;
    TimePoint time;
  };

  void drop(const char* reason, double by = 1) {
    metrics.add(kDropped, kDroppedHelp, {{"reason", reason}}, by);
  }

  void record(EventNote note) {
    const TimePoint wall = clock.now();
    auto decision = correlator.decide(note, wall, clock.monotonic());
    if (decision.kind == EventCorrelator::Decision::Kind::drop) return drop("rate_limited");
    if (queue.size() >= options.queue_limit) {
      correlator.forget(decision.name);
      return drop("queue_full");
    }
    queue.push_back({std::move(note), std::move(decision), wall});
    changed.notify_all();
  }

  static std::string namespace_of(const EventNote& note) {
    return note.regarding.namespace_name.empty() ? "default" : note.regarding.namespace_name;
  }

  std::string created(const Pending& event) const {
    api::EventBody body;
    body.namespace_name = namespace_of(event.note);
    body.name = event.decision.name;
    body.regarding_api_version = event.note.regarding.api_version;
    body.regarding_kind = event.note.regarding.kind;
    body.regarding_name = event.note.regarding.name;
    body.regarding_namespace = event.note.regarding.namespace_name;
    body.regarding_uid = event.note.regarding.uid;
    if (event.note.related) {
      body.related_api_version = event.note.related->api_version;
      body.related_kind = event.note.related->kind;
      body.related_name = event.note.related->name;
      body.related_namespace = event.note.related->namespace_name;
      body.related_uid = event.note.related->uid;
    }
    body.type = event.note.warning ? "Warning" : "Normal";
    body.reason = event.note.reason;
    body.action = event.note.action;
    body.note = event.decision.note;
    body.reporting_controller = options.controller;
    body.reporting_instance = options.instance;
    body.time = event.time;
    return api::encode(body);
  }

  static std::string repeated(const Pending& event) {
    return api::MergePatch{}
        .set({"series", "count"}, event.decision.count)
        .set({"series", "lastObservedTime"}, format_micro_time(event.time))
        .text();
  }

  Task<Result<std::string>> send(const Pending& event) {
    if (event.decision.kind == EventCorrelator::Decision::Kind::create) {
      co_return co_await client.create(resources::events(), namespace_of(event.note),
                                       created(event));
    }
    Name name{namespace_of(event.note), event.decision.name};
    co_return co_await client.patch(resources::events(), std::move(name), Client::PatchType::merge,
                                    options.controller, "", repeated(event));
  }

  Task<void> write(const Pending& event) {
    for (int attempt = 1;; ++attempt) {
      const auto answer = co_await send(event);
      if (answer) {
        metrics.add(kWritten, kWrittenHelp, {});
        co_return;
      }
      // A create whose answer got lost may have worked: the name is ours alone.
      if (answer.error().code == ErrorCode::already_exists) co_return;
      if (attempt >= kAttempts || stopping || !answer.error().transient()) {
        log::warn("event is not written", {{"regarding", event.note.regarding.name},
                                           {"reason", event.note.reason},
                                           {"error", answer.error()}});
        drop("error");
        correlator.forget(event.decision.name);
        co_return;
      }
      co_await net::sleep(exponential(kRetryPause, std::chrono::seconds{10}, attempt));
    }
  }

  Task<void> run() {
    for (;;) {
      if (queue.empty()) {
        if (stopping) co_return;
        co_await changed.wait_for(std::chrono::minutes{10});
        continue;
      }
      const Pending event = std::move(queue.front());
      queue.pop_front();
      co_await write(event);
    }
  }

  boost::asio::any_io_executor executor;
  Client& client;
  EventRecorderOptions options;
  const Clock& clock;
  Metrics& metrics;
  EventCorrelator correlator;
  std::deque<Pending> queue;
  net::Signal changed;
  bool stopping = false;
};

EventRecorder::EventRecorder(boost::asio::any_io_executor executor, Client& client,
                             EventRecorderOptions options, const Clock& clock, Metrics& metrics)
    : impl_(std::make_shared<Impl>(std::move(executor), client, std::move(options), clock,
                                   metrics)) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::record(EventNote note) {
  boost::asio::dispatch(impl_->executor, [self = impl_, note = std::move(note)]() mutable {
    self->record(std::move(note));
  });
}

Task<void> EventRecorder::run() {
  const std::shared_ptr<Impl> self = impl_;
  co_await self->run();
}

void EventRecorder::stop() {
  // In line behind what was recorded before.
  boost::asio::dispatch(impl_->executor, [self = impl_] {
    self->stopping = true;
    self->changed.notify_all();
  });
}

}  // namespace kwatt::kube
