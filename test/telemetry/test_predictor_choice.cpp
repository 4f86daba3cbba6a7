#include <doctest/doctest.h>

#include "telemetry/predictor_choice.hpp"

namespace kwatt::telemetry {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

api::ObjectMeta node(const Texts& labels, const Texts& annotations = {}) {
  api::ObjectMeta meta;
  meta.name = "n1";
  for (const auto& [key, value] : labels) meta.labels.set(key, value);
  for (const auto& [key, value] : annotations) meta.annotations.set(key, value);
  return meta;
}

std::string told(const Texts& labels, const Texts& annotations = {}) {
  const auto choice = predictor_choice(node(labels, annotations));
  if (!choice) return "error: " + choice.error().message;
  if (!*choice) return "none";
  const bool tf = (*choice)->kind == PredictorChoice::Kind::tf_serving;
  return std::string(tf ? "TF " : "ML ") + (*choice)->url + " " + (*choice)->signature;
}

TEST_SUITE_BEGIN("mlserver");

TEST_CASE("choice: nodes as users of WAO-Scheduler have labelled them") {
  CHECK(told({}) == "none");
  CHECK(told({{"tensorflow/host", "10.0.0.9"}}) ==
        "TF http://10.0.0.9:8501/v1/models/konohana konohana");
  CHECK(told({{"tensorflow/host", "10.0.0.9"},
              {"tensorflow/port", "8500"},
              {"tensorflow/name", "power"},
              {"tensorflow/version", "3"},
              {"tensorflow/signature", "watts"}}) ==
        "TF http://10.0.0.9:8501/v1/models/power/versions/3 watts");
  CHECK(told({{"tensorflow/host", "tf.example.com"},
              {"tensorflow/port", "9000"},
              {"tensorflow/name", "power"}}) == "TF http://tf.example.com:9000/v1/models/power ");
}

TEST_CASE("choice: the annotation goes before the labels") {
  const Texts labels{{"tensorflow/host", "10.0.0.9"}};
  CHECK(told(labels, {{"kwatt.dev/predictor", "none"}}) == "none");
  CHECK(told(labels, {{"kwatt.dev/predictor", "mlserver+http://h:8080/v2/models/m"}}) ==
        "ML http://h:8080/v2/models/m ");
  CHECK(told({}, {{"kwatt.dev/predictor", "tfserving+https://h/v1/models/m"}}) ==
        "TF https://h/v1/models/m ");
}

TEST_CASE("choice: what cannot be read is named") {
  CHECK(told({}, {{"kwatt.dev/predictor", "http://h/v1/models/m"}})
            .starts_with("error: annotation kwatt.dev/predictor is \"http://h/v1/models/m\": "
                         "wanted is tfserving+http[s]://"));
  CHECK(told({{"tensorflow/host", "h"}, {"tensorflow/port", "85010"}}) ==
        "error: label tensorflow/port is \"85010\": not a port");
  CHECK(told({{"tensorflow/host", "h"}, {"tensorflow/version", "v1"}}) ==
        "error: label tensorflow/version is \"v1\": a version is a number");
}

TEST_CASE("choice: ranges of temperatures") {
  const auto range =
      temperature_range(node({{"ambient/min", "11.5"}, {"ambient/max", "36.5"}}), "ambient");
  REQUIRE(range.has_value());
  CHECK((*range)->lowest_celsius == 11.5);
  CHECK((*range)->highest_celsius == 36.5);
  CHECK_FALSE(temperature_range(node({}), "cpu1")->has_value());
  const auto error = [](const Texts& labels) {
    return temperature_range(node(labels), "cpu1").error().message;
  };
  CHECK(error({{"cpu1/min", "30"}}) == "labels cpu1/min and cpu1/max go together; one is missing");
  CHECK(error({{"cpu1/min", "30C"}, {"cpu1/max", "80"}}) ==
        "label cpu1/min is \"30C\": not a temperature in °C");
  CHECK(error({{"cpu1/min", "30"}, {"cpu1/max", "inf"}}) ==
        "label cpu1/max is \"inf\": not a temperature in °C");
  CHECK(error({{"cpu1/min", "80"}, {"cpu1/max", "80"}}) == "label cpu1/min is not below cpu1/max");
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::telemetry
