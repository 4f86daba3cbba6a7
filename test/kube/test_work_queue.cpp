// Which key comes next: dedup, delays, retries, priorities, shutdown. The clock is a number.
#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "kube/work_queue.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

struct Queue {
  void add(const std::string& key, int priority = kPriorityNormal, Duration after = 0ms) {
    queue.add(key, now, priority, after);
  }
  // The next key, "" if none; it stays in processing.
  std::string take() {
    const auto item = queue.get(now);
    return item ? item->key : "";
  }
  std::vector<std::string> take_all() {
    std::vector<std::string> keys;
    while (auto item = queue.get(now)) keys.push_back(item->key);
    return keys;
  }
  MonotonicPoint now{1h};
  Metrics metrics;
  WorkQueue queue{{.name = "test", .metrics = &metrics}};
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Queue, "queue: first come, first served, each key once") {
  for (const char* key : {"a", "b", "a", "c", "b"}) add(key);
  CHECK(queue.depth() == 3);
  CHECK(take_all() == Keys{"a", "b", "c"});
}

TEST_CASE_FIXTURE(Queue, "queue: a key added while it is processed comes back after done, once") {
  add("a");
  CHECK(take() == "a");
  add("a");
  add("a");
  CHECK(take().empty());
  queue.done("a", now);
  CHECK(take() == "a");
  CHECK(take().empty());
  queue.done("a", now);
  CHECK(take().empty());
}

TEST_CASE_FIXTURE(Queue, "queue: done without work changes nothing") {
  add("a");
  queue.done("a", now);
  queue.done("b", now);
  CHECK(take_all() == Keys{"a"});
}

TEST_CASE_FIXTURE(Queue, "delay: a key is not ready before its time") {
  add("a", 0, 100ms);
  CHECK(queue.waiting() == 1);
  CHECK(queue.next_ready() == now + 100ms);
  now += 99ms;
  CHECK(take().empty());
  now += 1ms;
  CHECK(take() == "a");
  CHECK_FALSE(queue.next_ready());
}

TEST_CASE_FIXTURE(Queue, "delay: one entry per key, the earliest time counts") {
  add("a", 0, 100ms);
  add("a", 0, 50ms);
  add("a", 0, 200ms);
  CHECK(queue.waiting() == 1);
  CHECK(queue.next_ready() == now + 50ms);
  add("a", 0, 0ms);
  CHECK(queue.waiting() == 0);
  CHECK(take() == "a");
}

TEST_CASE_FIXTURE(Queue,
                  "delay: zero and negative mean now, a delay does not take back a ready key") {
  add("a", 0, -5s);
  add("a", 0, 10s);
  CHECK(take() == "a");
}

TEST_CASE_FIXTURE(Queue, "delay: those that become ready together keep the order of their times") {
  add("late", 0, 30ms);
  add("early", 0, 10ms);
  add("middle", 0, 20ms);
  now += 1s;
  CHECK(take_all() == Keys{"early", "middle", "late"});
}

TEST_CASE_FIXTURE(Queue, "delay: a key that becomes ready while it is processed waits for done") {
  add("a");
  CHECK(take() == "a");
  add("a", 0, 10ms);
  now += 1s;
  CHECK(take().empty());
  queue.done("a", now);
  CHECK(take() == "a");
}

TEST_CASE_FIXTURE(Queue, "retries: 5 ms doubled, at most 1000 s, from the start after success") {
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 22; ++i) {
    queue.add_rate_limited("a", now);
    pauses.push_back(std::chrono::ceil<Duration>(*queue.next_ready() - now).count());
    now = *queue.next_ready();
    CHECK(take() == "a");
    queue.done("a", now);
  }
  CHECK(pauses[0] == 5);
  CHECK(pauses[1] == 10);
  CHECK(pauses[10] == 5120);
  CHECK(pauses[17] == 655'360);
  CHECK(pauses[18] == 1'000'000);
  CHECK(pauses[21] == 1'000'000);
  CHECK(queue.failures("a") == 22);
  queue.forget("a");
  CHECK(queue.failures("a") == 0);
  queue.add_rate_limited("a", now);
  CHECK(*queue.next_ready() == now + 5ms);
}

TEST_CASE("retries: a thousand failures do not overflow") {
  WorkQueue queue({.name = "test"});
  MonotonicPoint now{1h};
  for (int i = 0; i < 1000; ++i) queue.add_rate_limited("a", now);
  CHECK(*queue.next_ready() == now + 5ms);  // the earliest counts
  queue.get(now + 1s);
  queue.done("a", now);
  queue.add_rate_limited("a", now);
  CHECK(*queue.next_ready() == now + 1000s);
}

TEST_CASE_FIXTURE(Queue, "priority: higher first, in order of arrival within one") {
  add("low1", kPriorityLow);
  add("normal1");
  add("low2", kPriorityLow);
  add("high", 7);
  add("normal2");
  CHECK(take_all() == Keys{"high", "normal1", "normal2", "low1", "low2"});
}

TEST_CASE_FIXTURE(Queue,
                  "priority: raising goes to the end of the new level, lowering does nothing") {
  add("a", kPriorityLow);
  add("b");
  add("a");
  add("c");
  add("b", kPriorityLow);
  CHECK(take_all() == Keys{"b", "a", "c"});
}

TEST_CASE_FIXTURE(Queue, "priority: a delayed key keeps the higher priority and the earlier time") {
  add("a", kPriorityLow, 10ms);
  add("a", 5, 1h);
  add("b", 0, 10ms);
  now += 10ms;
  const auto first = queue.get(now);
  REQUIRE(first);
  CHECK(first->key == "a");
  CHECK(first->priority == 5);
}

TEST_CASE_FIXTURE(Queue, "shutdown: no intake, nothing handed out, running keys are waited for") {
  add("running");
  CHECK(take() == "running");
  add("ready");
  add("later", 0, 10ms);
  queue.shut_down();
  CHECK(queue.shutting_down());
  CHECK_FALSE(queue.drained());
  add("new");
  queue.add_rate_limited("running", now);
  now += 1h;
  CHECK(take().empty());
  queue.done("running", now);
  CHECK(queue.drained());
}

TEST_CASE_FIXTURE(Queue, "metrics: all are there from the start, with the names people know") {
  const std::string fresh = metrics.render();
  for (const char* line :
       {R"(workqueue_depth{controller="test",name="test"} 0)",
        R"(workqueue_adds_total{controller="test",name="test"} 0)",
        R"(workqueue_retries_total{controller="test",name="test"} 0)",
        R"(workqueue_unfinished_work_seconds{controller="test",name="test"} 0)",
        R"(workqueue_longest_running_processor_seconds{controller="test",name="test"} 0)"}) {
    CHECK_MESSAGE(fresh.find(line) != std::string::npos, line);
  }
  add("a");
  add("b");
  queue.add_rate_limited("c", now);
  now += 2s;
  CHECK(take() == "a");
  now += 3s;
  queue.refresh_metrics(now);
  const std::string used = metrics.render();
  for (const char* line :
       {R"(workqueue_depth{controller="test",name="test"} 2)",
        R"(workqueue_adds_total{controller="test",name="test"} 3)",
        R"(workqueue_retries_total{controller="test",name="test"} 1)",
        R"(workqueue_queue_duration_seconds_sum{controller="test",name="test"} 2)",
        R"(workqueue_unfinished_work_seconds{controller="test",name="test"} 3)"}) {
    CHECK_MESSAGE(used.find(line) != std::string::npos, used);
  }
}

TEST_CASE("queue: never runs a key twice at once and never loses one, whatever happens") {
  for (const unsigned seed : {1U, 2U, 3U, 5U, 8U, 13U, 99U, 4711U, 65537U, 123456U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    WorkQueue queue({.name = "test"});
    MonotonicPoint now{1h};
    std::set<std::string> running;
    // Keys added since they were last handed out, and when they must be ready at the latest.
    std::map<std::string, MonotonicPoint> owed;
    const auto owe = [&](const std::string& key, MonotonicPoint at) {
      const auto [entry, fresh] = owed.emplace(key, at);
      if (!fresh) entry->second = std::min(entry->second, at);
    };
    const auto take = [&] {
      const auto item = queue.get(now);
      if (!item) {
        for (const auto& [key, at] : owed) REQUIRE((at > now || running.contains(key)));
        return false;
      }
      REQUIRE_FALSE(running.contains(item->key));
      REQUIRE(owed.contains(item->key));
      REQUIRE(owed.at(item->key) <= now);
      owed.erase(item->key);
      running.insert(item->key);
      return true;
    };
    for (int step = 0; step < 3000; ++step) {
      const std::string key = "k" + std::to_string(below(8));
      switch (below(6)) {
        case 0:
          queue.add(key, now, static_cast<int>(below(3)) - 1);
          owe(key, now);
          break;
        case 1: {
          const Duration after{below(50)};
          queue.add(key, now, 0, after);
          owe(key, now + after);
          break;
        }
        case 2: {
          const int failures = queue.failures(key);
          if (failures > 6) queue.forget(key);
          queue.add_rate_limited(key, now);
          owe(key, now + 5ms * (1 << (failures > 6 ? 0 : failures)));
          break;
        }
        case 3:
          take();
          break;
        case 4:
          if (!running.empty()) {
            const std::string done = *running.begin();
            queue.done(done, now);
            running.erase(done);
          }
          break;
        default:
          now += Duration{below(20)};
      }
      REQUIRE(queue.processing() == running.size());
    }
    // In the end everything owed is handed out exactly once.
    now += 1h;
    for (const std::string& key : std::set<std::string>(running)) queue.done(key, now);
    running.clear();
    while (take()) {
    }
    CHECK(owed.empty());
  }
}
