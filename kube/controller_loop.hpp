#pragma once
// Workers that take keys from a queue and reconcile them, with controller-runtime's rules and
// metric names.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/metrics.hpp"
#include "kube/async_queue.hpp"

namespace kwatt::kube {

// What a reconciler says when nothing went wrong (errors travel in Result).
struct ReconcileResult {
  // Come back after this, even if nothing happens; forgets earlier failures.
  std::optional<Duration> requeue_after = std::nullopt;
  // Failed for good until the object changes: counted and logged, not retried.
  std::optional<Error> terminal = std::nullopt;
};
inline ReconcileResult terminal(Error error) {
  return ReconcileResult{std::nullopt, std::move(error)};
}

// Level-based: gets a key, not an event, and looks up everything itself. Never runs twice at once
// for one key. An error: retried with growing pauses at the same priority. A conflict, too, but it
// is nobody's failure: somebody else wrote first (counted as result "requeue").
using Reconcile = std::function<Task<Result<ReconcileResult>>(std::string key)>;

struct ControllerOptions {
  std::string name{};  // the metric label, e.g. "energypolicy"
  int workers = 1;
  Duration drain = std::chrono::seconds{30};  // stop() waits so long for running reconciles
  // Every key that `all_keys` names is reconciled so often, with low priority (0: never).
  Duration resync = std::chrono::hours{10};
  std::function<std::vector<std::string>()> all_keys{};
};

class ControllerLoop {
 public:
  // `clock` and `metrics` outlive it. Everything runs on `executor` (one strand).
  ControllerLoop(boost::asio::any_io_executor executor, ControllerOptions options,
                 Reconcile reconcile, const Clock& clock, Metrics& metrics);
  ~ControllerLoop();
  ControllerLoop(const ControllerLoop&) = delete;
  ControllerLoop& operator=(const ControllerLoop&) = delete;

  // May be called before run(): keys wait.
  void enqueue(std::string_view key, int priority = kPriorityNormal, Duration after = Duration{0});

  // Runs the workers until stop() or cancellation; returns when all of them ended.
  Task<void> run();
  // Takes no more keys, lets running reconciles end for `drain`, then cancels them. Returns when
  // run() has nothing left to do.
  Task<void> stop();

  const WorkQueue& queue() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with the workers
};

}  // namespace kwatt::kube
