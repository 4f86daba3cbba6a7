#include <doctest/doctest.h>

#include "telemetry/predictor.hpp"
#include "telemetry/predictor_wire.hpp"

namespace kwatt::telemetry {
namespace {

PredictionPoint point(std::int64_t used, std::int64_t extra = 0) {
  PredictionPoint out;
  out.used = Millicores{used};
  out.extra = Millicores{extra};
  out.logical_processors = 4;
  out.ambient_celsius = 22;
  out.cpu1_celsius = 55;
  out.cpu2_celsius = 60;
  out.static_pressure_pascal = 0.25;
  out.ambient_range = {12, 32};
  out.cpu1_range = {30, 80};
  out.cpu2_range = {40, 80};
  return out;
}

// The error's code and message, or the watts: "150607 151000".
std::string told(const Result<std::vector<Milliwatts>>& answer) {
  if (!answer) return std::string(to_string(answer.error().code)) + ": " + answer.error().message;
  std::string out;
  for (const Milliwatts watts : *answer) out += std::to_string(watts.count()) + " ";
  return out;
}

TEST_SUITE_BEGIN("mlserver");

TEST_CASE("inputs: WAO's units") {
  const PredictionPoint p = point(1000, 500);
  CHECK(*value_of(ModelInput::cpu_usage, p, Scale::degrees) == doctest::Approx(0.375));
  CHECK(*value_of(ModelInput::logical_processors, p, Scale::degrees) == 4);
  CHECK(*value_of(ModelInput::ambient, p, Scale::degrees) == 22);
  CHECK(*value_of(ModelInput::ambient, p, Scale::fraction) == doctest::Approx(0.5));
  CHECK(*value_of(ModelInput::cpu1, p, Scale::fraction) == doctest::Approx(0.5));
  CHECK(*value_of(ModelInput::static_pressure, p, Scale::fraction) == 0.25);
}

TEST_CASE("inputs: what is not known is named") {
  PredictionPoint p = point(0);
  p.cpu2_range.reset();
  CHECK(lacking({ModelInput::cpu_usage, ModelInput::cpu2}, p, Scale::fraction) ==
        "the range of the cpu2 temperature is not known: the node needs labels cpu2/min and "
        "cpu2/max");
  CHECK(lacking({ModelInput::cpu2}, p, Scale::degrees).empty());
  p.ambient_celsius.reset();
  CHECK(lacking({ModelInput::ambient}, p, Scale::degrees) ==
        "the ambient temperature is not known");
  p.static_pressure_pascal = std::nan("");
  CHECK(lacking({ModelInput::static_pressure}, p, Scale::degrees) ==
        "the static pressure difference is not known");
  p.logical_processors = 0;
  CHECK(lacking({ModelInput::cpu_usage}, p, Scale::degrees) ==
        "the number of logical processors is not known");
  const auto rows = rows_of({ModelInput::ambient}, {point(0), p}, Scale::degrees);
  REQUIRE_FALSE(rows.has_value());
  CHECK(rows.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("TensorFlow Serving: the request is the one of WAO's own client") {
  CHECK(encode_tf_request({{0.5, 0.5, 0.5, 0.5}}, "konohana") ==
        R"({"signature_name":"konohana","inputs":[[0.5,0.5,0.5,0.5]]})");
  CHECK(encode_tf_request({{0.25, 1.0}, {0.5, 0.0}}, "") == R"({"inputs":[[0.25,1.0],[0.5,0.0]]})");
}

TEST_CASE("TensorFlow Serving: answers") {
  struct Case {
    const char* json;
    const char* want;
  };
  const Case cases[] = {
      {R"({"outputs": [[150.607254], [151]]})", "150607 151000 "},
      {R"({"outputs": [150.5, 0]})", "150500 0 "},
      {R"({"predictions": [[1.5], [2.5]]})", "1500 2500 "},
      {R"({"outputs": {"outputs": [[1.5], [2.5]]}})", "1500 2500 "},
      {R"({"predictions": [{"watts": [1.5]}, {"watts": 2.5}]})", "1500 2500 "},
      {R"({"outputs": [[150.6]]})", "parse: outputs has 1 values for 2 points"},
      {R"({"outputs": [[NaN], [1]]})", "out_of_range: outputs[0] is nan"},
      {R"({"outputs": [[1], [Infinity]]})", "out_of_range: outputs[1] is inf"},
      {R"({"outputs": [[1], [-3.5]]})",
       "out_of_range: outputs[1] is -3.5 W, which no machine draws"},
      {R"({"outputs": [[1], [1e9]]})",
       "out_of_range: outputs[1] is 1000000000 W, which no machine draws"},
      {R"({"outputs": [[1, 2], [3, 4]]})", "parse: outputs[0] is not a number"},
      {R"({"outputs": [null, "x"]})", "parse: outputs[0] is not a number"},
      {R"({"outputs": {"a": [1, 2], "b": [1, 2]}})", "parse: outputs has 2 members; one is wanted"},
      {R"({"error": "no"})", "parse: the answer has neither \"outputs\" nor \"predictions\""},
      {R"([1, 2])", "parse: the answer is not an object"},
      {"Internal Server Error", "parse: the answer is not JSON (at byte 1)"},
      {"", "parse: the answer is not JSON (at byte 0)"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    const std::string got = told(decode_tf_answer(c.json, 2));
    if (std::string_view(c.want).starts_with("parse: the answer is not JSON")) {
      CHECK(got.starts_with("parse: the answer is not JSON"));
    } else {
      CHECK(got == c.want);
    }
  }
}

TEST_CASE("TensorFlow Serving: a deeply nested answer is no danger") {
  std::string deep = R"({"outputs":)" + std::string(200'000, '[');
  CHECK(told(decode_tf_answer(deep, 1)).starts_with("parse:"));
  deep += std::string(200'000, ']') + "}";
  CHECK(told(decode_tf_answer(deep, 1)).starts_with("parse:"));
}

TEST_CASE("KServe V2: tensors are sent in the order of the model's metadata") {
  const auto shape = decode_v2_metadata(R"({"name":"power","versions":[],"platform":"","inputs":[
      {"name":"AmbientTemp","datatype":"FP64","shape":[-1,1]},
      {"name":"LogicalProcessors","datatype":"INT64","shape":[-1,1]},
      {"name":"CPUUsage","datatype":"FP32","shape":[-1,1]}],"outputs":[]})");
  REQUIRE(shape.has_value());
  const auto rows = rows_of(shape->inputs, {point(1000), point(1000, 1000)}, Scale::degrees);
  REQUIRE(rows.has_value());
  CHECK(encode_v2_request(*shape, *rows) ==
        R"({"parameters":{"content_type":"pd"},"inputs":[)"
        R"({"name":"AmbientTemp","shape":[2,1],"datatype":"FP64","data":[22.0,22.0]},)"
        R"({"name":"LogicalProcessors","shape":[2,1],"datatype":"INT64","data":[4,4]},)"
        R"({"name":"CPUUsage","shape":[2,1],"datatype":"FP32","data":[0.25,0.5]}]})");
}

TEST_CASE("KServe V2: a model that describes no inputs is asked as WAO-Estimator asks") {
  for (const char* metadata :
       {R"({"name":"model1"})", R"({"name":"model1","inputs":[]})",
        R"({"name":"model1","inputs":null})",
        R"({"name":"m","inputs":[{"name":"predict-prob","datatype":"FP32","shape":[-1,3]}]})"}) {
    CAPTURE(metadata);
    const auto shape = decode_v2_metadata(metadata);
    REQUIRE(shape.has_value());
    PredictionPoint p = point(2000);
    p.static_pressure_pascal = 0.5;
    const auto rows = rows_of(shape->inputs, {p}, Scale::degrees);
    CHECK(encode_v2_request(*shape, *rows) ==
          R"({"inputs":[{"name":"predict-prob","shape":[1,3],"datatype":"FP32",)"
          R"("data":[[0.5,22.0,0.5]]}]})");
  }
}

TEST_CASE("KServe V2: a model that wants something else is named") {
  const auto shape = decode_v2_metadata(
      R"({"name":"m","inputs":[{"name":"CPUUsage","datatype":"FP64","shape":[-1,1]},
          {"name":"FanSpeed","datatype":"FP64","shape":[-1,1]}]})");
  REQUIRE_FALSE(shape.has_value());
  CHECK(shape.error().code == ErrorCode::unsupported);
  CHECK(shape.error().message.starts_with("metadata: input 1 is \"FanSpeed\" of type \"FP64\""));
  CHECK(decode_v2_metadata(R"({"name":"m","inputs":[{"name":"CPUUsage","datatype":"BYTES"}]})")
            .error()
            .code == ErrorCode::unsupported);
  for (const char* other : {"<html>", "{}", "[]", R"({"name":"m","inputs":7})"}) {
    CAPTURE(other);
    CHECK(decode_v2_metadata(other).error().code == ErrorCode::parse);
  }
}

TEST_CASE("KServe V2: answers") {
  struct Case {
    const char* json;
    const char* want;
  };
  const Case cases[] = {
      {R"({"model_name":"m","outputs":[{"name":"predict","shape":[2,1],"datatype":"FP64",)"
       R"("data":[94.76267448501928, 15]}]})",
       "94763 15000 "},
      {R"({"outputs":[{"data":[[94.5],[95]]}]})", "94500 95000 "},
      {R"({"outputs":[{"data":[94.5]}]})", "parse: outputs[0].data has 1 values for 2 points"},
      {R"({"outputs":[{"data":[94.5,NaN]}]})", "out_of_range: outputs[0].data[1] is nan"},
      {R"({"outputs":[{"data":[94.5,-1]}]})",
       "out_of_range: outputs[0].data[1] is -1 W, which no machine draws"},
      {R"({"outputs":[{"name":"predict"}]})", "parse: outputs[0] has no \"data\""},
      {R"({"outputs":[]})", "parse: the answer has no \"outputs\""},
      {R"({"outputs":[{"data":[1,2]},{"data":[1,2]}]})",
       "unsupported: the model has 2 outputs; one, the watts, is wanted"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    CHECK(told(decode_v2_answer(c.json, 2)) == c.want);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::telemetry
