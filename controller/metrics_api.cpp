#include "controller/metrics_api.hpp"

#include <boost/asio/use_awaitable.hpp>

#include "telemetry/node_metrics.hpp"

namespace kwatt::controller {
namespace {

class MetricsApiSource final : public telemetry::PollSource {
 public:
  MetricsApiSource(kube::Client& client, Duration period) : client_(client), period_(period) {}

  telemetry::Source source() const override { return telemetry::Source::metrics_api; }
  Duration period() const override { return period_; }

  net::Task<Result<telemetry::Fetched>> fetch(std::shared_ptr<const telemetry::NodeDirectory> nodes,
                                              TimePoint now) override {
    const kube::Resource resource{"metrics.k8s.io", "v1beta1", "nodes", false};
    auto body = co_await client_.get(resource, kube::Name{});
    if (!body) {
      if (body.error().code == ErrorCode::not_found) {
        co_return body.error().with_context("is metrics-server installed?");
      }
      co_return body.error();
    }
    co_return telemetry::read_node_metrics(*body, *nodes, now, period_);
  }

 private:
  kube::Client& client_;
  Duration period_;
};

}  // namespace

std::unique_ptr<telemetry::PollSource> make_metrics_api_source(kube::Client& client,
                                                               Duration period) {
  return std::make_unique<MetricsApiSource>(client, period);
}

}  // namespace kwatt::controller
