// history: what the controller's history file tells, through the API server's service proxy, or
// asked directly.
#include "cli/history.hpp"

#include <filesystem>
#include <fstream>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/status.hpp"
#include "cli/output.hpp"
#include "cli/read.hpp"
#include "kube/path.hpp"
#include "kube/status_error.hpp"

namespace kwatt::cli {
namespace {

namespace asio = boost::asio;
using telemetry::HistoryAnswer;
using telemetry::HistoryKind;

constexpr const char* kReader = "kwatt-history-reader";
constexpr const char* kService = "kwatt-controller";
constexpr std::int64_t kTokenSeconds = 600;  // the shortest the API server gives

// The token of a TokenRequest that was granted.
Result<std::string> token_in(const std::string& json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.IsObject() && document.HasMember("status") && document["status"].IsObject()) {
    const auto token = document["status"].FindMember("token");
    if (token != document["status"].MemberEnd() && token->value.IsString()) {
      return std::string(token->value.GetString(), token->value.GetStringLength());
    }
  }
  return fail(ErrorCode::parse, "the API server's TokenRequest has no token");
}

// A short-lived token of the ServiceAccount that may read the history. Our own token would not do:
// it is the API server's, and must not be shown to anybody else.
kube::Task<Result<std::string>> reader_token(Session& session, std::string namespace_name) {
  const kube::Resource resource{"", "v1", fmt::format("serviceaccounts/{}/token", kReader), true};
  std::string body =
      fmt::format(R"({{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",)"
                  R"("spec":{{"audiences":["kwatt"],"expirationSeconds":{}}}}})",
                  kTokenSeconds);
  auto answer = co_await session.client.create(resource, namespace_name, std::move(body));
  if (answer) co_return token_in(*answer);
  Error error = answer.error();
  if (error.code == ErrorCode::not_found) {
    co_return error.with_context(
        fmt::format("there is no ServiceAccount {} in namespace {}: apply "
                    "manifests/history-rbac.yaml there, or say --namespace",
                    kReader, namespace_name));
  }
  if (error.code == ErrorCode::forbidden) {
    co_return error.with_context(
        fmt::format("you may not read the history: the Role kwatt-history-user in namespace {} "
                    "gives the right to it",
                    namespace_name));
  }
  co_return error;
}

Result<net::TlsConfig> tls_of(const std::string& ca_file) {
  net::TlsConfig tls;
  if (ca_file.empty()) return tls;
  std::ifstream file(ca_file, std::ios::binary);
  tls.ca_pem.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || tls.ca_pem.empty()) return fail(ErrorCode::io, "cannot read --ca " + ca_file);
  return tls;
}

kube::Task<Result<net::Response>> ask_directly(HistoryOptions options, std::string target,
                                               std::string token) {
  auto url = net::parse_url(options.controller);
  if (!url) co_return url.error().with_context("--controller");
  if (!url->origin.tls) {
    co_return fail(ErrorCode::invalid_argument, "--controller must be https: a token is sent");
  }
  auto tls = tls_of(options.ca_file);
  if (!tls) co_return tls.error();
  // Apart: GCC 12 copies the strings of a lambda bit by bit where its expression holds a co_await.
  const auto executor = co_await asio::this_coro::executor;
  net::Client client(executor, url->origin, [config = *tls] { return config; });
  net::Request request("GET", target);
  request.headers.set("Authorization", "Bearer " + token);
  net::Limits limits;
  limits.body_bytes = std::size_t{32} << 20;
  co_return co_await client.send(std::move(request), limits);
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
  auto token = co_await reader_token(session, options.namespace_name);
  if (!token) co_return token.error();
  Result<net::Response> response = net::Response();
  if (options.controller.empty()) {
    net::Headers headers;
    headers.set("Kwatt-Authorization", "Bearer " + *token);
    response = co_await session.fetch(proxy_path(options.namespace_name, *target), headers);
  } else {
    response = co_await ask_directly(options, *target, *token);
  }
  if (!response) co_return response.error().with_context("the history was not read");
  if (response->status != 200) co_return history_refusal(*response, options);
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

std::string proxy_path(const std::string& namespace_name, const std::string& target) {
  return fmt::format("/api/v1/namespaces/{}/services/https:{}:ingest/proxy{}",
                     kube::percent_encode(namespace_name), kService, target);
}

Error history_refusal(const net::Response& response, const HistoryOptions& options) {
  const api::Status status =
      kube::status_of_response(response.status, response.headers.get("Retry-After"), response.body);
  // The controller answers in plain text, the API server with a Status that has a reason.
  if (status.reason.empty()) {
    Error error = kube::to_error(status, "the controller refused");
    if (response.status == 404) {
      error.message = "the controller keeps no history: start it with --history-file";
      error.server_text.clear();
    }
    return error;
  }
  Error error = kube::to_error(status, "the way to the controller through the API server");
  if (error.code == ErrorCode::not_found) {
    error.message = fmt::format(
        "there is no Service {} with a port \"ingest\" in namespace {}; --controller "
        "asks without it",
        kService, options.namespace_name);
  } else if (error.code == ErrorCode::forbidden) {
    error.message = fmt::format(
        "you may not use the proxy to Service {}: the Role kwatt-history-user in "
        "namespace {} gives the right to it",
        kService, options.namespace_name);
  }
  return error;
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
  verb->add_option("-n,--namespace", options->namespace_name, "Namespace of the controller")
      ->capture_default_str();
  CLI::Option* controller =
      verb->add_option("--controller", options->controller,
                       "https URL of the controller's ingest address, to ask it without the API "
                       "server's proxy")
          ->type_name("URL");
  verb->add_option("--ca", options->ca_file,
                   "CA certificates of --controller (default: the system's)")
      ->type_name("FILE")
      ->needs(controller);
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return history(session, *options); };
  });
}

}  // namespace kwatt::cli
