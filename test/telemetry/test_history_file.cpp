#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "telemetry/history_file.hpp"
#include "telemetry/history_schema.hpp"
#include "test/support/folder.hpp"

TEST_SUITE("telemetry") {
  using namespace kwatt;
  using namespace kwatt::telemetry;
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  namespace fs = std::filesystem;

  namespace {
  const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");
  constexpr std::int64_t kMiB = 1 << 20;

  SampleRow sample(int minute, const std::string& node, std::int64_t watts_mean = 100) {
    return {kStart + minutes{minute}, node,          watts(watts_mean),
            watts(watts_mean + 20),   Permille{330}, "agent"};
  }
  DecisionRow decision(Duration after, const std::string& node, const std::string& policy = "p",
                       const std::string& message = "no pod for 10m") {
    return {kStart + after, node, policy, "Off", "Idle", message};
  }
  EnergyRow energy(int hour, const std::string& node, std::int64_t joules,
                   const std::string& policy = "p") {
    return {kStart + hours{hour},        node,        policy,     Millijoules{joules * 1000},
            Millijoules{joules * 3'000}, minutes{30}, minutes{10}};
  }

  HistoryFile must_open(const std::string& path, std::int64_t max_bytes = 64 * kMiB) {
    auto file = HistoryFile::open(path, max_bytes);
    REQUIRE_MESSAGE(file.has_value(), file.error().text());
    return std::move(*file);
  }
  void must_write(HistoryFile& file, const std::vector<HistoryRow>& rows) {
    for (std::size_t at = 0; at < rows.size();) {
      const auto next = file.append(rows, at);
      REQUIRE_MESSAGE(next.has_value(), next.error().text());
      REQUIRE(*next > at);
      at = *next;
    }
  }
  std::vector<HistoryRow> must_read(const std::string& path, const HistoryQuery& query) {
    auto rows = read_history(path, query);
    REQUIRE_MESSAGE(rows.has_value(), rows.error().text());
    return std::move(*rows);
  }
  HistoryQuery all(HistoryKind kind) {
    HistoryQuery query;
    query.kind = kind;
    query.limit = 1'000'000;
    return query;
  }
  std::int64_t size_on_disk(const std::string& path) {
    std::int64_t sum = 0;
    for (const char* suffix : {"", "-wal"}) {
      std::error_code missing;
      const auto size = fs::file_size(path + suffix, missing);
      if (!missing) sum += static_cast<std::int64_t>(size);
    }
    return sum;
  }
  }  // namespace

  TEST_CASE("history file: every kind of row comes back as it was written") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    SampleRow unmetered = sample(1, "n2");
    unmetered.mean = unmetered.max = std::nullopt;
    unmetered.source = "none";
    const OperationRow begun{kStart,     "n1",    "p",    "1b4e-28ba",
                             "PowerOff", "begun", "Idle", "no pod for 10m"};
    const std::vector<std::vector<HistoryRow>> kinds = {
        {sample(0, "n1"), sample(0, "n2"), sample(1, "n1"), unmetered},
        {decision(seconds{1}, "n1"), decision(seconds{2}, "n2", "")},
        {begun},
        {energy(0, "n1", 10), energy(1, "n1", 12)}};
    {
      HistoryFile file = must_open(path);
      for (const auto& rows : kinds) must_write(file, rows);
    }
    const HistoryFile again = must_open(path);
    CHECK(again.set_aside().empty());
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      CHECK(must_read(path, all(static_cast<HistoryKind>(kind))) == kinds[kind]);
    }
  }

  TEST_CASE("history file: a query gets the newest rows that match, oldest first") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    HistoryFile file = must_open(path);
    std::vector<HistoryRow> rows;
    for (int i = 0; i < 10; ++i) {
      rows.push_back(sample(i, "n1"));
      rows.push_back(sample(i, "n2"));
      rows.push_back(decision(minutes{i}, i % 2 == 0 ? "n1" : "n2", i < 5 ? "p" : "q"));
      rows.push_back(energy(i, "n1", i));
    }
    rows.push_back(energy(9, "n1", 1, "q"));
    must_write(file, rows);
    struct Case {
      const char* name;
      HistoryQuery query;
      std::size_t count;
      TimePoint first;
    };
    const auto query = [](HistoryKind kind, std::string node, std::string policy,
                          std::optional<TimePoint> since = {}, std::optional<TimePoint> until = {},
                          std::size_t limit = 1000) {
      return HistoryQuery{kind, std::move(node), std::move(policy), since, until, limit};
    };
    using Kind = HistoryKind;
    const Case cases[] = {
        {"all samples", query(Kind::samples, "", ""), 20, kStart},
        {"of one node", query(Kind::samples, "n2", ""), 10, kStart},
        {"of one node, the newest three", query(Kind::samples, "n2", "", {}, {}, 3), 3,
         kStart + minutes{7}},
        {"of one node, from a time on",
         query(Kind::samples, "n1", "", kStart + minutes{4} + seconds{1}), 5, kStart + minutes{5}},
        {"of one node, before a time", query(Kind::samples, "n1", "", {}, kStart + minutes{2}), 2,
         kStart},
        {"of one node, from long ago", query(Kind::samples, "n1", "", kStart - hours{24 * 365}), 10,
         kStart},
        {"decisions of a node", query(Kind::decisions, "n1", ""), 5, kStart},
        {"decisions under a policy", query(Kind::decisions, "", "q"), 5, kStart + minutes{5}},
        {"decisions of a node under a policy", query(Kind::decisions, "n2", "q"), 3,
         kStart + minutes{5}},
        {"energy under another policy", query(Kind::energy, "", "q"), 1, kStart + hours{9}},
        {"energy of a node under a policy", query(Kind::energy, "n1", "p"), 10, kStart},
        {"energy of a node", query(Kind::energy, "n1", ""), 11, kStart},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      const auto found = must_read(path, c.query);
      REQUIRE(found.size() == c.count);
      const TimePoint first = std::visit(
          [](const auto& row) {
            if constexpr (requires { row.minute; })
              return row.minute;
            else if constexpr (requires { row.hour; })
              return row.hour;
            else
              return row.at;
          },
          found.front());
      CHECK(first == c.first);
    }
    CHECK(must_read(path, query(Kind::samples, "no-such-node", "")).empty());
    CHECK(must_read(path, query(Kind::operations, "", "")).empty());
    CHECK(must_read(path, query(Kind::samples, "", "", kStart + hours{1})).empty());
    const auto refused = read_history(path, query(Kind::samples, "", "p"));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("history file: energy of the same hour adds up, a minute written twice is one minute") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    HistoryFile file = must_open(path);
    must_write(file, {energy(0, "n1", 10), energy(0, "n1", 5), sample(0, "n1", 100)});
    must_write(file, {energy(0, "n1", 1), sample(0, "n1", 150)});
    const auto sums = must_read(path, all(HistoryKind::energy));
    REQUIRE(sums.size() == 1);
    const auto& sum = std::get<EnergyRow>(sums[0]);
    CHECK(sum.actual.count() == 16'000);
    CHECK(sum.baseline.count() == 48'000);
    CHECK(sum.covered == minutes{90});
    CHECK(sum.measured == minutes{30});
    CHECK(must_read(path, all(HistoryKind::samples)) ==
          std::vector<HistoryRow>{sample(0, "n1", 150)});
  }

  TEST_CASE("history file: it stays below its bound, and the oldest samples go first") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    HistoryFile file = must_open(path, kMiB);
    must_write(file, {decision(seconds{0}, "n0"), energy(0, "n0", 1)});
    std::int64_t largest = 0;
    for (int minute = 0; minute < 600; ++minute) {
      std::vector<HistoryRow> rows;
      for (int n = 0; n < 100; ++n) rows.push_back(sample(minute, "n" + std::to_string(n)));
      must_write(file, rows);
      largest = std::max(largest, size_on_disk(path));
    }
    CHECK(largest <= kMiB);
    CHECK(file.removed() > 0);
    const auto samples = must_read(path, all(HistoryKind::samples));
    CHECK(samples.size() == static_cast<std::size_t>(60'000 - file.removed()));
    CHECK(samples.size() > 12'000);
    CHECK(std::get<SampleRow>(samples.back()).minute == kStart + minutes{599});
    // What is left is the newest, without holes.
    const TimePoint first = std::get<SampleRow>(samples.front()).minute;
    CHECK(samples.size() % 100 == 0);
    CHECK(kStart + minutes{600} - first == minutes{samples.size() / 100});
    // Decisions and energy outlive the samples of their time.
    CHECK(must_read(path, all(HistoryKind::decisions)).size() == 1);
    CHECK(must_read(path, all(HistoryKind::energy)).size() == 1);
  }

  TEST_CASE("history file: when decisions alone fill it, the oldest of them go") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    HistoryFile file = must_open(path, kMiB);
    const std::string long_message(5000, 'x');
    std::int64_t largest = 0;
    for (int i = 0; i < 100; ++i) {
      std::vector<HistoryRow> rows;
      for (int n = 0; n < 50; ++n) {
        rows.push_back(decision(seconds{i * 50 + n}, "n1", "p", long_message));
      }
      must_write(file, rows);
      largest = std::max(largest, size_on_disk(path));
    }
    CHECK(largest <= kMiB);
    const auto left = must_read(path, all(HistoryKind::decisions));
    REQUIRE(left.size() > 300);
    CHECK(left.size() < 5000);
    CHECK(std::get<DecisionRow>(left.back()).at == kStart + seconds{4999});
    CHECK(std::get<DecisionRow>(left.front()).message.size() == kHistoryMessageBytes);
  }

  TEST_CASE("history file: a long message is cut at a character") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    HistoryFile file = must_open(path);
    std::string umlauts = "x";
    for (int i = 0; i < 1000; ++i) umlauts += "ü";
    must_write(file, {decision(seconds{0}, "n1", "p", umlauts)});
    const auto rows = must_read(path, all(HistoryKind::decisions));
    CHECK(std::get<DecisionRow>(rows[0]).message == umlauts.substr(0, 1023));
  }

  TEST_CASE("history file: what cannot be read is renamed aside and a new one begun") {
    struct Case {
      const char* name;
      void (*spoil)(const std::string& path);
      const char* reason;
    };
    const Case cases[] = {
        {"no database",
         [](const std::string& path) { std::ofstream(path) << std::string(100'000, 'z'); },
         "no SQLite database"},
        {"damaged in the middle",
         [](const std::string& path) {
           std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
           file.seekp(4096);
           file << std::string(30'000, '\xff');
         },
         "damaged"},
        {"cut off", [](const std::string& path) { fs::resize_file(path, 9000); }, "damaged"},
        {"of a newer kwatt",
         [](const std::string& path) {
           auto database = Database::open(path, Database::Mode::create);
           REQUIRE(database.has_value());
           REQUIRE(database->run("PRAGMA user_version = 99").has_value());
         },
         "version 99"},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      const test::Folder folder;
      const std::string path = folder.path("history.db");
      {
        HistoryFile file = must_open(path);
        std::vector<HistoryRow> rows;
        for (int i = 0; i < 5000; ++i) rows.push_back(sample(i, "n1"));
        must_write(file, rows);
      }
      c.spoil(path);
      std::string size_before = std::to_string(fs::file_size(path));
      HistoryFile file = must_open(path);
      CHECK(file.set_aside().find(c.reason) != std::string::npos);
      CHECK(std::to_string(fs::file_size(path + ".aside")) == size_before);
      CHECK(must_read(path, all(HistoryKind::samples)).empty());
      must_write(file, {sample(0, "n1")});
      CHECK(must_read(path, all(HistoryKind::samples)).size() == 1);
    }
  }

  TEST_CASE("history file: another program's database is left alone") {
    const test::Folder folder;
    const std::string path = folder.path("other.db");
    {
      auto database = Database::open(path, Database::Mode::create);
      REQUIRE(database->run("CREATE TABLE theirs (x INTEGER)").has_value());
    }
    const auto file = HistoryFile::open(path, kMiB);
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().code == ErrorCode::invalid_argument);
    CHECK_FALSE(fs::exists(path + ".aside"));
    const auto nowhere = HistoryFile::open(folder.path("missing/history.db"), kMiB);
    REQUIRE_FALSE(nowhere.has_value());
    CHECK(nowhere.error().code == ErrorCode::io);
  }

  TEST_CASE("history file: a file of version 1 is brought up to date and keeps its rows") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    {
      HistoryFile file = must_open(path);
      must_write(file, {decision(seconds{1}, "n1"), sample(0, "n1")});
      auto database = Database::open(path, Database::Mode::create);
      REQUIRE(database->run("DROP INDEX decisions_at").has_value());
      REQUIRE(database->run("DROP INDEX operations_at").has_value());
      REQUIRE(database->run("PRAGMA user_version = 1").has_value());
    }
    HistoryFile file = must_open(path);
    CHECK(file.set_aside().empty());
    CHECK(must_read(path, all(HistoryKind::decisions)).size() == 1);
    auto database = Database::open(path, Database::Mode::read_only);
    CHECK(*database->number("PRAGMA user_version") == kHistoryVersion);
    CHECK(*database->number("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND "
                            "name LIKE '%_at'") == 2);
  }

  TEST_CASE("history file: a writer that is killed in the middle leaves what it had written") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    for (int round = 0; round < 3; ++round) {
      int pipe_ends[2];
      REQUIRE(::pipe(pipe_ends) == 0);
      const pid_t child = ::fork();
      if (child == 0) {
        auto file = HistoryFile::open(path, kMiB);
        for (int i = 0; file; ++i) {
          std::vector<HistoryRow> rows;
          for (int n = 0; n < 50; ++n) {
            rows.push_back(sample(round * 100'000 + i, "n" + std::to_string(n)));
          }
          const auto next = file->append(rows, 0);
          if (!next || *next != rows.size()) break;
          if (::write(pipe_ends[1], &i, sizeof i) != sizeof i) break;
        }
        ::_exit(1);
      }
      ::close(pipe_ends[1]);
      int last = -1;
      for (int i = 0; i < 40 + 17 * round; ++i)
        REQUIRE(::read(pipe_ends[0], &last, sizeof last) > 0);
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      for (int told = 0; ::read(pipe_ends[0], &told, sizeof told) == sizeof told;) last = told;
      ::close(pipe_ends[0]);

      HistoryFile file = must_open(path, kMiB);
      CHECK(file.set_aside().empty());
      HistoryQuery newest = all(HistoryKind::samples);
      newest.since = kStart + minutes{round * 100'000 + last};
      const auto rows = must_read(path, newest);
      // Every transaction that was acknowledged, and at most one more; never half of one.
      CHECK((rows.size() == 50 || rows.size() == 100));
    }
  }

  TEST_CASE("history file: a disk that takes no more is an error, and later it goes on") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    HistoryFile file = must_open(path);
    must_write(file, {sample(0, "n1")});
    std::vector<HistoryRow> rows;
    for (int n = 0; n < 30'000; ++n) rows.push_back(sample(1, "node-" + std::to_string(n)));
    // Beyond this size a write fails with EFBIG instead of ENOSPC; both are errors of the disk.
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
    rlimit tight = before;
    tight.rlim_cur = 300'000;
    ::setrlimit(RLIMIT_FSIZE, &tight);
    const auto refused = file.append(rows, 0);
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_action);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::io);
    CHECK(must_read(path, all(HistoryKind::samples)).size() == 1);
    must_write(file, rows);
    CHECK(must_read(path, all(HistoryKind::samples)).size() == 30'001);
  }
}
