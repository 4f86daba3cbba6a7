#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "telemetry/history.hpp"
#include "telemetry/history_csv.hpp"
#include "telemetry/history_file.hpp"
#include "telemetry/history_format.hpp"
#include "telemetry/minute.hpp"
#include "test/support/folder.hpp"
#include "test/support/run_task.hpp"

TEST_SUITE("telemetry") {
  using namespace kwatt;
  using namespace kwatt::telemetry;
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  namespace fs = std::filesystem;

  namespace {
  const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

  HistoryOptions options(const std::string& path) {
    HistoryOptions o;
    o.path = path;
    o.batch = Duration{5};
    o.retry = Duration{30};
    return o;
  }
  DecisionRow decision(int second, const std::string& message = "idle") {
    return {kStart + seconds{second}, "n1", "p", "Off", "Idle", message};
  }
  std::size_t rows_in(const std::string& path) {
    HistoryQuery query;
    query.limit = 1'000'000;
    const auto rows = read_history(path, query);
    return rows ? rows->size() : 0;
  }
  std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  }  // namespace

  TEST_CASE("history: rows are written behind the caller's back, and can be read there and then") {
    const test::Folder folder;
    const SystemClock clock;
    Metrics metrics;
    History history(options(folder.path("history.db")), clock, metrics);
    for (int i = 0; i < 100; ++i) history.add(decision(i));
    REQUIRE(history.flush(seconds{10}));
    boost::asio::io_context io;
    HistoryQuery query;
    query.limit = 7;
    const auto rows = test::run_task(io, history.read(query));
    REQUIRE(rows.has_value());
    REQUIRE(rows->size() == 7);
    CHECK(std::get<DecisionRow>(rows->back()) == decision(99));
    const std::string shown = metrics.render();
    CHECK(shown.find("kwatt_history_rows_total 100") != std::string::npos);
    CHECK(shown.find("kwatt_history_failing 0") != std::string::npos);
  }

  TEST_CASE("history: the end writes what waits") {
    const test::Folder folder;
    const SystemClock clock;
    Metrics metrics;
    HistoryOptions slow = options(folder.path("history.db"));
    slow.batch = hours{1};
    {
      History history(slow, clock, metrics);
      for (int i = 0; i < 1000; ++i) history.add(decision(i));
    }
    CHECK(rows_in(slow.path) == 1000);
  }

  TEST_CASE(
      "history: a folder that is missing is waited for; what the queue cannot hold is counted") {
    const test::Folder folder;
    const SystemClock clock;
    Metrics metrics;
    HistoryOptions small = options(folder.path("later/history.db"));
    small.queue = 100;
    History history(small, clock, metrics);
    // The first hundred may already have left the queue when the others come.
    for (int i = 0; i < 1000; ++i) history.add(decision(i));
    CHECK_FALSE(history.flush(Duration{200}));
    CHECK(metrics.render().find("kwatt_history_failing 1") != std::string::npos);
    CHECK(metrics.render().find("kwatt_history_dropped_rows_total{reason=\"queue_full\"}") !=
          std::string::npos);
    fs::create_directory(folder.path("later"));
    REQUIRE(history.flush(seconds{10}));
    CHECK(metrics.render().find("kwatt_history_failing 0") != std::string::npos);
    CHECK(rows_in(small.path) >= 100);
    CHECK(rows_in(small.path) <= 200);
  }

  TEST_CASE("history: a file damaged while it is open is renamed aside, and writing goes on") {
    const test::Folder folder;
    const SystemClock clock;
    Metrics metrics;
    HistoryOptions small = options(folder.path("history.db"));
    small.max_bytes =
        4 << 20;  // more than SQLite caches, and the oldest rows are read to be removed
    const std::string path = small.path;
    const std::string message(150, 'x');
    History history(small, clock, metrics);
    for (int i = 0; i < 40'000; ++i) history.add(decision(i, message));
    REQUIRE(history.flush(seconds{30}));
    const auto size = fs::file_size(path);
    REQUIRE(size > std::uintmax_t{2'000'000});
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(4096);
      file << std::string(size - 4096, '\x55');
    }
    for (int i = 0; i < 1000 && !fs::exists(path + ".aside"); ++i) {
      for (int n = 0; n < 100; ++n) history.add(decision(50'000 + 100 * i + n, message));
      history.flush(Duration{50});
    }
    REQUIRE(fs::exists(path + ".aside"));
    history.add(decision(1'000'000, "the last one"));
    REQUIRE(history.flush(seconds{10}));
    HistoryQuery query;
    const auto rows = read_history(path, query);
    REQUIRE(rows.has_value());
    REQUIRE_FALSE(rows->empty());
    CHECK(std::get<DecisionRow>(rows->back()).message == "the last one");
    CHECK(metrics.render().find("kwatt_history_set_aside_total 1") != std::string::npos);
  }

  TEST_CASE("history: JSON comes back as it went, and says when there is more") {
    const std::vector<std::vector<HistoryRow>> kinds = {
        {SampleRow{kStart, "n1", watts(100), watts(120), Permille{5}, "agent"},
         SampleRow{kStart, "n2", std::nullopt, std::nullopt, Permille{5}, "none"}},
        {DecisionRow{kStart, "n1", "p", "Off", "Idle", "a \"quoted\" one\n"}},
        {OperationRow{kStart, "n1", "p", "id", "PowerOff", "failed", "BMCError", "503"}},
        {EnergyRow{kStart, "n1", "p", Millijoules{1}, Millijoules{-2}, hours{1}, Duration{0}}}};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const auto kind = static_cast<HistoryKind>(i);
      const auto answer = parse_history_json(history_json(kind, kinds[i], i % 2 == 0));
      REQUIRE_MESSAGE(answer.has_value(), answer.error().text());
      CHECK(answer->kind == kind);
      CHECK(answer->rows == kinds[i]);
      CHECK(answer->truncated == (i % 2 == 0));
    }
    for (
        const char* broken :
        {"", "[]", "{}", R"({"kind":"x","rows":[]})", R"({"kind":"samples"})",
         R"({"kind":"samples","rows":[1]})", R"({"kind":"samples","rows":[{"time":"x"}]})",
         R"({"kind":"energy","rows":[{"time":"2026-11-20T10:00:00Z","node":"n","policy":"p"}]})"}) {
      INFO(broken);
      const auto answer = parse_history_json(broken);
      REQUIRE_FALSE(answer.has_value());
      CHECK(answer.error().code == ErrorCode::parse);
    }
  }

  TEST_CASE("history: CSV quotes what needs it and defuses formulas") {
    struct Case {
      const char *message, *cell;
    };
    const Case cases[] = {{"plain", "plain"},
                          {"a, b", "\"a, b\""},
                          {"say \"no\"", "\"say \"\"no\"\"\""},
                          {"two\nlines", "\"two\nlines\""},
                          {"=1+1", "\"'=1+1\""},
                          {"", ""}};
    for (const Case& c : cases) {
      std::string line;
      append_csv(decision(3, c.message), line);
      CHECK(line == std::string("2026-11-20T10:00:03Z,n1,p,Off,Idle,") + c.cell + "\n");
    }
    std::string line;
    append_csv(SampleRow{kStart, "n1", std::nullopt, std::nullopt, Permille{12}, "none"}, line);
    CHECK(line == "2026-11-20T10:00:00Z,n1,,,12,none\n");
    // As many columns as the header names.
    const std::string header(csv_header(HistoryKind::samples));
    CHECK(std::count(line.begin(), line.end(), ',') ==
          std::count(header.begin(), header.end(), ','));
    CHECK(csv_name(HistoryKind::samples, kStart) == "metrics_20261120T100000Z.csv");
    CHECK(csv_name(HistoryKind::energy, kStart) == "energy_20261120T100000Z.csv");
  }

  TEST_CASE(
      "history: an hour's file is written once the hour is over, and a week of them is kept") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    auto file = HistoryFile::open(path, 1 << 20);
    REQUIRE(file.has_value());
    std::vector<HistoryRow> rows;
    for (int i = -5; i < 70; ++i) {
      rows.push_back(
          SampleRow{kStart + minutes{i}, "n1", watts(i + 10), watts(i + 10), Permille{1}, "agent"});
    }
    REQUIRE(file->append(rows, 0).has_value());
    const fs::path out = fs::path(folder.path()) / "csv";
    fs::create_directory(out);
    std::ofstream(out / "metrics_of_mine.csv") << "mine";
    CsvWriter writer(path, out, kStart + minutes{7});
    writer.write_due(kStart + minutes{61});
    CHECK_FALSE(fs::exists(out / "metrics_20261120T100000Z.csv"));
    writer.write_due(kStart + minutes{62});
    const std::string text = text_of(out / "metrics_20261120T100000Z.csv");
    CHECK(std::count(text.begin(), text.end(), '\n') == 61);
    CHECK(text.starts_with("time,node,"));
    CHECK(text.find("2026-11-20T10:59:00Z,n1,69000,69000,1,agent\n") != std::string::npos);
    CHECK_FALSE(fs::exists(out / "metrics_20261120T090000Z.csv"));

    for (int i = 2; i < 200; ++i) writer.write_due(kStart + hours{i} + minutes{3});
    std::size_t ours = 0;
    for (const auto& entry : fs::directory_iterator(out)) {
      ours += entry.path().filename().string().starts_with("metrics_20") ? 1 : 0;
    }
    CHECK(ours == CsvWriter::kKept);
    CHECK(fs::exists(out / "metrics_of_mine.csv"));
    // A clock that jumps by ten years writes a day's files, not ten years of them.
    writer.write_due(kStart + hours{24 * 3652});
    CHECK(fs::exists(out / csv_name(HistoryKind::samples, kStart + hours{24 * 3652 - 2})));
  }

  TEST_CASE("history: a CSV folder that cannot be written is tried again") {
    const test::Folder folder;
    const std::string path = folder.path("history.db");
    REQUIRE(HistoryFile::open(path, 1 << 20).has_value());
    CsvWriter writer(path, folder.path("csv"), kStart);
    writer.write_due(kStart + minutes{62});
    fs::create_directory(folder.path("csv"));
    writer.write_due(kStart + minutes{63});
    CHECK(fs::exists(folder.path("csv") + "/metrics_20261120T100000Z.csv"));
  }

  TEST_CASE("history: a minute is the mean of its own samples") {
    const auto at = [](Duration after, std::int64_t permille, std::optional<std::int64_t> power) {
      Reading reading;
      reading.at = kStart + after;
      reading.has_utilization = true;
      reading.utilization = reading.busy = Permille{permille};
      if (power) reading.power = watts(*power);
      return reading;
    };
    const std::vector<Reading> samples = {
        at(seconds{-1}, 900, 900), at(seconds{0}, 100, 100),       at(seconds{20}, 200, 140),
        at(seconds{40}, 300, {}),  at(Duration{59'999}, 400, 120), at(seconds{60}, 900, 900)};
    const auto row = sample_row("n1", samples, kStart);
    REQUIRE(row.has_value());
    CHECK(*row == SampleRow{kStart, "n1", watts(120), watts(140), Permille{250}, "agent"});
    CHECK_FALSE(sample_row("n1", samples, kStart + minutes{5}).has_value());
    const auto unmetered = sample_row("n1", {at(seconds{1}, 5, {})}, kStart);
    CHECK(*unmetered == SampleRow{kStart, "n1", std::nullopt, std::nullopt, Permille{5}, "none"});

    Reading meter = at(seconds{2}, 0, 90);
    meter.has_utilization = false;
    meter.power_source = Source::bmc;
    CHECK_FALSE(sample_row("n1", {meter}, kStart).has_value());  // of a load nothing is known
    const auto both = sample_row("n1", {at(seconds{1}, 5, {}), meter}, kStart);
    CHECK(*both == SampleRow{kStart, "n1", watts(90), watts(90), Permille{5}, "bmc"});
  }
}
