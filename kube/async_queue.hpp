#pragma once
// A WorkQueue that can be waited on. One executor (strand) for everything.
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "kube/client.hpp"
#include "kube/work_queue.hpp"
#include "net/run.hpp"

namespace kwatt::kube {

class AsyncQueue {
 public:
  // `clock` outlives it.
  AsyncQueue(WorkQueueOptions options, const Clock& clock);

  void add(std::string_view key, int priority = kPriorityNormal, Duration after = Duration{0});
  void add_rate_limited(std::string_view key, int priority = kPriorityNormal);
  void forget(std::string_view key) { queue_.forget(key); }
  void done(std::string_view key);
  // Waits for the next key; nullopt: shut down. Cancelled: ends with operation_aborted.
  Task<std::optional<WorkQueue::Item>> get();
  // Wakes all that wait in get().
  void shut_down();
  const WorkQueue& state() const { return queue_; }

 private:
  const Clock& clock_;
  WorkQueue queue_;
  net::Signal changed_;
};

}  // namespace kwatt::kube
