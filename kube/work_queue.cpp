#include "kube/work_queue.hpp"

#include <algorithm>

#include "base/backoff.hpp"

namespace kwatt::kube {
namespace {

double seconds(MonotonicPoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// client-go's buckets: 10 ns × 10^n up to 1000 s, from a millisecond on.
const std::vector<double>& buckets() {
  static const std::vector<double> bounds{0.001, 0.005, 0.01, 0.05, 0.1,   0.5,
                                          1.0,   5.0,   10.0, 60.0, 300.0, 1000.0};
  return bounds;
}

}  // namespace

WorkQueue::WorkQueue(WorkQueueOptions options) : options_(std::move(options)) {
  if (options_.metrics == nullptr) return;
  options_.metrics->add("workqueue_adds_total", "Keys added to the queue",
                        {{"name", options_.name}, {"controller", options_.name}}, 0);
  options_.metrics->add("workqueue_retries_total", "Keys added with a delay or after a failure",
                        {{"name", options_.name}, {"controller", options_.name}}, 0);
  show_depth();
  refresh_metrics(MonotonicPoint{});
}

void WorkQueue::add(std::string_view key, MonotonicPoint now, int priority, Duration after) {
  if (shutting_down_) return;
  std::optional<MonotonicPoint> ready_at;
  if (after > Duration{0}) {
    ready_at = now + after;
    count("workqueue_retries_total", "Keys added with a delay or after a failure");
  }
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    found = entries_.emplace(std::string(key), Entry{}).first;
    Entry& entry = found->second;
    entry.priority = priority;
    entry.ready_at = ready_at;
    entry.sequence = next_sequence_++;
    if (!ready_at) became_ready(found->first, entry, now);
    link(found->first, entry);
    show_depth();
    return;
  }
  Entry& entry = found->second;
  unlink(found->first, entry);
  if (priority > entry.priority) {
    entry.priority = priority;
    entry.sequence = next_sequence_++;
  }
  if (entry.ready_at && (!ready_at || *ready_at < *entry.ready_at)) {
    entry.ready_at = ready_at;
    if (!ready_at) became_ready(found->first, entry, now);
  }
  link(found->first, entry);
  show_depth();
}

void WorkQueue::add_rate_limited(std::string_view key, MonotonicPoint now, int priority) {
  if (shutting_down_) return;
  auto found = failures_.find(key);
  if (found == failures_.end()) found = failures_.emplace(std::string(key), 0).first;
  // The pause stops growing long before the counter could overflow.
  if (found->second < 1'000'000) ++found->second;
  add(key, now, priority, exponential(options_.first_retry, options_.longest_retry, found->second));
}

void WorkQueue::forget(std::string_view key) {
  if (const auto found = failures_.find(key); found != failures_.end()) failures_.erase(found);
}

int WorkQueue::failures(std::string_view key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

std::optional<WorkQueue::Item> WorkQueue::get(MonotonicPoint now) {
  promote(now);
  if (shutting_down_ || ready_.empty()) return std::nullopt;
  const auto found = entries_.find(*ready_.begin()->key);
  ready_.erase(ready_.begin());
  if (options_.metrics != nullptr) {
    options_.metrics->observe("workqueue_queue_duration_seconds",
                              "How long a key was ready before a worker took it",
                              {{"name", options_.name}, {"controller", options_.name}},
                              seconds(now - found->second.ready_since), buckets());
  }
  Item item{found->first, found->second.priority};
  entries_.erase(found);
  processing_.emplace(item.key, now);
  show_depth();
  return item;
}

void WorkQueue::done(std::string_view key, MonotonicPoint now) {
  const auto running = processing_.find(key);
  if (running == processing_.end()) return;
  if (options_.metrics != nullptr) {
    options_.metrics->observe("workqueue_work_duration_seconds", "How long processing a key took",
                              {{"name", options_.name}, {"controller", options_.name}},
                              seconds(now - running->second), buckets());
  }
  processing_.erase(running);
  // It was added again meanwhile: now it may run.
  if (const auto found = entries_.find(key); found != entries_.end()) {
    link(found->first, found->second);
  }
  show_depth();
}

std::optional<MonotonicPoint> WorkQueue::next_ready() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->at;
}

void WorkQueue::shut_down() {
  shutting_down_ = true;
  ready_.clear();
  waiting_.clear();
  entries_.clear();
  show_depth();
}

void WorkQueue::link(const std::string& key, const Entry& entry) {
  if (entry.ready_at) {
    waiting_.insert({*entry.ready_at, entry.sequence, &key});
  } else if (!processing_.contains(key)) {
    ready_.insert({entry.priority, entry.sequence, &key});
  }
}

void WorkQueue::unlink(const std::string& key, const Entry& entry) {
  if (entry.ready_at) {
    waiting_.erase({*entry.ready_at, entry.sequence, &key});
  } else {
    ready_.erase({entry.priority, entry.sequence, &key});
  }
}

void WorkQueue::became_ready(const std::string&, Entry& entry, MonotonicPoint now) {
  entry.ready_at.reset();
  entry.ready_since = now;
  count("workqueue_adds_total", "Keys added to the queue");
}

void WorkQueue::promote(MonotonicPoint now) {
  while (!waiting_.empty() && waiting_.begin()->at <= now) {
    const auto found = entries_.find(*waiting_.begin()->key);
    waiting_.erase(waiting_.begin());
    // Among equals the order is that of becoming ready, not of being added long before.
    found->second.sequence = next_sequence_++;
    became_ready(found->first, found->second, now);
    link(found->first, found->second);
  }
  show_depth();
}

void WorkQueue::count(const char* name, const char* help) const {
  if (options_.metrics == nullptr) return;
  options_.metrics->add(name, help, {{"name", options_.name}, {"controller", options_.name}});
}

void WorkQueue::show_depth() const {
  if (options_.metrics == nullptr) return;
  options_.metrics->set("workqueue_depth", "Keys that are ready and wait for a worker",
                        {{"name", options_.name}, {"controller", options_.name}},
                        static_cast<double>(ready_.size()));
}

void WorkQueue::refresh_metrics(MonotonicPoint now) const {
  if (options_.metrics == nullptr) return;
  double total = 0, longest = 0;
  for (const auto& [key, since] : processing_) {
    total += seconds(now - since);
    longest = std::max(longest, seconds(now - since));
  }
  const Labels labels{{"name", options_.name}, {"controller", options_.name}};
  options_.metrics->set("workqueue_unfinished_work_seconds",
                        "Sum of the times of all keys being processed", labels, total);
  options_.metrics->set("workqueue_longest_running_processor_seconds",
                        "How long the longest running key has been processed", labels, longest);
}

}  // namespace kwatt::kube
