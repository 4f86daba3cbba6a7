// queue: which jobs wait behind the gate, which would start now, and why; and the release of all.
#include "cli/queue.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/document.h>

#include "cli/controller_call.hpp"
#include "cli/output.hpp"

namespace kwatt::cli {
namespace {

using rapidjson::Value;

struct QueueOptions {
  std::string action = "show";
  Format format = Format::table;
  ControllerPlace place;
};

const ControllerRight& right_of(const std::string& action) {
  static const ControllerRight see{"kwatt-queue-reader", "kwatt-queue-user",
                                   "manifests/queue-rbac.yaml", "see the job queue"};
  static const ControllerRight release{"kwatt-queue-operator", "kwatt-queue-dispatcher",
                                       "manifests/queue-rbac.yaml", "release queued jobs"};
  return action == "dispatch" ? release : see;
}

kube::Task<Result<int>> queue(Session& session, QueueOptions options) {
  const bool release = options.action == "dispatch";
  const ControllerRight& right = right_of(options.action);
  net::Request request(release ? "POST" : "GET", release ? "/dispatch" : "/queue");
  request.headers.set("Accept", "application/json");
  auto response = co_await call_controller(session, options.place, right, std::move(request));
  if (!response) {
    co_return response.error().with_context(release ? "no job was released"
                                                    : "the queue was not read");
  }
  if (response->status != 200) {
    co_return controller_refusal(*response, options.place, right,
                                 "the controller has no job queue: it is older than this program");
  }
  auto lines = parse_queue_json(response->body);
  if (!lines) co_return lines.error();
  session.out << shown(options.format, queue_table(std::move(*lines)), response->body);
  co_return kDone;
}

std::string text_at(const Value& object, const char* key) {
  const auto found = object.FindMember(key);
  if (found == object.MemberEnd() || !found->value.IsString()) return "";
  return {found->value.GetString(), found->value.GetStringLength()};
}

}  // namespace

Result<std::vector<QueueLine>> parse_queue_json(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject() || !document.HasMember("jobs") ||
      !document["jobs"].IsArray()) {
    return fail(ErrorCode::parse, "the controller's answer is not a job queue: no list \"jobs\"");
  }
  std::vector<QueueLine> out;
  for (const Value& one : document["jobs"].GetArray()) {
    const auto wrong = [&](std::string_view what) {
      return fail(ErrorCode::parse,
                  fmt::format("the controller's answer: jobs[{}] {}", out.size(), what));
    };
    if (!one.IsObject()) return wrong("is not an object");
    QueueLine line;
    line.namespace_name = text_at(one, "namespace");
    line.name = text_at(one, "name");
    line.queue = text_at(one, "queue");
    line.strategy = text_at(one, "strategy");
    line.reason = text_at(one, "reason");
    line.message = text_at(one, "message");
    if (line.name.empty() || line.reason.empty()) return wrong("has no name or no reason");
    const auto starts = one.FindMember("starts");
    if (starts == one.MemberEnd() || !starts->value.IsBool()) return wrong("does not say: starts");
    line.starts = starts->value.GetBool();
    if (const auto pods = one.FindMember("pods"); pods != one.MemberEnd()) {
      if (!pods->value.IsInt64()) return wrong("has no number of pods");
      line.pods = pods->value.GetInt64();
    }
    if (const auto nodes = one.FindMember("nodes");
        nodes != one.MemberEnd() && nodes->value.IsArray()) {
      for (const Value& node : nodes->value.GetArray()) {
        if (!node.IsString()) return wrong("has a node without a name");
        line.nodes.emplace_back(node.GetString(), node.GetStringLength());
      }
    }
    if (const auto grams = one.FindMember("gramsPerKWh");
        grams != one.MemberEnd() && grams->value.IsInt64()) {
      line.grams_per_kwh = grams->value.GetInt64();
    }
    out.push_back(std::move(line));
  }
  return out;
}

std::string queue_table(std::vector<QueueLine> lines) {
  if (lines.empty()) return "No job is in the queue.\n";
  std::stable_partition(lines.begin(), lines.end(),
                        [](const QueueLine& line) { return line.starts; });
  Table table({"JOB", "QUEUE", "STRATEGY", "PODS", "STARTS", "REASON", "NODES", "G/KWH", "WHY"});
  for (const QueueLine& line : lines) {
    constexpr std::size_t kNamed = 3;
    const std::size_t named = std::min(kNamed, line.nodes.size());
    std::string nodes =
        fmt::format("{}", fmt::join(line.nodes.begin(),
                                    line.nodes.begin() + static_cast<std::ptrdiff_t>(named), ","));
    if (line.nodes.size() > named) nodes += fmt::format("+{}", line.nodes.size() - named);
    const std::string grams =
        line.grams_per_kwh ? fmt::format("{}", *line.grams_per_kwh) : std::string("-");
    table.add({line.namespace_name + "/" + line.name, line.queue,
               line.strategy.empty() ? "-" : line.strategy, fmt::format("{}", line.pods),
               line.starts ? "yes" : "no", line.reason, nodes.empty() ? "-" : nodes, grams,
               line.message});
  }
  return table.text();
}

void add_queue(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<QueueOptions>();
  CLI::App* verb = add_verb(app, "queue",
                            "Show which jobs wait, which would start now, and why; dispatch "
                            "releases all of them at once",
                            "  kubectl kwatt queue\n"
                            "  kubectl kwatt queue -o json\n"
                            "  kubectl kwatt queue dispatch\n");
  verb->add_option("ACTION", options->action, "What to do")
      ->check(CLI::IsMember({"show", "dispatch"}).description(""))
      ->type_name("show|dispatch")
      ->capture_default_str();
  add_format(*verb, options->format);
  add_controller_place(*verb, options->place);
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return queue(session, *options); };
  });
}

}  // namespace kwatt::cli
