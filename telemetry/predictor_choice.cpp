#include "telemetry/predictor_choice.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace kwatt::telemetry {
namespace {

constexpr std::string_view kHost = "tensorflow/host", kPort = "tensorflow/port",
                           kName = "tensorflow/name", kVersion = "tensorflow/version",
                           kSignature = "tensorflow/signature";
constexpr std::string_view kWaoModel = "konohana";
constexpr int kGrpcPort = 8500, kRestPort = 8501;

Error wrong(std::string_view what, std::string_view value, std::string_view why) {
  return fail(ErrorCode::invalid_argument, fmt::format("{} is \"{}\": {}", what, value, why));
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::optional<PredictorChoice>> by_annotation(std::string_view text) {
  if (text == "none") return std::optional<PredictorChoice>();
  PredictorChoice choice;
  for (const auto& [prefix, kind] : {std::pair{"tfserving+", PredictorChoice::Kind::tf_serving},
                                     {"mlserver+", PredictorChoice::Kind::mlserver}}) {
    if (!text.starts_with(prefix)) continue;
    choice.kind = kind;
    choice.url = text.substr(std::string_view(prefix).size());
    if (choice.url.starts_with("http://") || choice.url.starts_with("https://")) {
      return std::optional(std::move(choice));
    }
  }
  return wrong(fmt::format("annotation {}", kPredictorAnnotation), text,
               "wanted is tfserving+http[s]://HOST:PORT/v1/models/MODEL, "
               "mlserver+http[s]://HOST:PORT/v2/models/MODEL, or none");
}

}  // namespace

Result<std::optional<PredictorChoice>> predictor_choice(const api::ObjectMeta& node) {
  const std::string_view annotation = node.annotations.get(kPredictorAnnotation);
  if (!annotation.empty()) return by_annotation(annotation);
  const std::string_view host = node.labels.get(kHost);
  if (host.empty()) return std::optional<PredictorChoice>();
  int port = kRestPort;
  if (const std::string_view text = node.labels.get(kPort); !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65'535) {
      return wrong(fmt::format("label {}", kPort), text, "not a port");
    }
    if (port == kGrpcPort) port = kRestPort;
  }
  const std::string_view name = node.labels.get(kName), version = node.labels.get(kVersion),
                         signature = node.labels.get(kSignature);
  if (!version.empty() && !is_digits(version)) {
    return wrong(fmt::format("label {}", kVersion), version, "a version is a number");
  }
  PredictorChoice choice;
  choice.url =
      fmt::format("http://{}:{}/v1/models/{}", host, port, name.empty() ? kWaoModel : name);
  if (!version.empty()) choice.url += fmt::format("/versions/{}", version);
  choice.signature = signature.empty() && name.empty() ? kWaoModel : signature;
  return std::optional(std::move(choice));
}

Result<std::optional<PredictionPoint::Range>> temperature_range(const api::ObjectMeta& node,
                                                                std::string_view what) {
  PredictionPoint::Range range;
  int there = 0;
  for (const auto& [end, value] :
       {std::pair{"min", &range.lowest_celsius}, {"max", &range.highest_celsius}}) {
    const std::string label = fmt::format("{}/{}", what, end);
    if (!node.labels.contains(label)) continue;
    const std::string_view text = node.labels.get(label);
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (error != std::errc{} || last != text.data() + text.size() || !std::isfinite(*value)) {
      return wrong("label " + label, text, "not a temperature in °C");
    }
    ++there;
  }
  if (there == 0) return std::optional<PredictionPoint::Range>();
  if (there == 1) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("labels {0}/min and {0}/max go together; one is missing", what));
  }
  if (range.lowest_celsius >= range.highest_celsius) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("label {0}/min is not below {0}/max", what));
  }
  return std::optional(range);
}

}  // namespace kwatt::telemetry
