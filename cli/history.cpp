// history: what the controller's history file tells, through the API server's service proxy, or
// asked directly.
#include "cli/history.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/read.hpp"
#include "kube/path.hpp"

namespace kwatt::cli {
namespace {

using telemetry::HistoryAnswer;
using telemetry::HistoryKind;

const ControllerRight& right() {
  static const ControllerRight value{"kwatt-history-reader", "kwatt-history-user",
                                     "manifests/history-rbac.yaml", "read the history"};
  return value;
}

// Under a name of its own, and there only when it is whole.
Result<std::string> save(const std::string& folder, const std::string& name,
                         const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  const std::filesystem::path partial = path.string() + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code error;
  if (out) {
    std::filesystem::rename(partial, path, error);
    if (!error) return path.string();
  }
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  return fail(ErrorCode::io, "cannot write " + path.string(), error ? error.message() : "");
}

kube::Task<Result<int>> history(Session& session, HistoryOptions options) {
  auto target = history_target(options);
  if (!target) co_return target.error();
  auto response =
      co_await call_controller(session, options.place, right(), net::Request("GET", *target));
  if (!response) co_return response.error().with_context("the history was not read");
  if (response->status != 200) {
    co_return controller_refusal(*response, options.place, right(),
                                 "the controller keeps no history: start it with --history-file");
  }
  auto answer = telemetry::parse_history_json(response->body);
  if (!answer) co_return answer.error();
  if (answer->truncated) {
    session.err << "warning: only the newest " << answer->rows.size()
                << " rows: there may be older ones (--limit, --until)\n";
  }
  if (!options.out_dir.empty()) {
    const std::string name = telemetry::csv_name(answer->kind, session.clock.now());
    auto path = save(options.out_dir, name, csv_of(*answer));
    if (!path) co_return path.error();
    session.out << *path << "\n";
  } else if (options.output == "csv") {
    session.out << csv_of(*answer);
  } else if (options.output == "json") {
    session.out << pretty_json(response->body);
  } else {
    session.out << table_of(*answer);
  }
  co_return kDone;
}

std::string watts(const std::optional<Milliwatts>& power) {
  return power ? fmt::format("{}", (power->count() + 500) / 1000) : "-";
}
std::string percent(Permille part) {
  return fmt::format("{}.{} %", part.count() / 10, part.count() % 10);
}
// With one digit after the point; what was saved may be negative.
std::string watt_hours(Millijoules energy) {
  return fmt::format("{:.1f}", static_cast<double>(energy.count()) / 3.6e6);
}
std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::vector<std::string> header_of(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::samples:
      return {"TIME", "NODE", "WATTS", "MAX", "UTILIZATION", "SOURCE"};
    case HistoryKind::decisions:
      return {"TIME", "NODE", "POLICY", "ACTION", "REASON", "MESSAGE"};
    case HistoryKind::operations:
      return {"TIME", "NODE", "POLICY", "OPERATION", "PHASE", "REASON", "MESSAGE"};
    case HistoryKind::energy:
      break;
  }
  return {"HOUR", "NODE", "POLICY", "USED-WH", "BASELINE-WH", "SAVED-WH", "SEEN", "MEASURED"};
}

std::vector<std::string> cells_of(const telemetry::SampleRow& row) {
  return {format_rfc3339(row.minute), row.node,  watts(row.mean), watts(row.max),
          percent(row.utilization),   row.source};
}
std::vector<std::string> cells_of(const telemetry::DecisionRow& row) {
  return {format_rfc3339(row.at), row.node,   or_dash(row.policy), row.action,
          or_dash(row.reason),    row.message};
}
std::vector<std::string> cells_of(const telemetry::OperationRow& row) {
  return {format_rfc3339(row.at),
          row.node,
          or_dash(row.policy),
          row.kind,
          row.phase,
          row.reason,
          row.message};
}
std::vector<std::string> cells_of(const telemetry::EnergyRow& row) {
  return {format_rfc3339(row.hour), row.node,
          or_dash(row.policy),      watt_hours(row.actual),
          watt_hours(row.baseline), watt_hours(row.baseline - row.actual),
          human(row.covered),       human(row.measured)};
}

// A time, or how long ago: "" if the word is one of them.
std::string moment_problem(const std::string& word) {
  const auto back = parse_go_duration(word);
  if (parse_rfc3339(word) || (back && *back >= Duration{0})) return "";
  return fmt::format(
      "\"{}\" is neither a duration such as 90m nor a time such as "
      "2026-11-20T21:00:00Z",
      word);
}

}  // namespace

Result<std::string> history_target(const HistoryOptions& options) {
  std::string target = "/history?kind=" + options.kind;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) target += fmt::format("&{}={}", key, kube::percent_encode(value));
  };
  if (!options.node.empty()) {
    auto node = node_name(options.node);
    if (!node) return node.error();
    add("node", *node);
  }
  if (!options.policy.empty()) {
    auto policy = policy_name(options.policy);
    if (!policy) return policy.error();
    add("policy", *policy);
  }
  add("since", options.since);
  add("until", options.until);
  add("limit", fmt::format("{}", options.limit));
  return target;
}

std::string table_of(const HistoryAnswer& answer) {
  if (answer.rows.empty()) return "Nothing is recorded for that time.\n";
  Table table(header_of(answer.kind));
  for (const telemetry::HistoryRow& row : answer.rows) {
    table.add(std::visit([](const auto& one) { return cells_of(one); }, row));
  }
  return table.text();
}

std::string csv_of(const HistoryAnswer& answer) {
  std::string text = telemetry::csv_header(answer.kind);
  for (const telemetry::HistoryRow& row : answer.rows) telemetry::append_csv(row, text);
  return text;
}

void add_history(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* verb = add_verb(app, "history", "Show what was decided, done and drawn",
                            "  kubectl kwatt history\n"
                            "  kubectl kwatt history node-7 --kind operations --since 24h\n"
                            "  kubectl kwatt history --kind energy --policy default -o json\n"
                            "  kubectl kwatt history --kind samples --since 2h --until 1h -o csv\n"
                            "  kubectl kwatt history --kind samples --limit 10000 --out-dir .\n");
  const CLI::Validator a_moment([](const std::string& word) { return moment_problem(word); }, "");
  verb->add_option("NODE", options->node, "node/NAME or NAME (default: all nodes)");
  verb->add_option("--kind", options->kind, "What to show")
      ->check(CLI::IsMember({"decisions", "operations", "samples", "energy"}).description(""))
      ->type_name("decisions|operations|samples|energy")
      ->capture_default_str();
  verb->add_option("--policy", options->policy, "Only under this policy");
  verb->add_option("--since", options->since, "From then on: a duration back from now, or a time")
      ->check(a_moment)
      ->capture_default_str();
  verb->add_option("--until", options->until, "Up to then, without it (default: now)")
      ->check(a_moment);
  verb->add_option("--limit", options->limit, "At most so many rows, the newest; 1 to 10000")
      ->check(CLI::Range(1, 10'000).description(""))
      ->capture_default_str();
  CLI::Option* output = verb->add_option("-o,--output", options->output, "How to show it")
                            ->check(CLI::IsMember({"table", "json", "csv"}).description(""))
                            ->type_name("table|json|csv")
                            ->capture_default_str();
  verb->add_option("--out-dir", options->out_dir,
                   "Write a CSV file into this folder and print its name: metrics_<time>.csv of "
                   "samples, else <kind>_<time>.csv")
      ->check(CLI::ExistingDirectory.description(""))
      ->type_name("DIR")
      ->excludes(output);
  add_controller_place(*verb, options->place);
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return history(session, *options); };
  });
}

}  // namespace kwatt::cli
