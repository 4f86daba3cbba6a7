#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "simulator/synthetic.hpp"
#include "simulator/traces/ecsched.hpp"
#include "simulator/traces/intensity_csv.hpp"
#include "simulator/traces/jobs_csv.hpp"
#include "simulator/traces/machines_csv.hpp"
#include "simulator/traces/snapshot.hpp"
#include "simulator/traces/swf.hpp"
#include "test/simulator/room.hpp"

namespace kwatt::simulator::traces {
namespace {

using namespace std::chrono_literals;

constexpr const char* kHeader = "id,arrival_s,duration_s,cpu,memory_mib,gpu,tasks,deadline_s\n";

struct Read {
  std::vector<Job> jobs;
  std::string error;
  Report report;
};

template <class Reader>
Read read(const std::string& text, Reading reading = {}) {
  std::istringstream in(text);
  Reader reader(in, "trace", reading);
  Read result;
  while (true) {
    auto job = reader.next();
    if (!job) {
      result.error = job.error().message;
      break;
    }
    if (!*job) break;
    result.jobs.push_back(**job);
  }
  result.report = reader.report();
  return result;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string swf(int number, const std::string& submit, const std::string& run,
                const std::string& processors, const std::string& status = "1") {
  return fmt::format("{} {} 5 {} {} -1 2048 {} -1 -1 {} 1 1 1 1 1 -1 -1\n", number, submit, run,
                     processors, processors, status);
}

TEST_SUITE("simulator") {
  TEST_CASE("jobs csv: every column, in any order, with comments, quotes and Windows line ends") {
    const Read r = read<JobsCsv>(
        "\xEF\xBB\xBF# made by hand\r\ncpu,id,arrival_s,duration_s,memory_mib,gpu,tasks,deadline_s,"
        "usage_percent\r\n"
        "0.5,\"a, \"\"b\"\"\",1.5,60,512,0.25,2,3600,80\r\n\r\n4,c,2,1e3,,,,,\r\n");
    CHECK(r.error == "");
    REQUIRE(r.jobs.size() == 2);
    const Job& a = r.jobs[0];
    CHECK(a.name == "a, \"b\"");
    CHECK(a.arrival == 1500ms);
    CHECK(a.duration == 60s);
    CHECK(a.need == Amount{Millicores{500}, Bytes{512 << 20}, 250});
    CHECK(a.tasks == 2);
    CHECK(a.deadline == Duration{3600s});
    CHECK(a.usage == percent(80));
    CHECK(r.jobs[1].need == Amount{Millicores{4000}, Bytes{0}, 0});
    CHECK(r.jobs[1].tasks == 1);
    CHECK_FALSE(r.jobs[1].deadline);
  }

  TEST_CASE("jobs csv: what is wrong with a file is said with its line and what was expected") {
    struct Case {
      const char *name, *text, *error;
    };
    const Case cases[] = {
        {"empty", "", "trace: the file is empty: expected a header such as id,arrival_s"},
        {"only comments", "# nothing\n\n", "the file is empty"},
        {"missing column", "id,arrival_s,cpu\n", "trace:1: column \"duration_s\" is missing"},
        {"unknown column", "id,arrival_s,duration_s,cpu,colour\n",
         "trace:1: there is no column \"colour\"; known are: id,"},
        {"column twice", "id,id,arrival_s,duration_s,cpu\n",
         "trace:1: column \"id\" is there twice"},
        {"zero byte", nullptr, "trace:1: there is a zero byte"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.name);
      const std::string text = c.text == nullptr ? std::string("id\0", 3) : c.text;
      const Read r = read<JobsCsv>(text);
      CHECK_MESSAGE(contains(r.error, c.error), r.error);
      // No row can be right then, so that leaving rows out does not help.
      CHECK(contains(read<JobsCsv>(text, {.skip_bad = true}).error, c.error));
    }
  }

  TEST_CASE("jobs csv: a bad row is an error with its place, or left out and counted") {
    struct Case {
      const char *name, *row, *error;
    };
    const Case cases[] = {
        {"too few fields", "b,1,2", "trace:3: expected 8 fields, got 3"},
        {"too many fields", "b,1,2,1,1,1,1,1,1", "expected 8 fields, got 9"},
        {"no number", "b,soon,60,1,,,,", "arrival_s: expected a number, got \"soon\""},
        {"number with a tail", "b,1s,60,1,,,,", "arrival_s: expected a number, got \"1s\""},
        {"NaN", "b,1,nan,1,,,,", "duration_s: expected a number, got \"nan\""},
        {"infinity", "b,1,inf,1,,,,", "duration_s: expected a number, got \"inf\""},
        {"zero duration", "b,1,0,1,,,,", "duration_s: expected a number from 0.001"},
        {"negative duration", "b,1,-5,1,,,,", "duration_s: expected a number from 0.001"},
        {"negative arrival", "b,-1,60,1,,,,", "arrival_s: expected a number from 0"},
        {"zero cpu", "b,1,60,0,,,,", "cpu: expected a number from 0.001"},
        {"negative memory", "b,1,60,1,-1,,,", "memory_mib: expected a number from 0"},
        {"enormous", "b,1,60,1e300,,,,", "cpu: expected a number from 0.001 to 1e+06"},
        {"no tasks", "b,1,60,1,,,0,", "tasks: expected a number from 1"},
        {"empty required", "b,1,,1,,,,", "column \"duration_s\" is empty"},
        {"back in time", "b,0.5,60,1,,,,", "it arrives at 0.5 s, before the job before it (1 s)"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.name);
      const std::string text = std::string(kHeader) + "a,1,60,1,,,,\n" + c.row + "\nc,2,60,1,,,,\n";
      const Read strict = read<JobsCsv>(text);
      CHECK_MESSAGE(contains(strict.error, c.error), strict.error);
      CHECK(contains(strict.error, "trace:3: "));
      CHECK(contains(strict.error, "--skip-bad"));
      const Read lenient = read<JobsCsv>(text, {.skip_bad = true});
      CHECK(lenient.error == "");
      CHECK(lenient.jobs.size() == 2);
      CHECK(lenient.report.bad == 1);
      CHECK(lenient.report.rows == 2);
      REQUIRE(lenient.report.first_bad.size() == 1);
      CHECK(contains(lenient.report.first_bad[0], c.error));
    }
  }

  TEST_CASE("traces: a line without an end is refused, whatever its length, in bounded memory") {
    struct Endless final : std::streambuf {
      std::uint64_t given = 0;
      int_type uflow() override { return ++given, 'x'; }
      int_type underflow() override { return 'x'; }
    } endless;
    std::istream in(&endless);
    JobsCsv reader(in, "trace", {});
    const auto job = reader.next();
    REQUIRE_FALSE(job.has_value());
    CHECK(contains(job.error().message, "a line is longer than 1048576 bytes"));
    CHECK(endless.given < 2'000'000);
  }

  TEST_CASE("swf: processors become tasks, memory is per processor, who never ran is passed over") {
    const Read r = read<Swf>("; Version: 2.2\n;  Computer: toy\n" + swf(1, "0", "100", "4") +
                             swf(2, "10", "0", "4", "5") + swf(3, "10", "-1", "4", "0") +
                             swf(4, "20", "50", "40"));
    CHECK(r.error == "");
    REQUIRE(r.jobs.size() == 2);
    CHECK(r.report.passed_over == 2);
    CHECK(r.jobs[0].name == "1");
    CHECK(r.jobs[0].need == Amount{Millicores{4000}, Bytes{4 * 2048 * 1024}, 0});
    CHECK(r.jobs[0].tasks == 1);
    CHECK(r.jobs[1].tasks == 3);
    CHECK(r.jobs[1].need.cpu == Millicores{14'000});
    CHECK(r.jobs[1].arrival == 20s);
  }

  TEST_CASE("swf: bad rows") {
    struct Case {
      std::string name, row, error;
    };
    const Case cases[] = {
        {"too short", "2 3 4\n", "expected the 18 fields of the Standard Workload Format, got 3"},
        {"no number", swf(2, "x", "1", "1"), "field 2 (submit time): expected a number, got \"x\""},
        {"no submit time", swf(2, "-1", "1", "1"),
         "field 2 (submit time): expected a number from 0"},
        {"no processors", swf(2, "1", "1", "-1"), "one of them must be above 0"},
        {"too many processors", swf(2, "1", "1", "1e12"), "field 5 (processors)"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.name);
      const std::string text = swf(1, "0", "1", "1") + c.row + swf(3, "5", "1", "1");
      const Read strict = read<Swf>(text);
      CHECK_MESSAGE(contains(strict.error, "trace:2: " + c.error), strict.error);
      CHECK(read<Swf>(text, {.skip_bad = true}).jobs.size() == 2);
    }
  }

  TEST_CASE("ecsched: id, arrival, resources, duration, by commas or blanks") {
    const Read commas = read<Ecsched>("job,arrival,cpu,mem,duration\n1,0,2,4,60\n2,5,1,0.5,30\n");
    CHECK(commas.error == "");
    REQUIRE(commas.jobs.size() == 2);
    CHECK(commas.jobs[0].need == Amount{Millicores{2000}, Bytes{std::int64_t{4} << 30}, 0});
    const Read blanks = read<Ecsched>("a 0 1.5 10\nb 1 2 8 0.5 20\n");
    REQUIRE(blanks.jobs.size() == 2);
    CHECK(blanks.jobs[0].duration == 10s);
    CHECK(blanks.jobs[1].need.gpu_milli == 500);
    CHECK(contains(read<Ecsched>("a 0 1\n").error, "trace:1: expected 4 to 6 fields"));
    CHECK(contains(read<Ecsched>("a 0 1 2 3 4 5\n").error, "expected 4 to 6 fields"));
    CHECK(contains(read<Ecsched>("a 0 1 2\nb 1 0 2\n").error,
                   "trace:2: cpu: expected a number from"));
  }

  TEST_CASE("machines csv: kinds with counts, curves and what is wrong with them") {
    std::istringstream in(
        "name,cpu,memory_mib,count,zone,curve_w,boot_s,boot_j\n"
        "big,32,131072,2,DE,100 110 120 130 140 150 160 170 180 190 200,90,\n"
        "small,8,16384,1,,,,5000\n");
    const auto all = read_machines(in, "machines").value();
    REQUIRE(all.size() == 3);
    CHECK(all[1].name == "big-2");
    CHECK(all[1].zone == "DE");
    CHECK(all[1].power.curve.at(percent(50)) == watts(150));
    CHECK(all[1].power.boot_energy == Millijoules{90 * 200'000});
    CHECK(all[2].name == "small");
    CHECK(all[2].power.boot_energy == Millijoules{5'000'000});
    struct Case {
      const char *text, *error;
    };
    const Case cases[] = {
        {"", "there are no machines"},
        {"name,cpu,memory_mib\n", "there are no machines"},
        {"name,cpu\n", "column \"memory_mib\" is missing"},
        {"name,cpu,memory_mib\nm,0,1\n", "machines:2: cpu: expected a number from 0.001"},
        {"name,cpu,memory_mib,curve_w\nm,1,1,1 2 3\n", "machines:2: curve_w: expected 11 watts"},
        {"name,cpu,memory_mib,idle_w,max_w\nm,1,1,10,5\n", "max_w: must not be below idle_w"},
        {"name,cpu,memory_mib,count\nm,1,1,2000000\n", "count: expected a number from 1"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.text);
      std::istringstream bad(c.text);
      const auto result = read_machines(bad, "machines");
      REQUIRE_FALSE(result.has_value());
      CHECK_MESSAGE(contains(result.error().message, c.error), result.error().message);
    }
  }

  TEST_CASE("machines as a word") {
    const auto all = parse_machines("2x32x128@DE,1x64x256x4").value();
    REQUIRE(all.size() == 3);
    CHECK(all[0].name == "a-1");
    CHECK(all[0].zone == "DE");
    CHECK(all[0].capacity == Amount{Millicores{32'000}, Bytes{std::int64_t{128} << 30}, 0});
    CHECK(all[2].name == "b-1");
    CHECK(all[2].capacity.gpu_milli == 4000);
    for (const char* bad : {"", "x", "3", "0x1x1", "1x0x1", "1.5x1x1", "1x1x1x1x1", "nanx1x1"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_machines(bad).has_value());
    }
  }

  TEST_CASE("intensity csv: columns, gaps and bad values") {
    const auto parse = [](const std::string& text, std::string_view column = {},
                          bool skip_bad = false) {
      std::istringstream in(text);
      return read_intensity(in, "ci", column, {skip_bad});
    };
    const auto two = parse(
        "datetime_utc,ci_direct,ci_lca\n2023-01-01 00:00:00,1,2\n"
        "2023-01-01 01:00:00,3,4\n");
    REQUIRE(two.has_value());
    CHECK(two->grams_per_kwh == std::vector<double>{2, 4});
    CHECK(two->step == 1h);
    CHECK(format_rfc3339(two->start) == "2023-01-01T00:00:00Z");
    CHECK(parse("t,ci_direct,ci_lca\n2023-01-01 00:00:00,1,2\n", "ci_direct")->grams_per_kwh ==
          std::vector<double>{1});
    const std::string gap =
        "t,g\n2023-01-01T00:00:00Z,1\n2023-01-01T01:00:00Z,2\n2023-01-01T04:00:00Z,5\n";
    CHECK(contains(parse(gap).error().message, "ci:4: expected the row of 2023-01-01T02:00:00Z"));
    CHECK(parse(gap, {}, true)->grams_per_kwh == std::vector<double>{1, 2, 2, 2, 5});
    struct Case {
      const char *text, *error;
    };
    const Case cases[] = {
        {"", "there are no values"},
        {"t,a,b\n", "ci:1: the header must name the time and one column of grams_per_kwh"},
        {"t,g\nyesterday,1\n", "ci:2: expected a time such as"},
        {"t,g\n2023-01-01T00:00:00Z,nan\n", "ci:2: intensity: expected a number, got \"nan\""},
        {"t,g\n2023-01-01T00:00:00Z,-1\n", "intensity: expected a number from 0 to 5000"},
        {"t,g\n2023-01-01T00:00:00Z,1\n2023-01-01T00:00:00Z,1\n", "rows must be sorted by time"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.text);
      const auto result = parse(c.text);
      REQUIRE_FALSE(result.has_value());
      CHECK_MESSAGE(contains(result.error().message, c.error), result.error().message);
    }
  }

  TEST_CASE("kubectl: nodes, NodePowers and pods become machines, services and jobs") {
    std::istringstream in(R"({"apiVersion":"v1","kind":"List","items":[
      {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"topology.kubernetes.io/zone":"z"}},
       "status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110","nvidia.com/gpu":"2"}}},
      {"apiVersion":"kwatt.dev/v1alpha1","kind":"NodePower","metadata":{"name":"n1"},
       "spec":{"model":{"idleMilliwatts":50000,"maxMilliwatts":150000,"bootSeconds":77}}},
      {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"a","uid":"1"},
       "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]},
       "status":{"phase":"Running"}},
      {"apiVersion":"v1","kind":"Pod","metadata":{"name":"agent","namespace":"a","uid":"2",
        "ownerReferences":[{"kind":"DaemonSet","name":"agent","uid":"d","controller":true}]},
       "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"requests":{"cpu":"200m"}}}]},
       "status":{"phase":"Running"}},
      {"apiVersion":"v1","kind":"Pod","metadata":{"name":"batch","namespace":"a","uid":"3",
        "ownerReferences":[{"kind":"Job","name":"batch","uid":"j","controller":true}]},
       "spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","nvidia.com/gpu":"1"}}}]},
       "status":{"phase":"Pending"}},
      {"apiVersion":"v1","kind":"Pod","metadata":{"name":"done","namespace":"a","uid":"4"},
       "spec":{"nodeName":"n1","containers":[{"name":"c"}]},"status":{"phase":"Succeeded"}}]})");
    const Scene scene = read_kubectl(in, "cluster.json", 1h).value();
    REQUIRE(scene.machines.size() == 1);
    CHECK(scene.machines[0].zone == "z");
    CHECK(scene.machines[0].capacity ==
          Amount{Millicores{3800}, Bytes{std::int64_t{8} << 30}, 2000});
    CHECK(scene.machines[0].power.curve.maximum() == watts(150));
    CHECK(scene.machines[0].power.boot == 77s);
    REQUIRE(scene.services.size() == 1);
    CHECK(scene.services[0].on == "n1");
    CHECK(scene.services[0].need.cpu == Millicores{500});
    REQUIRE(scene.jobs.size() == 1);
    CHECK(scene.jobs[0].duration == 1h);
    CHECK(scene.jobs[0].need.gpu_milli == 1000);
    CHECK(scene.report.passed_over == 1);
    std::istringstream none(R"({"kind":"List","items":[]})"), half(R"({"kind":"List","items":[)");
    CHECK(contains(read_kubectl(none, "x", 1h).error().message, "x: there are no nodes in it"));
    CHECK(contains(read_kubectl(half, "x", 1h).error().message, "x: "));
  }

  TEST_CASE("slurm: nodes and jobs of 22.05 and of 23.02") {
    std::istringstream in(R"json({"nodes":[
        {"name":"c1","cpus":16,"real_memory":64000,"gres":"gpu:a100:2(S:0)","state":"idle"},
        {"name":"c2","cpus":16,"real_memory":64000,"gres":"","state":"DOWN"}]}
      {"sinfo":[{"nodes":{"nodes":["d1","d2"]},"cpus":{"maximum":32},"memory":{"maximum":128000},
        "gres":{"total":""},"node":{"state":["IDLE","POWERED_DOWN"]}}]}
      {"jobs":[
        {"job_id":1,"job_state":"RUNNING","submit_time":900,"start_time":1000,"time_limit":60,"cpus":4,
         "node_count":1,"memory_per_node":2048},
        {"job_id":2,"job_state":["PENDING"],"submit_time":{"set":true,"infinite":false,"number":1600},
         "time_limit":{"set":true,"infinite":true,"number":0},"cpus":{"set":true,"infinite":false,"number":64},
         "node_count":{"set":true,"infinite":false,"number":2},"tres_per_node":"gres:gpu:1"},
        {"job_id":3,"job_state":"COMPLETED","cpus":1}]})json");
    const Scene scene = read_slurm(in, "s.json", 2h).value();
    REQUIRE(scene.machines.size() == 3);
    CHECK(scene.machines[0].name == "c1");
    CHECK(scene.machines[0].capacity.gpu_milli == 2000);
    CHECK(scene.machines[1].starts_off);
    REQUIRE(scene.jobs.size() == 2);
    CHECK(scene.jobs[0].name == "1");
    CHECK(scene.jobs[0].duration == 50min);  // of its hour ten minutes are over at 1,600 s
    CHECK(scene.jobs[1].tasks == 2);
    CHECK(scene.jobs[1].need == Amount{Millicores{32'000}, Bytes{0}, 1000});
    CHECK(scene.jobs[1].duration == 2h);
    CHECK(scene.report.passed_over == 1);
    CHECK(scene.notes.size() == 2);
    struct Case {
      const char *text, *error;
    };
    const Case cases[] = {
        {"", "s.json: there are neither jobs nor nodes in its 0 documents"},
        {"{}", "neither jobs nor nodes in its 1 documents"},
        {R"({"jobs":[)", "s.json: at byte "},
        {R"({"jobs":[{"job_id":1,"job_state":"PENDING","cpus":0}]})",
         "jobs[0]: cpus must be from 1"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.text);
      std::istringstream bad(c.text);
      const auto result = read_slurm(bad, "s.json", 2h);
      REQUIRE_FALSE(result.has_value());
      CHECK_MESSAGE(contains(result.error().message, c.error), result.error().message);
    }
  }

  TEST_CASE("recording: what is written is read back") {
    const TimePoint start = *parse_rfc3339("2026-01-05T00:00:00Z");
    RecordedNode node{"n1", "z", {Millicores{4000}, Bytes{1 << 30}, 0}, true, {}, 60, 0, 0};
    const RecordedPod web{
        "u1", "a/web", false, "n1", {Millicores{1000}, Bytes{1 << 20}, 0}, Millicores{250}};
    RecordedPod batch{"u2", "a/batch", true, "", {Millicores{500}, Bytes{0}, 0}, {}};
    std::string text = recording_header(30s);
    text += recording_line({start, {node}, {web}});
    text += recording_line({start + 30s, {node}, {web, batch}});
    batch.node = "n1";
    text += recording_line({start + 60s, {node}, {web, batch}});
    text += recording_line({start + 90s, {node}, {web, batch}});
    text += recording_line({start + 120s, {node}, {web}});
    std::istringstream in(text);
    const Scene scene = read_recording(in, "r.jsonl", {}).value();
    REQUIRE(scene.machines.size() == 1);
    CHECK(scene.machines[0].power.boot == 60s);
    REQUIRE(scene.services.size() == 1);
    CHECK(scene.services[0].on == "n1");
    CHECK_FALSE(scene.services[0].end);
    CHECK(scene.services[0].use == std::vector<Permille>(5, Permille{250}));
    REQUIRE(scene.jobs.size() == 1);
    CHECK(scene.jobs[0].arrival == 30s);
    CHECK(scene.jobs[0].duration == 60s);
    CHECK(scene.report.rows == 6);
    CHECK(scene.length == Duration{150s});
    std::istringstream bad(recording_header(30s) + recording_line({start, {node}, {}}) +
                           "{\"time\":\"2026-01-04T00:00:00Z\",\"nodes\":[],\"pods\":[]}\n");
    CHECK(contains(read_recording(bad, "r", {}).error().message,
                   "r:3: 2026-01-04T00:00:00Z is not after the sample before it"));
    std::istringstream empty("");
    CHECK(contains(read_recording(empty, "r", {}).error().message, "there is no header"));
  }

  TEST_CASE("synthetic: same seed, same jobs; sorted; what was asked for on average") {
    Synthetic spec;
    spec.jobs = 20'000;
    spec.gpu_percent = 10;
    std::vector<Job> first, second;
    for (auto* all : {&first, &second}) {
      SyntheticJobs jobs(spec, 42);
      while (auto job = *jobs.next()) all->push_back(*job);
    }
    CHECK(first == second);
    REQUIRE(first.size() == 20'000);
    CHECK(std::is_sorted(first.begin(), first.end(),
                         [](const Job& a, const Job& b) { return a.arrival < b.arrival; }));
    double seconds = 0, gpus = 0, gangs = 0;
    for (const Job& job : first) {
      seconds += static_cast<double>(job.duration.count()) / 1000;
      gpus += job.need.gpu_milli > 0 ? 1 : 0;
      gangs += job.tasks > 1 ? 1 : 0;
    }
    const double hours = static_cast<double>(first.back().arrival.count()) / 3.6e6;
    CHECK(20'000 / hours == doctest::Approx(spec.per_hour).epsilon(0.03));
    CHECK(seconds / 20'000 == doctest::Approx(spec.mean_seconds).epsilon(0.15));
    CHECK(gpus / 20'000 == doctest::Approx(0.1).epsilon(0.1));
    CHECK(gangs / 20'000 == doctest::Approx(0.05).epsilon(0.1));
  }

  TEST_CASE("synthetic: a specification in words") {
    const Synthetic spec = parse_synthetic("jobs=5,per-hour=7,diurnal=0").value();
    CHECK(spec.jobs == 5);
    CHECK(spec.per_hour == 7);
    struct Case {
      const char *text, *error;
    };
    const Case cases[] = {
        {"jobs=0", "synthetic jobs: jobs: expected a number from 1"},
        {"jobs", "jobs: expected a number, got \"\""},
        {"speed=3", "synthetic jobs: there is no \"speed\"; known are: jobs, per-hour"},
        {"jobs=1,jobs=2", "\"jobs\" is given twice"},
        {"diurnal=2", "diurnal: expected a number from 0 to 1"},
        {"mean-seconds=nan", "mean-seconds: expected a number"},
        {"most-seconds=10", "most-seconds must not be below mean-seconds"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.text);
      const auto result = parse_synthetic(c.text);
      REQUIRE_FALSE(result.has_value());
      CHECK_MESSAGE(contains(result.error().message, c.error), result.error().message);
    }
  }
}

}  // namespace
}  // namespace kwatt::simulator::traces
