#include "kube/async_queue.hpp"

#include <algorithm>

namespace kwatt::kube {

AsyncQueue::AsyncQueue(WorkQueueOptions options, const Clock& clock)
    : clock_(clock), queue_(std::move(options)) {}

void AsyncQueue::add(std::string_view key, int priority, Duration after) {
  queue_.add(key, clock_.monotonic(), priority, after);
  changed_.notify_all();
}

void AsyncQueue::add_rate_limited(std::string_view key, int priority) {
  queue_.add_rate_limited(key, clock_.monotonic(), priority);
  changed_.notify_all();
}

void AsyncQueue::done(std::string_view key) {
  queue_.done(key, clock_.monotonic());
  changed_.notify_all();
}

Task<std::optional<WorkQueue::Item>> AsyncQueue::get() {
  // Without a delayed key there is nothing to wait for but a notification.
  constexpr Duration kIdle = std::chrono::minutes{10};
  for (;;) {
    const MonotonicPoint now = clock_.monotonic();
    if (auto item = queue_.get(now)) co_return item;
    if (queue_.shutting_down()) co_return std::nullopt;
    queue_.refresh_metrics(now);
    Duration wait = kIdle;
    if (const auto ready = queue_.next_ready()) {
      wait = std::clamp(std::chrono::ceil<Duration>(*ready - now), Duration{1}, kIdle);
    }
    co_await changed_.wait_for(wait);
  }
}

void AsyncQueue::shut_down() {
  queue_.shut_down();
  changed_.notify_all();
}

}  // namespace kwatt::kube
