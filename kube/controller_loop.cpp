#include "kube/controller_loop.hpp"

#include <algorithm>
#include <exception>
#include <list>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.hpp"
#include "net/run.hpp"

namespace kwatt::kube {
namespace {

namespace asio = boost::asio;

constexpr const char* kTotal = "controller_runtime_reconcile_total";
constexpr const char* kTotalHelp = "Reconciliations, by controller and result";
constexpr const char* kErrors = "controller_runtime_reconcile_errors_total";
constexpr const char* kErrorsHelp = "Reconciliations that failed";
constexpr const char* kTerminal = "controller_runtime_terminal_reconcile_errors_total";
constexpr const char* kTerminalHelp = "Reconciliations that failed for good";
constexpr const char* kPanics = "controller_runtime_reconcile_panics_total";
constexpr const char* kPanicsHelp = "Reconciliations ended by an exception";
constexpr const char* kTime = "controller_runtime_reconcile_time_seconds";
constexpr const char* kTimeHelp = "How long a reconciliation took";
constexpr const char* kActive = "controller_runtime_active_workers";
constexpr const char* kActiveHelp = "Workers that reconcile right now";

// controller-runtime's.
const std::vector<double>& time_buckets() {
  static const std::vector<double> bounds{
      0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
      0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5, 3.0,  3.5, 4.0,  4.5, 5,
      6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60};
  return bounds;
}

}  // namespace

struct ControllerLoop::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::any_io_executor on, ControllerOptions given, Reconcile call, const Clock& time,
       Metrics& registry)
      : executor(std::move(on)),
        options(std::move(given)),
        reconcile(std::move(call)),
        clock(time),
        metrics(registry),
        queue(WorkQueueOptions{.name = options.name, .metrics = &registry}, time) {
    for (const char* result : {"success", "error", "requeue", "requeue_after"}) {
      metrics.add(kTotal, kTotalHelp, {{"controller", options.name}, {"result", result}}, 0);
    }
    metrics.add(kErrors, kErrorsHelp, labels(), 0);
    metrics.add(kTerminal, kTerminalHelp, labels(), 0);
    metrics.add(kPanics, kPanicsHelp, labels(), 0);
    metrics.set(kActive, kActiveHelp, labels(), 0);
    metrics.set("controller_runtime_max_concurrent_reconciles", "Workers of the controller",
                labels(), options.workers);
  }

  Labels labels() const { return {{"controller", options.name}}; }
  void count(const char* result) {
    metrics.add(kTotal, kTotalHelp, {{"controller", options.name}, {"result", result}});
  }

  // The result, or what an exception said, as an error of this key alone.
  Task<Result<ReconcileResult>> call(std::string key) {
    try {
      co_return co_await reconcile(key);
    } catch (const boost::system::system_error& error) {
      // Cancellation travels as this exception and must not be mistaken for a failure.
      if (error.code() == asio::error::operation_aborted) throw;
      metrics.add(kPanics, kPanicsHelp, labels());
      co_return fail(ErrorCode::internal, "reconciler threw an exception", error.what());
    } catch (const std::exception& error) {
      metrics.add(kPanics, kPanicsHelp, labels());
      co_return fail(ErrorCode::internal, "reconciler threw an exception", error.what());
    }
  }

  void conclude(const WorkQueue::Item& item, const Result<ReconcileResult>& result) {
    // Every write is guarded by the version it was decided from, so this happens wherever others
    // write, too. The pause lets the cache catch up.
    if (!result && result.error().code == ErrorCode::conflict) {
      log::debug("somebody else wrote first: decided again",
                 {{"controller", options.name}, {"key", item.key}, {"error", result.error()}});
      count("requeue");
      queue.add_rate_limited(item.key, item.priority);
      return;
    }
    if (!result || result->terminal) {
      const Error& error = result ? *result->terminal : result.error();
      log::error("reconcile failed", {{"controller", options.name},
                                      {"key", item.key},
                                      {"terminal", result.has_value()},
                                      {"error", error}});
      count("error");
      metrics.add(kErrors, kErrorsHelp, labels());
      if (result) {
        metrics.add(kTerminal, kTerminalHelp, labels());
      } else {
        queue.add_rate_limited(item.key, item.priority);
      }
      return;
    }
    queue.forget(item.key);
    if (result->requeue_after) {
      count("requeue_after");
      queue.add(item.key, item.priority, std::max(*result->requeue_after, Duration{1}));
    } else {
      count("success");
    }
  }

  Task<void> work() {
    for (;;) {
      const auto item = co_await queue.get();
      if (!item) co_return;
      metrics.set(kActive, kActiveHelp, labels(), ++active);
      const MonotonicPoint started = clock.monotonic();
      auto result = co_await call(item->key);
      metrics.observe(kTime, kTimeHelp, labels(),
                      std::chrono::duration<double>(clock.monotonic() - started).count(),
                      time_buckets());
      metrics.set(kActive, kActiveHelp, labels(), --active);
      // Requeued before done(), so that the key cannot slip through to another worker in between.
      conclude(*item, result);
      queue.done(item->key);
    }
  }

  Task<void> resync() {
    for (;;) {
      co_await net::sleep(options.resync);
      for (const std::string& key : options.all_keys()) queue.add(key, kPriorityLow);
    }
  }

  void spawn(Task<void> task, bool is_worker) {
    signals.emplace_back();
    auto ended = [self = shared_from_this(), is_worker](const std::exception_ptr& error) {
      if (is_worker) --self->workers;
      self->changed.notify_all();
      if (!error) return;
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& what) {
        log::debug("a worker ended early",
                   {{"controller", self->options.name}, {"error", std::string_view{what.what()}}});
      }
    };
    asio::co_spawn(executor, std::move(task),
                   asio::bind_cancellation_slot(signals.back().slot(), std::move(ended)));
  }

  void cancel_all() {
    for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
  }

  asio::any_io_executor executor;
  ControllerOptions options;
  Reconcile reconcile;
  const Clock& clock;
  Metrics& metrics;
  AsyncQueue queue;
  net::Signal changed;  // a worker ended
  std::list<asio::cancellation_signal> signals;
  int workers = 0;  // running
  int active = 0;   // reconciling
};

ControllerLoop::ControllerLoop(boost::asio::any_io_executor executor, ControllerOptions options,
                               Reconcile reconcile, const Clock& clock, Metrics& metrics)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options), std::move(reconcile),
                                   clock, metrics)) {}

ControllerLoop::~ControllerLoop() = default;

void ControllerLoop::enqueue(std::string_view key, int priority, Duration after) {
  impl_->queue.add(key, priority, after);
}

Task<void> ControllerLoop::run() {
  const std::shared_ptr<Impl> self = impl_;
  self->workers = self->options.workers;
  for (int i = 0; i < self->options.workers; ++i) {
    Task<void> worker = [](std::shared_ptr<Impl> impl) -> Task<void> {
      co_await impl->work();
    }(self);
    self->spawn(std::move(worker), true);
  }
  if (self->options.all_keys && self->options.resync > Duration{0}) {
    Task<void> resync = [](std::shared_ptr<Impl> impl) -> Task<void> {
      co_await impl->resync();
    }(self);
    self->spawn(std::move(resync), false);
  }
  try {
    while (self->workers > 0) co_await self->changed.wait_for(std::chrono::minutes{10});
  } catch (...) {
    // Cancelled: no worker is left behind.
    self->queue.shut_down();
    self->cancel_all();
    throw;
  }
  self->cancel_all();  // the resync
}

Task<void> ControllerLoop::stop() {
  const std::shared_ptr<Impl> self = impl_;
  self->queue.shut_down();
  const MonotonicPoint deadline = self->clock.monotonic() + self->options.drain;
  while (self->workers > 0) {
    const auto left = std::chrono::ceil<Duration>(deadline - self->clock.monotonic());
    if (left <= Duration{0}) break;
    co_await self->changed.wait_for(left);
  }
  if (self->workers > 0) {
    log::warn("reconciles are cancelled: they outlasted the grace period",
              {{"controller", self->options.name}, {"running", self->active}});
  }
  self->cancel_all();
}

const WorkQueue& ControllerLoop::queue() const {
  return impl_->queue.state();
}

}  // namespace kwatt::kube
