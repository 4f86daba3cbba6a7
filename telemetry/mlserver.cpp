// MLServer and others that speak the Open Inference (KServe V2) protocol.
#include <optional>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "telemetry/predictor_http.hpp"
#include "telemetry/predictor_wire.hpp"

namespace kwatt::telemetry {
namespace {

constexpr std::string_view kRoot = "/v2/models/";

class MlServer final : public Predictor {
 public:
  MlServer(HttpModel http, const ModelPlace& place)
      : http_(std::move(http)), target_(place.path(kRoot)) {}

  const std::string& name() const override { return http_.name(); }

  net::Task<Result<std::vector<Milliwatts>>> predict(std::vector<PredictionPoint> points) override {
    std::vector<Milliwatts> none;
    if (points.empty()) co_return none;
    if (!shape_) {
      // In another order than the model's own the inputs are taken, and answered with nonsense.
      auto metadata = co_await http_.ask("GET", target_, "");
      if (!metadata) co_return metadata.error();
      auto shape = decode_v2_metadata(*metadata);
      if (!shape) co_return shape.error().with_context(name());
      shape_ = std::move(*shape);
    }
    const V2Shape shape = *shape_;  // another batch may drop it meanwhile
    std::vector<std::vector<double>> rows;
    rows.reserve(points.size());
    for (const PredictionPoint& point : points) {
      std::vector<double>& row = rows.emplace_back();
      for (const ModelInput input : shape.inputs) {
        const auto value = value_of(input, point);
        if (!value) co_return value.error().with_context(name());
        row.push_back(*value);
      }
    }
    auto body = co_await http_.ask("POST", target_ + "/infer", encode_v2_request(shape, rows));
    if (!body) {
      shape_.reset();  // perhaps another model is served there now
      co_return body.error();
    }
    auto watts = decode_v2_answer(*body, points.size());
    if (!watts) {
      shape_.reset();
      co_return watts.error().with_context(name());
    }
    co_return watts;
  }

 private:
  HttpModel http_;
  std::string target_;
  std::optional<V2Shape> shape_;
};

}  // namespace

Result<std::unique_ptr<Predictor>> make_mlserver(boost::asio::any_io_executor executor,
                                                 const std::string& endpoint,
                                                 PredictorSettings settings) {
  auto place = parse_model_url(endpoint, kRoot, "/infer");
  if (!place) return place.error();
  std::string name = fmt::format("MLServer {}://{}{}", place->origin.tls ? "https" : "http",
                                 place->origin.authority(), place->path(kRoot));
  auto http = HttpModel::make(std::move(executor), std::move(name), *place, std::move(settings));
  if (!http) return http.error();
  return std::make_unique<MlServer>(std::move(*http), *place);
}

}  // namespace kwatt::telemetry
