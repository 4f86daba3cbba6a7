#pragma once
// The bodies that power predictors are asked with and answer with. Pure: no I/O.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace kwatt::telemetry {

struct PredictionPoint;

// What a model takes, one value for each point.
enum class ModelInput { cpu_usage, logical_processors, ambient, static_pressure, cpu1, cpu2 };
// As WAO names it in MLServer models: "CPUUsage"; "" for those that only have a place.
std::string_view name_of(ModelInput input);

// The value of `input` for `point`: usage 0…1, temperatures in °C or, with their range given, as a
// fraction of it, pressure in pascals.
// Errors: invalid_argument, with what is not known of the machine.
Result<double> value_of(ModelInput input, const PredictionPoint& point);

// ---- TensorFlow Serving, REST, columnar: https://www.tensorflow.org/tfx/serving/api_rest ----

// {"signature_name":"konohana","inputs":[[0.5,0.5,0.5,0.5], …]}; no member for an empty signature.
std::string encode_tf_request(const std::vector<std::vector<double>>& rows,
                              std::string_view signature);
// {"outputs":[[150.6], …]}, also flat, also {"predictions":…}, also with one named output inside.
// Errors: parse (not such an answer, or not `count` values), out_of_range (decode_watts()).
Result<std::vector<Milliwatts>> decode_tf_answer(std::string_view json, std::size_t count);

// ---- Open Inference (KServe V2) protocol, as MLServer speaks it ----

// How a model wants to be asked.
struct V2Shape {
  bool one_tensor = false;         // all inputs are columns of one tensor
  std::string tensor;              // its name
  std::string datatype = "FP64";   // of that one; those with names have their own
  std::vector<ModelInput> inputs;  // in the model's order
  std::vector<std::string> names, datatypes;  // of the tensors, beside `inputs`
  bool operator==(const V2Shape&) const = default;
};

// From GET /v2/models/MODEL: {"name":…,"inputs":[{"name":"CPUUsage","datatype":"FP64",
// "shape":[-1,1]}, …]}. A model without a description, or with one tensor of 3 columns, is asked as
// WAO-Estimator asks: usage, ambient temperature, pressure difference.
// Errors: parse (no such description), unsupported (an input that nobody here knows).
Result<V2Shape> decode_v2_metadata(std::string_view json);

// {"inputs":[{"name":"CPUUsage","shape":[2,1],"datatype":"FP64","data":[0.25,0.5]}, …]}, with
// "parameters":{"content_type":"pd"} before it where the tensors are columns of one table.
std::string encode_v2_request(const V2Shape& shape, const std::vector<std::vector<double>>& rows);
// {"outputs":[{"name":"predict","shape":[2,1],"datatype":"FP64","data":[94.7,95.1]}]}
Result<std::vector<Milliwatts>> decode_v2_answer(std::string_view json, std::size_t count);

}  // namespace kwatt::telemetry
