// TensorFlow Serving over its REST API.
#include <array>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "telemetry/predictor_http.hpp"
#include "telemetry/predictor_wire.hpp"

namespace kwatt::telemetry {
namespace {

constexpr std::string_view kRoot = "/v1/models/";
// WAO-Scheduler's order.
constexpr std::array kInputs{ModelInput::cpu_usage, ModelInput::ambient, ModelInput::cpu1,
                             ModelInput::cpu2};

class TfServing final : public Predictor {
 public:
  TfServing(HttpModel http, const ModelPlace& place, std::string signature)
      : http_(std::move(http)),
        target_(place.path(kRoot) + ":predict"),
        signature_(std::move(signature)) {}

  const std::string& name() const override { return http_.name(); }

  net::Task<Result<std::vector<Milliwatts>>> predict(std::vector<PredictionPoint> points) override {
    std::vector<Milliwatts> none;
    if (points.empty()) co_return none;
    std::vector<std::vector<double>> rows;
    rows.reserve(points.size());
    for (const PredictionPoint& point : points) {
      std::vector<double>& row = rows.emplace_back();
      for (const ModelInput input : kInputs) {
        const auto value = value_of(input, point);
        if (!value) co_return value.error().with_context(name());
        row.push_back(*value);
      }
    }
    auto body = co_await http_.ask("POST", target_, encode_tf_request(rows, signature_));
    if (!body) co_return body.error();
    auto watts = decode_tf_answer(*body, points.size());
    if (!watts) co_return watts.error().with_context(name());
    co_return watts;
  }

 private:
  HttpModel http_;
  std::string target_, signature_;
};

}  // namespace

Result<std::unique_ptr<Predictor>> make_tf_serving(boost::asio::any_io_executor executor,
                                                   const std::string& endpoint,
                                                   std::string signature,
                                                   PredictorSettings settings) {
  auto place = parse_model_url(endpoint, kRoot, ":predict");
  if (!place) return place.error();
  std::string name = fmt::format("TFServing {}://{}{}", place->origin.tls ? "https" : "http",
                                 place->origin.authority(), place->path(kRoot));
  if (!signature.empty()) name += fmt::format(" signature {}", signature);
  auto http = HttpModel::make(std::move(executor), std::move(name), *place, std::move(settings));
  if (!http) return http.error();
  return std::make_unique<TfServing>(std::move(*http), *place, std::move(signature));
}

}  // namespace kwatt::telemetry
