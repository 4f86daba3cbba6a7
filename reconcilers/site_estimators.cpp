#include "reconcilers/site_estimators.hpp"

#include <cmath>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"
#include "kube/path.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr std::string_view kDnsAnnotation = "external-dns.alpha.kubernetes.io/hostname";
// WAO's clients say with the largest double that workloads do not fit; nothing that does draws a
// gigawatt.
constexpr double kNeverWatts = 1e9;
constexpr std::size_t kMostKept = 10'000;
constexpr std::size_t kLargestAnswer = 1024 * 1024;

std::string estimator_path(const api::SiteEstimator& estimator) {
  return fmt::format("/namespaces/{}/estimators/{}/values/powerconsumption",
                     kube::percent_encode(estimator.namespace_name),
                     kube::percent_encode(estimator.name));
}

// As it is called in sentences.
std::string label_of(const api::SiteEstimator& estimator) {
  return fmt::format("the estimator {}/{}", estimator.namespace_name, estimator.name);
}

bool plain_host(std::string_view host) {
  return !host.empty() && host.size() <= 253 && host.front() != '.' && host.front() != '-' &&
         host.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
             std::string_view::npos;
}

}  // namespace

std::string estimator_body(const EstimatorQuestion& question) {
  return fmt::format(R"({{"cpu_milli":{},"num_workloads":{}}})", question.cpu_milli,
                     question.workloads);
}

Result<EstimatorAnswer> parse_estimator_answer(std::string_view json,
                                               const EstimatorQuestion& question) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::protocol, fmt::format("its answer {}", why), hardware::excerpt(json));
  };
  const auto document = hardware::parse_json(json);
  if (!document) return wrong("is not JSON");
  const auto* list = hardware::find(*document, {"watt_increases"});
  if (list == nullptr || !list->IsArray()) return wrong("has no watt_increases");
  if (list->Size() != static_cast<std::size_t>(question.workloads)) {
    return wrong(
        fmt::format("has {} watt_increases, asked for were {}", list->Size(), question.workloads));
  }
  const auto& last = (*list)[list->Size() - 1];
  if (!last.IsNumber() || !std::isfinite(last.GetDouble())) return wrong("is not a number");
  const double watts = last.GetDouble();
  if (watts < 0) return wrong(fmt::format("is {} W, less than nothing", watts));
  EstimatorAnswer answer;
  answer.fits = watts < kNeverWatts;
  if (answer.fits) answer.increase_milliwatts = std::llround(watts * 1000);
  return answer;
}

Result<std::string> external_dns_name(std::string_view service_json) {
  const auto document = hardware::parse_json(service_json);
  if (!document) return document.error().with_context("the Service");
  const auto* annotations = hardware::find(*document, {"metadata", "annotations"});
  if (annotations != nullptr && annotations->IsObject()) {
    const auto found =
        annotations->FindMember(rapidjson::StringRef(kDnsAnnotation.data(), kDnsAnnotation.size()));
    if (found != annotations->MemberEnd() && found->value.IsString()) {
      // Several names are separated by commas; they lead to the same place.
      const std::string all(found->value.GetString(), found->value.GetStringLength());
      std::string first = all.substr(0, all.find(','));
      while (!first.empty() && first.back() == ' ') first.pop_back();
      if (!plain_host(first)) {
        return fail(ErrorCode::parse,
                    fmt::format("the Service's annotation {} is no host name", kDnsAnnotation),
                    hardware::excerpt(first));
      }
      return first;
    }
  }
  return fail(ErrorCode::not_found,
              fmt::format("the Service has no annotation {}", kDnsAnnotation));
}

Result<void> check_service_export(std::string_view json) {
  const auto document = hardware::parse_json(json);
  if (!document) return document.error().with_context("the ServiceExport");
  const auto* conditions = hardware::find(*document, {"status", "conditions"});
  if (conditions == nullptr || !conditions->IsArray()) return {};
  for (const auto& condition : conditions->GetArray()) {
    const auto type = hardware::text_at(condition, {"type"});
    const auto status = hardware::text_at(condition, {"status"});
    if ((type == "Valid" && status == "False") || (type == "Conflict" && status == "True")) {
      return fail(
          ErrorCode::conflict,
          fmt::format("the ServiceExport is {}", type == "Valid" ? "not valid" : "in conflict"),
          hardware::excerpt(hardware::text_at(condition, {"message"})));
    }
  }
  return {};
}

SiteEstimators::SiteEstimators(boost::asio::any_io_executor executor, SiteClusters& clusters,
                               SiteEstimatorOptions options, const Clock& clock)
    : executor_(std::move(executor)),
      clusters_(clusters),
      options_(std::move(options)),
      clock_(clock) {}
SiteEstimators::~SiteEstimators() = default;

// Where the Service is reached from here, by the name that its own cluster publishes.
kube::Task<Result<std::string>> SiteEstimators::url_of(std::shared_ptr<const api::Site> site) {
  const api::EstimatorService& service = site->spec.estimator.service;
  auto cluster = co_await clusters_.of(site);
  if (!cluster) co_return cluster.error();
  const std::string space = kube::percent_encode(service.namespace_name);
  const std::string name = kube::percent_encode(service.name);
  const bool by_export = service.via == api::ServiceAccess::ServiceExport;
  const std::string path =
      by_export
          ? fmt::format("/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{}/serviceexports/{}",
                        space, name)
          : fmt::format("/api/v1/namespaces/{}/services/{}", space, name);
  const std::string what = fmt::format("{} {}/{}", by_export ? "ServiceExport" : "Service",
                                       service.namespace_name, service.name);
  net::Request request("GET", cluster->prefix + path);
  request.headers.set("Accept", "application/json");
  auto response = co_await cluster->send(std::move(request), options_.timeout);
  if (!response) co_return response.error().with_context(what);
  if (response->status != 200) {
    co_return fail(ErrorCode::not_found,
                   fmt::format("{}: its cluster answers HTTP {}", what, response->status),
                   hardware::excerpt(response->body));
  }
  std::string host = fmt::format("{}.{}.svc.{}", service.name, service.namespace_name,
                                 options_.cluster_set_domain);
  if (by_export) {
    if (auto good = check_service_export(response->body); !good) co_return good.error();
  } else {
    auto published = external_dns_name(response->body);
    if (!published) co_return published.error();
    host = std::move(*published);
  }
  co_return fmt::format("http://{}:{}", host, service.port);
}

kube::Task<Result<net::Response>> SiteEstimators::post(std::string root, net::Request request) {
  auto url = net::parse_url(root);
  if (!url) co_return url.error();
  const net::Origin& origin = url->origin;
  if (!options_.allowed.may(origin.host, origin.tls)) {
    co_return fail(ErrorCode::forbidden,
                   fmt::format("{} is not allowed: start kwatt-controller with --site-allow {}{}",
                               origin.host, origin.tls ? "" : "http://", origin.host));
  }
  std::string prefix = url->path;
  while (prefix.ends_with('/')) prefix.pop_back();
  request.target = prefix + request.target;
  auto& client =
      clients_[fmt::format("{}{}", origin.tls ? "https://" : "http://", origin.authority())];
  if (client == nullptr) {
    client = std::make_shared<net::Client>(executor_, origin, net::Client::TlsSource{},
                                           options_.allowed.filter(origin.host, origin.tls));
  }
  const auto kept = client;  // clients_ may change meanwhile
  net::Limits limits;
  limits.connect = limits.header = limits.total = options_.timeout;
  limits.body_bytes = kLargestAnswer;
  co_return co_await kept->send(std::move(request), limits);
}

kube::Task<Result<net::Response>> SiteEstimators::send(std::shared_ptr<const api::Site> site,
                                                       std::string body) {
  const api::SiteEstimator& estimator = site->spec.estimator;
  net::Request request("POST", estimator_path(estimator));
  request.headers.set("Content-Type", "application/json");
  request.headers.set("Accept", "application/json");
  request.body = std::move(body);
  const bool by_proxy = estimator.url.empty() && estimator.service.via == api::ServiceAccess::Proxy;
  std::string url = estimator.url;
  if (url.empty() && !by_proxy) {
    auto found = co_await url_of(site);
    if (!found) co_return found.error();
    url = std::move(*found);
  }
  if (!estimator.api_key_secret_ref.name.empty()) {
    if (url.starts_with("http://")) {
      co_return fail(ErrorCode::forbidden,
                     "an API key is not sent over plain http: use https or via: Proxy");
    }
    auto key = co_await clusters_.secret(estimator.api_key_secret_ref.name, "apiKey");
    if (!key) co_return key.error();
    while (!key->empty() && static_cast<unsigned char>(key->back()) <= ' ') key->pop_back();
    request.headers.set("X-API-KEY", *key);
  }
  if (!by_proxy) co_return co_await post(std::move(url), std::move(request));
  auto cluster = co_await clusters_.of(site);
  if (!cluster) co_return cluster.error();
  request.target = fmt::format("{}/api/v1/namespaces/{}/services/{}:{}/proxy{}", cluster->prefix,
                               kube::percent_encode(estimator.service.namespace_name),
                               kube::percent_encode(estimator.service.name), estimator.service.port,
                               request.target);
  co_return co_await cluster->send(std::move(request), options_.timeout);
}

kube::Task<placement::sites::EnergyAnswer> SiteEstimators::ask(
    std::shared_ptr<const api::Site> site, EstimatorQuestion question) {
  placement::sites::EnergyAnswer answer;
  if (!site->spec.estimator.given()) {
    answer.source = "the site has no estimator";
    co_return answer;
  }
  const Key key{site->meta.name, site->meta.generation, question};
  if (const auto kept = kept_.find(key);
      kept != kept_.end() && clock_.monotonic() < kept->second.until) {
    co_return kept->second.answer;
  }
  const std::string label = label_of(site->spec.estimator);
  answer.source = label;
  auto response = co_await send(site, estimator_body(question));
  bool failed = true;
  if (!response) {
    answer.source = response.error().with_context(label).text();
  } else if (response->status != 200) {
    answer.source = fmt::format("{} answers HTTP {}: {}", label, response->status,
                                hardware::excerpt(response->body));
  } else if (auto parsed = parse_estimator_answer(response->body, question); !parsed) {
    answer.source = parsed.error().with_context(label).text();
  } else {
    failed = false;
    answer.fits = parsed->fits;
    if (parsed->fits) answer.increase_milliwatts = parsed->increase_milliwatts;
  }
  if (kept_.size() >= kMostKept) kept_.clear();
  kept_.insert_or_assign(
      key, Kept{clock_.monotonic() + (failed ? options_.keep_failure : options_.keep), answer});
  co_return answer;
}

}  // namespace kwatt::reconcilers
