// Which gated jobs start now, and why the others wait.
#include <doctest/doctest.h>

#include "placement/strategies/carbon_wait.hpp"
#include "placement/strategies/registry.hpp"
#include "planner/queue/queue.hpp"

using namespace kwatt;
using namespace kwatt::planner::queue;
using namespace std::chrono_literals;

namespace {

const TimePoint kNow{std::chrono::hours{480'000}};
constexpr auto kHour = std::chrono::hours{1};
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

strategies::NodeSpec node(std::string name, std::int64_t cpus = 10, std::uint16_t zone = 0) {
  strategies::NodeSpec spec;
  spec.name = std::move(name);
  spec.capacity = {Millicores{cpus * 1000}, Bytes{64 * kGiB}, 0};
  spec.zone = zone;
  for (std::size_t i = 0; i < 11; ++i) {
    spec.power.curve.points[i] = watts(50 + 10 * static_cast<std::int64_t>(i));
  }
  return spec;
}

strategies::NodeSpec off(strategies::NodeSpec spec) {
  spec.state = strategies::NodeState::off;
  spec.power.boot = 60s;
  return spec;
}

// Came an hour ago, may wait a day, runs for an hour.
QueuedJob job(std::int64_t cpus, std::uint32_t members = 1) {
  QueuedJob out;
  out.job.request = {Millicores{cpus * 1000}, Bytes{kGiB}, 0};
  out.job.members = members;
  out.job.arrival = kNow - kHour;
  out.job.latest_start = kNow + 23 * kHour;
  out.job.expected = kHour;
  return out;
}
QueuedJob overdue(QueuedJob one) {
  one.job.latest_start = kNow;
  return one;
}
QueuedJob begun(QueuedJob one) {
  one.begun = true;
  return one;
}
QueuedJob missing(QueuedJob one, std::uint32_t members) {
  one.missing = members;
  return one;
}
QueuedJob hurried(QueuedJob one) {
  one.job.deadline = kNow + kHour;
  return one;
}

struct Case {
  const char* sentence;
  const char* strategy;
  std::vector<strategies::NodeSpec> nodes;
  std::vector<QueuedJob> jobs;
  std::vector<double> forecast;  // of zone 0, by hour
  const char* verdicts;          // "Chosen:a,b" or the reason, for each job
  bool release_all = false;
};

std::string shown(const std::vector<Verdict>& verdicts, const strategies::Cluster& cluster) {
  std::string text;
  for (const Verdict& one : verdicts) {
    text += (text.empty() ? "" : " ") + std::string(to_string(one.why));
    REQUIRE(one.starts == (one.why <= Why::asked));
    CHECK_FALSE(one.sentence.empty());
    for (std::size_t i = 0; i < one.nodes.size(); ++i) {
      text += (i == 0 ? ":" : ",") + cluster.node(one.nodes[i]).name;
    }
  }
  return text;
}

std::vector<Verdict> ask(const Case& c, strategies::Cluster& cluster) {
  const strategies::CarbonForecast forecast{kNow, kHour, c.forecast};
  auto strategy = strategies::carbon_hold(*strategies::make_strategy(c.strategy));
  return decide(c.jobs, {kNow, {&forecast, 1}, c.release_all}, *strategy, cluster);
}

}  // namespace

TEST_CASE("queue: who starts, who waits, and why") {
  const std::vector<double> clean_later = {400, 300, 100, 350};
  const Case cases[] = {
      {"without a forecast jobs start as the strategy says",
       "FCFS",
       {node("a"), node("b")},
       {job(6), job(6), job(6), job(1)},
       {},
       "Chosen:a Chosen:b NoFit BehindOthers"},
      {"another strategy, another choice",
       "RoundRobin",
       {node("a"), node("b")},
       {job(1), job(1), job(1)},
       {},
       "Chosen:a Chosen:b Chosen:a"},
      {"any strategy waits for cleaner electricity",
       "FCFS",
       {node("a")},
       {job(1)},
       clean_later,
       "WaitsForCarbon"},
      {"CarbonAware, too", "CarbonAware", {node("a")}, {job(1)}, clean_later, "WaitsForCarbon"},
      {"a job whose deadline leaves no time does not wait, and one that waits is in nobody's way",
       "FCFS",
       {node("a")},
       {job(8), hurried(job(8))},
       clean_later,
       "WaitsForCarbon Chosen:a"},
      {"clean now: it starts", "FCFS", {node("a")}, {job(1)}, {100, 300, 400}, "Chosen:a"},
      {"after its delay a job starts in spite of carbon",
       "CarbonAware",
       {node("a")},
       {overdue(job(1))},
       clean_later,
       "MaxDelay:a"},
      {"and in spite of missing room: the scheduler has it then",
       "FCFS",
       {node("a", 1)},
       {overdue(job(2)), job(1)},
       {},
       "MaxDelay Chosen:a"},
      {"who starts in any case takes room before those that are chosen",
       "FCFS",
       {node("a")},
       {job(6), overdue(job(6))},
       {},
       "NoFit MaxDelay:a"},
      {"a job that no node could ever hold says so",
       "FCFS",
       {node("a")},
       {job(11), job(1)},
       {},
       "NeverFits Chosen:a"},
      {"a gang starts on several nodes at once",
       "FCFS",
       {node("a", 4), node("b", 4)},
       {job(3, 2)},
       {},
       "Chosen:a,b"},
      {"or not at all",
       "EnergyAware",
       {node("a", 4), node("b", 2)},
       {job(2, 2), job(2, 2)},
       {},
       "Chosen:a,a GangIncomplete"},
      {"a gang that is not all there waits for its members",
       "FCFS",
       {node("a")},
       {missing(job(1), 3), job(1)},
       {},
       "MembersMissing Chosen:a"},
      {"but not longer than it may",
       "FCFS",
       {node("a")},
       {overdue(missing(job(1), 3))},
       {},
       "MaxDelay:a"},
      {"the rest of a gang that was begun is never held back",
       "CarbonAware",
       {node("a")},
       {begun(missing(job(1), 1))},
       clean_later,
       "Begun:a"},
      {"all are released when that is asked for",
       "CarbonAware",
       {node("a")},
       {job(6), missing(job(1), 1), job(6)},
       clean_later,
       "Asked:a Asked:a Asked",
       true},
      {"a node that is off counts as room: who starts there wakes it",
       "FCFS",
       {off(node("a"))},
       {job(1)},
       {},
       "Chosen:a"},
      {"nothing waits in an empty queue", "FCFS", {node("a")}, {}, {}, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.sentence);
    auto cluster = *strategies::Cluster::create(c.nodes);
    CHECK(shown(ask(c, cluster), cluster) == c.verdicts);
  }
}

TEST_CASE("queue: sentences say figures, and when it is looked at again") {
  const Case c{"", "FCFS", {node("a")}, {job(1), job(20), overdue(job(1))}, {400, 300, 100}, ""};
  auto cluster = *strategies::Cluster::create(c.nodes);
  const auto verdicts = ask(c, cluster);
  const std::string clean = format_rfc3339(kNow + 2 * kHour);
  CHECK(verdicts[0].sentence == "waits until " + clean + ": 100 g/kWh instead of 400");
  CHECK(verdicts[0].look_again == kNow + 2 * kHour);
  CHECK(verdicts[0].grams_per_kwh == 400);
  // What does not fit is held back for carbon first: the hour comes, then the reason changes.
  CHECK(verdicts[1].why == Why::waits_for_carbon);
  CHECK(verdicts[2].sentence ==
        "it has waited since " + format_rfc3339(kNow - kHour) + ", as long as it may, on a");

  Case room = c;
  room.forecast = {};
  room.jobs = {job(20), job(8, 3)};
  auto empty = *strategies::Cluster::create(c.nodes);
  const auto refused = ask(room, empty);
  CHECK(refused[0].sentence ==
        "no node that it may use would have room for 20000m CPU and 1024 MiB even if it was empty");
  CHECK(refused[0].look_again == kNow + 23 * kHour);
  CHECK(refused[0].grams_per_kwh < 0);
}

TEST_CASE("queue: the same question has the same answer, and no node is filled beyond its size") {
  for (const strategies::Listed& listed : strategies::listed()) {
    CAPTURE(listed.name);
    Case c{"", "", {}, {}, {200, 100, 300, 250}, ""};
    const std::string name(listed.name);
    c.strategy = name.c_str();
    for (int i = 0; i < 7; ++i) c.nodes.push_back(node("n" + std::to_string(i), 3 + i % 3));
    for (int i = 0; i < 40; ++i) {
      QueuedJob one = job(1 + i % 4, 1 + static_cast<std::uint32_t>(i % 3));
      if (i % 5 == 0) one = overdue(one);
      if (i % 7 == 0) one = missing(one, 1);
      if (i % 2 == 0) one = hurried(one);
      c.jobs.push_back(one);
    }
    auto first = *strategies::Cluster::create(c.nodes), again = first;
    const auto verdicts = ask(c, first);
    CHECK(shown(verdicts, first) == shown(ask(c, again), again));
    std::vector<std::int64_t> used(c.nodes.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const bool whole =
          verdicts[i].nodes.empty() || verdicts[i].nodes.size() == c.jobs[i].job.members;
      CHECK(whole);
      for (const auto at : verdicts[i].nodes) used[at] += c.jobs[i].job.request.cpu.count();
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      CHECK(used[i] <= c.nodes[i].capacity.cpu.count());
    }
  }
}
