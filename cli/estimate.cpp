// estimate: the least power increase for so many workloads, as WAO-Estimator's estimator-cli asks
// for it: through the API server's service proxy, or directly.
#include "cli/estimate.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/status.hpp"
#include "cli/read.hpp"
#include "kube/path.hpp"
#include "kube/status_error.hpp"

namespace kwatt::cli {
namespace {

namespace asio = boost::asio;

constexpr const char* kService = "kwatt-estimator";
constexpr const char* kKeyHeader = "X-API-KEY";

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As Go's %v prints a float64: the shortest digits, with an exponent below 1e-4 and from 1e21 on.
std::string go_number(double value) {
  if (std::isinf(value) || std::abs(value) == std::numeric_limits<double>::max()) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  const double size = std::abs(value);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e21);
  std::array<char, 400> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  return {text.data(), end};
}

Result<net::Headers::Entry> header_of(const EstimateOptions& options) {
  if (!options.api_key_file.empty()) {
    std::ifstream file(options.api_key_file);
    std::string key;
    if (!std::getline(file, key) || key.empty()) {
      return fail(ErrorCode::io, "cannot read a key from --api-key-file " + options.api_key_file);
    }
    return net::Headers::Entry(kKeyHeader, key);
  }
  if (options.header.empty()) return net::Headers::Entry();
  const std::size_t colon = options.header.find(':');
  const std::size_t value = options.header.find_first_not_of(' ', colon + 1);
  if (colon == std::string::npos || colon == 0 || value == std::string::npos) {
    return fail(ErrorCode::invalid_argument, "--header must be such as \"X-API-KEY: …\"");
  }
  return net::Headers::Entry(options.header.substr(0, colon), options.header.substr(value));
}

kube::Task<Result<net::Response>> ask_directly(std::string address, net::Request request) {
  auto url = net::parse_url(address);
  if (!url) co_return url.error().with_context("--address");
  std::string root = url->path;
  while (root.ends_with('/')) root.pop_back();
  request.target = root + request.target;
  const auto executor = co_await asio::this_coro::executor;
  net::Client client(executor, url->origin, {});
  co_return co_await client.send(std::move(request));
}

kube::Task<Result<int>> estimate(Session& session, EstimateOptions options) {
  auto ask = estimate_ask(options);
  if (!ask) co_return ask.error();
  auto header = header_of(options);
  if (!header) co_return header.error();
  if (options.verbose) {
    const std::string address = options.address.empty() ? "http://localhost:5656" : options.address;
    if (options.address.empty()) {
      session.err << "kubectl port-forward -n " << options.controller_namespace << " service/"
                  << kService << " 5656:5656\n";
    }
    session.err << curl_line(address, *ask, !header->first.empty()) << "\n";
  }
  net::Request request("POST", ask->path);
  request.headers.set("Content-Type", "application/json");
  if (!header->first.empty()) request.headers.set(header->first, header->second);
  request.body = ask->body;
  Result<net::Response> response = net::Response();
  if (options.address.empty()) {
    request.target = estimate_proxy_path(options, ask->path);
    constexpr Duration kPatience = std::chrono::minutes{1};
    response = co_await session.send(std::move(request), kPatience);
  } else {
    response = co_await ask_directly(options.address, std::move(request));
  }
  if (!response) co_return response.error().with_context("the estimator was not asked");
  auto text = estimate_text(*response, options);
  if (!text) co_return text.error();
  session.out << *text;
  co_return kDone;
}

}  // namespace

Result<EstimateAsk> estimate_ask(const EstimateOptions& options) {
  if (options.what != "pc") {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not known: pc (power consumption) is", options.what));
  }
  const std::size_t comma = options.parameters.find(',');
  const auto cpu = whole(std::string_view(options.parameters).substr(0, comma));
  const auto workloads = comma == std::string::npos
                             ? std::nullopt
                             : whole(std::string_view(options.parameters).substr(comma + 1));
  if (!cpu || !workloads) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("-p {}: must be MILLICORES,WORKLOADS such as 500,5", options.parameters));
  }
  const std::size_t slash = options.estimator.find('/');
  const std::string space = options.estimator.substr(0, slash);
  const std::string name = slash == std::string::npos ? "" : options.estimator.substr(slash + 1);
  if (space.empty() || name.empty() || name.find('/') != std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("-n {}: must be NAMESPACE/NAME of an Estimator", options.estimator));
  }
  EstimateAsk ask;
  ask.path = fmt::format("/namespaces/{}/estimators/{}/values/powerconsumption",
                         kube::percent_encode(space), kube::percent_encode(name));
  ask.body = fmt::format(R"({{"cpu_milli":{},"num_workloads":{}}})", *cpu, *workloads);
  return ask;
}

std::string estimate_proxy_path(const EstimateOptions& options, const std::string& path) {
  return fmt::format("/api/v1/namespaces/{}/services/http:{}:http/proxy{}",
                     kube::percent_encode(options.controller_namespace), kService, path);
}

std::string curl_line(const std::string& address, const EstimateAsk& ask, bool with_key) {
  std::string root = address;
  while (root.ends_with('/')) root.pop_back();
  return fmt::format("curl -X 'POST' -d '{}' -H 'Content-Type: application/json' {}'{}{}'",
                     ask.body, with_key ? "-H \"X-API-KEY: $KEY\" " : "", root, ask.path);
}

std::string go_list(const std::vector<double>& values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ' ';
    out += go_number(values[i]);
  }
  return out + "]";
}

Result<std::string> estimate_text(const net::Response& response, const EstimateOptions& options) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(response.body.data(), response.body.size());
  const bool object = !document.HasParseError() && document.IsObject();
  const auto text = [&](const char* name) {
    if (!object) return std::string();
    const auto found = document.FindMember(name);
    return found != document.MemberEnd() && found->value.IsString()
               ? std::string(found->value.GetString(), found->value.GetStringLength())
               : std::string();
  };
  if (response.status != 200) {
    if (!text("message").empty() && text("code").starts_with("Err")) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: {}", text("code"), text("message")));
    }
    const api::Status status = kube::status_of_response(
        response.status, response.headers.get("Retry-After"), response.body);
    Error error = kube::to_error(status, "the way to the estimator through the API server");
    if (error.code == ErrorCode::not_found && options.address.empty()) {
      error.message = fmt::format(
          "there is no Service {} with a port \"http\" in namespace {}: apply "
          "manifests/estimator-service.yaml, or say --controller-namespace or --address",
          kService, options.controller_namespace);
    }
    return error;
  }
  if (options.output == "json") return response.body;
  std::vector<double> values;
  const auto increases = object ? document.FindMember("watt_increases") : document.MemberEnd();
  if (!object || increases == document.MemberEnd() || !increases->value.IsArray()) {
    return fail(ErrorCode::parse, "the answer has no watt_increases");
  }
  for (const rapidjson::Value& one : increases->value.GetArray()) {
    if (!one.IsNumber())
      return fail(ErrorCode::parse, "watt_increases has something else than numbers");
    values.push_back(one.GetDouble());
  }
  return go_list(values) + "\n";
}

void add_estimate(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* verb = add_verb(app, "estimate", "Estimate the power that more workloads would cost",
                            "  kubectl kwatt estimate -p 500,5 pc\n"
                            "  kubectl kwatt estimate -p 500,5 -n team-a/default -o json pc\n"
                            "  kubectl kwatt estimate -p 500,5 -a http://localhost:5656 -v pc\n");
  verb->add_option("COMMAND", options->what, "pc: power consumption")->capture_default_str();
  verb->add_option("-p,--parameters", options->parameters,
                   "CPU of each workload in millicores, and how many of them")
      ->type_name("MILLICORES,WORKLOADS")
      ->capture_default_str();
  verb->add_option("-n,--estimator", options->estimator, "The Estimator")
      ->type_name("NAMESPACE/NAME")
      ->capture_default_str();
  verb->add_option("-a,--address", options->address,
                   "URL of the estimator, to ask it without the API server's proxy")
      ->type_name("URL");
  CLI::Option* header =
      verb->add_option("-H,--header", options->header, "A header to send, such as \"X-API-KEY: …\"")
          ->type_name("HEADER");
  verb->add_option("--api-key-file", options->api_key_file,
                   "Send the first line of this file in X-API-KEY")
      ->type_name("FILE")
      ->excludes(header);
  verb->add_option("--controller-namespace", options->controller_namespace,
                   "Namespace of the controller")
      ->capture_default_str();
  verb->add_option("-o,--output", options->output, "How to show it")
      ->check(CLI::IsMember({"list", "json"}).description(""))
      ->type_name("list|json")
      ->capture_default_str();
  verb->add_flag("-v,--verbose", options->verbose, "Show the curl line that asks the same");
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return estimate(session, *options); };
  });
}

}  // namespace kwatt::cli
