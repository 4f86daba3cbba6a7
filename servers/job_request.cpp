#include "servers/job_request.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include "api/json_writer.hpp"
#include "api/quantity.hpp"
#include "planner/queue/gated_jobs.hpp"

namespace kwatt::servers {
namespace {

namespace names = planner::queue::names;
using rapidjson::Value;

constexpr std::size_t kWords = 256;      // of command and args
constexpr std::size_t kVariables = 256;  // of env
constexpr std::size_t kText = 32 * 1024;
constexpr std::int64_t kRetries = 100, kGpus = 64;

std::string_view text_of(const Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

bool alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
// DNS-1123 label of at most `longest` bytes.
bool is_label(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && alphanumeric(text.front()) &&
         alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return alphanumeric(c) || c == '-'; });
}
bool is_variable(std::string_view text) {
  const auto good = [](char c) {
    return alphanumeric(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= 253 && !(text.front() >= '0' && text.front() <= '9') &&
         std::all_of(text.begin(), text.end(), good);
}
bool is_resource(std::string_view text) {
  const auto slash = text.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < text.size() &&
         text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
           return alphanumeric(c) || c == '-' || c == '.' || c == '/';
         });
}

class Reader {
 public:
  explicit Reader(const Value& root) : root_(root) {}

  void text(const char* key, std::string& out, const char* want,
            const std::function<bool(std::string_view)>& good, bool required = false) {
    const Value* value = member(key);
    if (value == nullptr) {
      if (required) wrong(key, std::string("is missing: ") + want);
      return;
    }
    if (!value->IsString() || !good(text_of(*value))) {
      return wrong(key, fmt::format("expected {}", want));
    }
    out = text_of(*value);
  }
  void number(const char* key, std::int64_t& out, std::int64_t least, std::int64_t most) {
    const Value* value = member(key);
    if (value == nullptr) return;
    if (!value->IsInt64() || value->GetInt64() < least || value->GetInt64() > most) {
      return wrong(key, fmt::format("expected a whole number from {} to {}", least, most));
    }
    out = value->GetInt64();
  }
  void words(const char* key, std::vector<std::string>& out) {
    const Value* value = member(key);
    if (value == nullptr) return;
    if (!value->IsArray() || value->Size() > kWords) {
      return wrong(key, fmt::format("expected a list of at most {} texts", kWords));
    }
    for (rapidjson::SizeType i = 0; i < value->Size(); ++i) {
      const Value& one = (*value)[i];
      if (!one.IsString() || one.GetStringLength() > kText) {
        return wrong(fmt::format("{}/{}", key, i),
                     fmt::format("expected a text of at most {} bytes", kText));
      }
      out.emplace_back(text_of(one));
    }
  }
  void variables(const char* key, std::map<std::string, std::string>& out) {
    const Value* value = member(key);
    if (value == nullptr) return;
    if (!value->IsObject() || value->MemberCount() > kVariables) {
      return wrong(key, fmt::format("expected an object of at most {} texts", kVariables));
    }
    for (const auto& one : value->GetObject()) {
      const std::string_view name = text_of(one.name);
      if (!is_variable(name)) return wrong(key, "expected names of environment variables");
      if (!one.value.IsString() || one.value.GetStringLength() > kText) {
        return wrong(fmt::format("{}/{}", key, name),
                     fmt::format("expected a text of at most {} bytes", kText));
      }
      out[std::string(name)] = text_of(one.value);
    }
  }
  void duration(const char* key, std::optional<Duration>& out) {
    std::string text;
    this->text(key, text, "a duration such as 90m", [](std::string_view given) {
      const auto value = parse_go_duration(given);
      return value && *value >= Duration{0};
    });
    if (!text.empty()) out = parse_go_duration(text);
  }
  void time(const char* key, std::optional<TimePoint>& out) {
    std::string text;
    this->text(key, text, "a time such as 2026-11-20T21:00:00Z",
               [](std::string_view given) { return parse_rfc3339(given).has_value(); });
    if (!text.empty()) out = parse_rfc3339(text);
  }
  void no_others() {
    for (const auto& one : root_.GetObject()) {
      const std::string name(text_of(one.name));
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        wrong(name.substr(0, 100), "there is no such field in a job");
      } else if (&root_.FindMember(one.name)->value != &one.value) {
        wrong(name, "is given twice");
      }
    }
  }
  void wrong(std::string_view path, const std::string& sentence) {
    if (problems_.size() < 2'000) {
      problems_ += fmt::format("{}/{}: {}", problems_.empty() ? "" : "; ", path, sentence);
    }
  }
  const std::string& problems() const { return problems_; }

 private:
  const Value* member(const char* key) {
    known_.emplace_back(key);
    const auto found = root_.FindMember(key);
    return found == root_.MemberEnd() ? nullptr : &found->value;
  }
  const Value& root_;
  std::vector<std::string> known_;
  std::string problems_;
};

bool positive_cpu(std::string_view text) {
  const auto value = api::parse_quantity_milli(text);
  return value && *value > 0;
}
bool positive_memory(std::string_view text) {
  const auto value = api::parse_quantity(text);
  return value && *value > 0;
}

}  // namespace

Result<JobRequest> parse_job_request(std::string_view body) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
  if (document.HasParseError()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the body is not JSON: {} at byte {}",
                            rapidjson::GetParseError_En(document.GetParseError()),
                            document.GetErrorOffset()));
  }
  if (!document.IsObject()) {
    return fail(ErrorCode::invalid_argument, "the body is not a JSON object");
  }
  JobRequest out;
  Reader read(document);
  const auto label = [](std::string_view text) { return is_label(text, 63); };
  // The Job's controller appends to it: shorter than a label.
  read.text(
      "name", out.name, "a name of 1 to 52 bytes: lower-case letters, digits and '-'",
      [](std::string_view text) { return is_label(text, 52); }, true);
  read.text("namespace", out.namespace_name, "the name of a namespace", label);
  read.text("queue", out.queue, "the name of an EnergyPolicy, of at most 63 bytes", label, true);
  read.text(
      "image", out.image, "a container image",
      [](std::string_view text) { return !text.empty() && text.size() <= 1024; }, true);
  read.words("command", out.command);
  read.words("args", out.args);
  read.variables("env", out.env);
  read.text("cpu", out.cpu, "a quantity above 0 such as \"500m\"", positive_cpu);
  read.text("memory", out.memory, "a quantity above 0 such as \"256Mi\"", positive_memory);
  read.number("gpus", out.gpus, 0, kGpus);
  read.text("gpuResource", out.gpu_resource, "an extended resource such as nvidia.com/gpu",
            is_resource);
  read.number("members", out.members, 1, planner::queue::kLargestGang);
  read.number("retries", out.retries, 0, kRetries);
  read.duration("expectedDuration", out.expected);
  read.duration("maxDelay", out.max_delay);
  read.time("deadline", out.deadline);
  read.no_others();
  if (!read.problems().empty()) return fail(ErrorCode::invalid_argument, read.problems());
  return out;
}

std::string job_body(const JobRequest& request, const std::string& caller) {
  api::JsonWriter json;
  const std::string queue(names::kQueue);
  const auto words = [&](const char* key, const std::vector<std::string>& list) {
    if (list.empty()) return;
    json.begin_list(key);
    for (const std::string& word : list) json.text(word);
    json.end_list();
  };
  json.begin().text("apiVersion", "batch/v1").text("kind", "Job");
  json.begin("metadata").text("name", request.name).text("namespace", request.namespace_name);
  json.begin("labels").text(queue, request.queue).end();
  json.begin("annotations").text("kwatt.dev/ingested-for", caller).end().end();
  json.begin("spec");
  json.key("backoffLimit").integer(request.retries);
  json.key("parallelism").integer(request.members).key("completions").integer(request.members);
  if (request.members > 1) json.text("completionMode", "Indexed");
  json.begin("template").begin("metadata");
  json.begin("labels").text(queue, request.queue).end();
  json.begin("annotations");
  if (request.members > 1) json.text(names::kGangSize, fmt::format("{}", request.members));
  if (request.expected) json.text(names::kExpected, format_go_duration(*request.expected));
  if (request.max_delay) json.text(names::kMaxDelay, format_go_duration(*request.max_delay));
  if (request.deadline) json.text(names::kDeadline, format_rfc3339(*request.deadline));
  json.end().end();
  json.begin("spec").text("restartPolicy", "Never");
  json.key("automountServiceAccountToken").boolean(false);
  json.begin_list("schedulingGates").begin().text("name", queue).end().end_list();
  json.begin_list("containers").begin().text("name", "job").text("image", request.image);
  words("command", request.command);
  words("args", request.args);
  if (!request.env.empty()) {
    json.begin_list("env");
    for (const auto& [name, value] : request.env) {
      json.begin().text("name", name).text("value", value).end();
    }
    json.end_list();
  }
  json.begin("resources").begin("requests");
  json.text("cpu", request.cpu).text("memory", request.memory);
  const std::string gpus = fmt::format("{}", request.gpus);
  if (request.gpus > 0) json.text(request.gpu_resource, gpus);
  json.end().begin("limits").text("memory", request.memory);
  if (request.gpus > 0) json.text(request.gpu_resource, gpus);
  json.end().end();
  json.begin("securityContext").key("allowPrivilegeEscalation").boolean(false).end();
  json.end().end_list();  // the container
  json.end().end().end().end();
  return json.take();
}

}  // namespace kwatt::servers
