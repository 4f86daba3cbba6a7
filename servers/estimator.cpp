#include "servers/estimator.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace kwatt::servers {
namespace {

constexpr std::string_view kNamespaces = "/namespaces/", kEstimators = "/estimators/",
                           kValue = "/values/powerconsumption";
constexpr std::string_view kUnexpected = "ErrUnexpected", kUnauthorized = "ErrClientUnauthorized",
                           kNotFound = "ErrServerEstimatorNotFound", kEstimator = "ErrEstimator",
                           kNoNodes = "ErrEstimatorNoNodesAvailable",
                           kInvalid = "ErrEstimatorInvalidRequest";
constexpr std::size_t kLongestBody = 64 * 1024;
constexpr std::size_t kLongestKey = 512;

net::Response json(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

net::Response refusal(int status, std::string_view code, std::string_view message) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer writer(buffer);
  const auto text = [&](std::string_view value) {
    writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  writer.StartObject();
  writer.Key("code");
  text(code);
  writer.Key("message");
  text(message);
  writer.EndObject();
  return json(status, std::string(buffer.GetString(), buffer.GetSize()) + "\n");
}

net::Response wrong_method(const char* allowed) {
  net::Response response = refusal(405, kUnexpected, fmt::format("only {} is served", allowed));
  response.headers.set("Allow", allowed);
  return response;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// %XX undone; nullopt: that is none.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = digit(text[i + 1]), low = digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// A DNS subdomain: what names of namespaces and objects are made of. What is not one cannot be
// known, and is not repeated in an answer.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

// "namespace/name" in /namespaces/{ns}/estimators/{name}/values/powerconsumption.
struct Path {
  bool known = false;  // it is of that form
  std::string key;     // "": the names are none
};
Path parse_path(std::string_view path) {
  if (!path.starts_with(kNamespaces)) return {};
  path.remove_prefix(kNamespaces.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos || slash == 0) return {};
  const std::string_view space = path.substr(0, slash);
  path.remove_prefix(slash);
  if (!path.starts_with(kEstimators) || !path.ends_with(kValue)) return {};
  if (path.size() <= kEstimators.size() + kValue.size()) return {};
  path.remove_prefix(kEstimators.size());
  path.remove_suffix(kValue.size());
  if (path.find('/') != std::string_view::npos) return {};
  const auto a = decoded(space), b = decoded(path);
  if (!a || !b || !is_name(*a) || !is_name(*b)) return {true, ""};
  return {true, *a + "/" + *b};
}

// An integer within bounds; 500.0 is one, as JSON Schema has it.
Result<std::int64_t> integer(const rapidjson::Value& object, const char* name, std::int64_t low,
                             std::int64_t high) {
  const auto wrong = [&](std::string_view got) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: must be an integer from {} to {}, {}", name, low, high, got));
  };
  const auto found = object.FindMember(name);
  if (found == object.MemberEnd()) return wrong("but it is missing");
  const rapidjson::Value& value = found->value;
  if (!value.IsNumber()) return wrong("but it is no number");
  if (value.IsInt64()) {
    const std::int64_t number = value.GetInt64();
    if (number < low || number > high) return wrong(fmt::format("not {}", number));
    return number;
  }
  const double number = value.GetDouble();
  if (std::trunc(number) != number) return wrong("not a fraction");
  if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high))) {
    return wrong("not a number of that size");
  }
  return static_cast<std::int64_t>(number);
}

bool authorized(const net::Request& request, const ApiKeys& keys) {
  bool good = false;
  for (const auto& [name, value] : request.headers) {
    if (name.size() != 9 || !std::equal(name.begin(), name.end(), "x-api-key", [](char a, char b) {
          return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b;
        })) {
      continue;
    }
    // All are looked at, so that the time does not tell which one it was.
    for (const std::string& key : keys) good = same_key(value, key) || good;
  }
  return good;
}

class Handler {
 public:
  explicit Handler(EstimatorServerDependencies given) : given_(std::move(given)) {}

  // What can be answered at once; nullopt: an estimate must be made, `key` and `question` say of
  // what.
  std::optional<net::Response> at_once(const net::Request& request, std::string& key,
                                       EstimateQuestion& question) {
    const std::string_view target = request.target;
    const std::string_view path = target.substr(0, target.find('?'));
    if (path == "/healthz") {
      if (request.method != "GET") return wrong_method("GET");
      net::Response response;
      response.headers.set("Content-Type", "text/plain; charset=utf-8");
      response.body = ".";
      return response;
    }
    if (path == "/openapi.json") {
      if (request.method != "GET") return wrong_method("GET");
      return json(200, estimator_openapi(given_.keys && given_.keys() != nullptr));
    }
    Path asked = parse_path(path);
    if (!asked.known) return refusal(404, kUnexpected, "no matching operation was found");
    if (request.method != "POST") return wrong_method("POST");
    const ApiKeys* keys = given_.keys ? given_.keys() : nullptr;
    if (keys != nullptr && !authorized(request, *keys)) {
      return refusal(401, kUnauthorized, "the header X-API-KEY is missing, or its key is wrong");
    }
    auto parsed = parse_question(request.body);
    if (!parsed) return refusal(400, kInvalid, parsed.error().message);
    question = *parsed;
    if (asked.key.empty()) {
      return refusal(404, kNotFound, "the path has no names of a namespace and an estimator");
    }
    if (const std::string* body = given_.book.known_answer(asked.key, question)) {
      return json(200, *body);
    }
    if (!given_.book.knows(asked.key)) {
      return refusal(404, kNotFound, fmt::format("estimator {} not found", asked.key));
    }
    key = std::move(asked.key);
    return std::nullopt;
  }

  net::Task<net::Response> estimated(std::string key, EstimateQuestion question) {
    auto body = co_await given_.book.answer(std::move(key), question);
    if (body) co_return json(200, std::move(*body));
    const Error error = body.error();
    if (error.code == ErrorCode::not_found) {
      co_return refusal(500, kNoNodes, fmt::format("{} ({})", error.message, kNoNodes));
    }
    co_return refusal(503, kEstimator, error.message);
  }

  void count(const net::Response& response) {
    given_.metrics.add("kwatt_estimator_requests_total",
                       "Requests to the estimator's API by status.",
                       {{"code", fmt::format("{}", response.status)}});
  }

 private:
  EstimatorServerDependencies given_;
};

// Owns what it uses: the server may forget the handler while a request is under way.
net::Task<net::Response> handle(std::shared_ptr<Handler> handler, net::Request request) {
  std::string key;
  EstimateQuestion question;
  auto answered = handler->at_once(request, key, question);
  net::Response response;
  if (answered) {
    response = std::move(*answered);
  } else {
    response = co_await handler->estimated(std::move(key), question);
  }
  handler->count(response);
  co_return response;
}

}  // namespace

Result<ApiKeys> parse_api_keys(std::string_view text) {
  ApiKeys keys;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const bool good =
        line.size() <= kLongestKey && line.front() != ' ' && line.back() != ' ' &&
        std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (!good) {
      return fail(ErrorCode::parse,
                  fmt::format("line {}: a key must be 1 to {} printable characters without blanks "
                              "at its ends",
                              number, kLongestKey));
    }
    keys.emplace_back(line);
  }
  if (keys.empty()) return fail(ErrorCode::invalid_argument, "there is no key, one a line");
  return keys;
}

bool same_key(std::string_view given, std::string_view wanted) {
  return given.size() == wanted.size() &&
         CRYPTO_memcmp(given.data(), wanted.data(), wanted.size()) == 0;
}

Result<EstimateQuestion> parse_question(std::string_view body) {
  if (body.size() > kLongestBody) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("the body has {} bytes, {} are too many already", body.size(), kLongestBody));
  }
  if (body.empty()) {
    return fail(ErrorCode::invalid_argument,
                R"(a body such as {"cpu_milli":500,"num_workloads":5} is needed)");
  }
  rapidjson::Document document;
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  document.Parse<kFlags>(body.data(), body.size());
  if (document.HasParseError()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the body is not JSON: at byte {}: {}", document.GetErrorOffset(),
                            rapidjson::GetParseError_En(document.GetParseError())));
  }
  if (!document.IsObject()) {
    return fail(ErrorCode::invalid_argument,
                R"(the body must be an object such as {"cpu_milli":500,"num_workloads":5})");
  }
  auto cpu = integer(document, "cpu_milli", 0, kMaxCpuMilli);
  if (!cpu) return cpu.error();
  auto workloads = integer(document, "num_workloads", 1, kMaxWorkloads);
  if (!workloads) return workloads.error();
  // WAO's type has it, too; what is in it does not count, but it must be what it is called.
  const auto increases = document.FindMember("watt_increases");
  if (increases != document.MemberEnd() && !increases->value.IsNull()) {
    const bool numbers = increases->value.IsArray() &&
                         std::all_of(increases->value.Begin(), increases->value.End(),
                                     [](const rapidjson::Value& one) { return one.IsNumber(); });
    if (!numbers) {
      return fail(ErrorCode::invalid_argument,
                  "watt_increases: must be a list of numbers, or be left out");
    }
  }
  EstimateQuestion question;
  question.cpu_milli = *cpu;
  question.num_workloads = *workloads;
  return question;
}

net::Handler estimator_handler(EstimatorServerDependencies dependencies) {
  auto handler = std::make_shared<Handler>(std::move(dependencies));
  return [handler](net::Request request) { return handle(handler, std::move(request)); };
}

}  // namespace kwatt::servers
