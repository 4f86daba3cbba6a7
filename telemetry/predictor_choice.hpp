#pragma once
// Which served model predicts a node's power: kwatt's annotation, or the labels that users of
// WAO-Scheduler have on their nodes. Pure.
//
//   annotation kwatt.dev/predictor   tfserving+http://HOST:8501/v1/models/MODEL[/versions/N]
//                                    mlserver+http://HOST:8080/v2/models/MODEL[/versions/V]
//                                    none: whatever the labels say
//   label tensorflow/host            address of TensorFlow Serving
//   label tensorflow/port            its port; its default one for gRPC, 8500, is read as 8501,
//                                    where it speaks REST, which is also the default here
//   label tensorflow/name            the model; without the label WAO's own, konohana
//   label tensorflow/version         its version; the server's choice without it
//   label tensorflow/signature       its signature; the server's default one without it (of
//                                    WAO's own model: konohana)
//   labels ambient/min, ambient/max, cpu1/min, cpu1/max, cpu2/min, cpu2/max
//                                    the range of each temperature, °C
#include <optional>
#include <string>
#include <string_view>

#include "api/core.hpp"
#include "telemetry/predictor.hpp"

namespace kwatt::telemetry {

inline constexpr std::string_view kPredictorAnnotation = "kwatt.dev/predictor";

struct PredictorChoice {
  enum class Kind { tf_serving, mlserver };
  Kind kind = Kind::tf_serving;
  std::string url;        // http://…, as make_tf_serving() and make_mlserver() take it
  std::string signature;  // of TensorFlow Serving
  auto operator<=>(const PredictorChoice&) const = default;
};

// nullopt: none. Errors: invalid_argument, naming the annotation or label and what is wrong with
// it.
Result<std::optional<PredictorChoice>> predictor_choice(const api::ObjectMeta& node);

// The range that the labels `what`/min and `what`/max give; nullopt: neither is there.
// Errors: invalid_argument, naming the label: one without the other, no number, min ≥ max.
Result<std::optional<PredictionPoint::Range>> temperature_range(const api::ObjectMeta& node,
                                                                std::string_view what);

}  // namespace kwatt::telemetry
