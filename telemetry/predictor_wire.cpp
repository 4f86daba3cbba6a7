#include "telemetry/predictor_wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "telemetry/predictor.hpp"

namespace kwatt::telemetry {
namespace {

using rapidjson::Value;

// Python writes NaN and Infinity into its JSON; they are read so that they can be refused by name.
constexpr unsigned kParse = rapidjson::kParseNanAndInfFlag | rapidjson::kParseIterativeFlag;
constexpr double kMostWatts = 100'000;
constexpr std::size_t kMostInputs = 64;

// JSON has no NaN; nothing that is one gets here, for value_of() refuses it.
using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void put(Writer& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}
void put_row(Writer& writer, const std::vector<double>& row) {
  writer.StartArray();
  for (const double value : row) writer.Double(value);
  writer.EndArray();
}
std::string taken(const rapidjson::StringBuffer& buffer) {
  return {buffer.GetString(), buffer.GetSize()};
}

Result<rapidjson::Document> parse(std::string_view json) {
  rapidjson::Document document;
  document.Parse<kParse>(json.data(), json.size());
  if (document.HasParseError()) {
    return fail(ErrorCode::parse, fmt::format("the answer is not JSON (at byte {})",
                                              document.GetErrorOffset()));
  }
  if (!document.IsObject()) return fail(ErrorCode::parse, "the answer is not an object");
  return document;
}

const Value* member(const Value& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}
std::string_view text_of(const Value* value) {
  if (value == nullptr || !value->IsString()) return {};
  return {value->GetString(), value->GetStringLength()};
}

// A number, or one wrapped in lists of one or in an object with one member.
const Value* unwrapped(const Value& value) {
  const Value* at = &value;
  for (int depth = 0; depth < 4; ++depth) {
    if (at->IsArray() && at->Size() == 1) {
      at = &(*at)[0];
    } else if (at->IsObject() && at->MemberCount() == 1) {
      at = &at->MemberBegin()->value;
    } else {
      break;
    }
  }
  return at->IsNumber() ? at : nullptr;
}

Result<std::vector<Milliwatts>> decode_watts(const Value& list, std::size_t count,
                                             std::string_view where) {
  if (!list.IsArray()) return fail(ErrorCode::parse, fmt::format("{} is not a list", where));
  if (list.Size() != count) {
    return fail(ErrorCode::parse,
                fmt::format("{} has {} values for {} points", where, list.Size(), count));
  }
  std::vector<Milliwatts> out;
  out.reserve(count);
  for (rapidjson::SizeType i = 0; i < list.Size(); ++i) {
    const Value* number = unwrapped(list[i]);
    if (number == nullptr) {
      return fail(ErrorCode::parse, fmt::format("{}[{}] is not a number", where, i));
    }
    const double watts = number->GetDouble();
    if (!std::isfinite(watts)) {
      return fail(ErrorCode::out_of_range, fmt::format("{}[{}] is {}", where, i, watts));
    }
    if (watts < 0 || watts > kMostWatts) {
      return fail(ErrorCode::out_of_range,
                  fmt::format("{}[{}] is {} W, which no machine draws", where, i, watts));
    }
    out.emplace_back(std::llround(watts * 1000));
  }
  return out;
}

Result<double> temperature(const std::optional<double>& celsius,
                           const std::optional<PredictionPoint::Range>& range,
                           std::string_view what) {
  if (!celsius || !std::isfinite(*celsius)) {
    return fail(ErrorCode::invalid_argument, fmt::format("the {} temperature is not known", what));
  }
  if (!range) return *celsius;
  const double span = range->highest_celsius - range->lowest_celsius;
  if (!(span > 0)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the range of the {} temperature is empty", what));
  }
  return (*celsius - range->lowest_celsius) / span;
}

struct NamedInput {
  std::string_view name;
  ModelInput input;
};
constexpr std::array<NamedInput, 6> kNamed{{
    {"CPUUsage", ModelInput::cpu_usage},
    {"LogicalProcessors", ModelInput::logical_processors},
    {"AmbientTemp", ModelInput::ambient},
    {"StaticPressureDiff", ModelInput::static_pressure},
    {"CPU1Temp", ModelInput::cpu1},
    {"CPU2Temp", ModelInput::cpu2},
}};

// What WAO-Estimator sends to every model, and under which name.
V2Shape wao_tensor(std::string_view name, std::string_view datatype) {
  V2Shape shape;
  shape.one_tensor = true;
  shape.tensor = name;
  shape.datatype = datatype;
  shape.inputs = {ModelInput::cpu_usage, ModelInput::ambient, ModelInput::static_pressure};
  return shape;
}

bool is_float(std::string_view datatype) {
  return datatype == "FP64" || datatype == "FP32" || datatype == "FP16";
}
bool is_number(std::string_view datatype) {
  return is_float(datatype) || datatype.starts_with("INT") || datatype.starts_with("UINT");
}

// The columns of a [-1, 3]; 0: something else.
std::int64_t columns_of(const Value& input) {
  const Value* shape = member(input, "shape");
  if (shape == nullptr || !shape->IsArray() || shape->Size() != 2) return 0;
  const Value& last = (*shape)[1];
  return last.IsInt64() ? last.GetInt64() : 0;
}

}  // namespace

std::string_view name_of(ModelInput input) {
  for (const NamedInput& named : kNamed) {
    if (named.input == input) return named.name;
  }
  return {};
}

Result<double> value_of(ModelInput input, const PredictionPoint& point) {
  if (point.logical_processors <= 0) {
    return fail(ErrorCode::invalid_argument, "the number of logical processors is not known");
  }
  switch (input) {
    case ModelInput::cpu_usage:
      return point.cpu_usage();
    case ModelInput::logical_processors:
      return static_cast<double>(point.logical_processors);
    case ModelInput::ambient:
      return temperature(point.ambient_celsius, point.ambient_range, "ambient");
    case ModelInput::cpu1:
      return temperature(point.cpu1_celsius, point.cpu1_range, "CPU1");
    case ModelInput::cpu2:
      return temperature(point.cpu2_celsius, point.cpu2_range, "CPU2");
    case ModelInput::static_pressure:
      if (!point.static_pressure_pascal || !std::isfinite(*point.static_pressure_pascal)) {
        return fail(ErrorCode::invalid_argument, "the static pressure difference is not known");
      }
      return *point.static_pressure_pascal;
  }
  return fail(ErrorCode::internal, "no such input");
}

std::string encode_tf_request(const std::vector<std::vector<double>>& rows,
                              std::string_view signature) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  if (!signature.empty()) {
    writer.Key("signature_name");
    put(writer, signature);
  }
  writer.Key("inputs");
  writer.StartArray();
  for (const auto& row : rows) put_row(writer, row);
  writer.EndArray();
  writer.EndObject();
  return taken(buffer);
}

Result<std::vector<Milliwatts>> decode_tf_answer(std::string_view json, std::size_t count) {
  auto document = parse(json);
  if (!document) return document.error();
  for (const char* name : {"outputs", "predictions"}) {
    const Value* outputs = member(*document, name);
    if (outputs == nullptr) continue;
    std::string where = name;
    // Several outputs have names, even if there is only one of them.
    if (outputs->IsObject()) {
      if (outputs->MemberCount() != 1) {
        return fail(ErrorCode::parse,
                    fmt::format("{} has {} members; one is wanted", name, outputs->MemberCount()));
      }
      where += fmt::format(".{}", text_of(&outputs->MemberBegin()->name));
      outputs = &outputs->MemberBegin()->value;
    }
    return decode_watts(*outputs, count, where);
  }
  return fail(ErrorCode::parse, "the answer has neither \"outputs\" nor \"predictions\"");
}

Result<V2Shape> decode_v2_metadata(std::string_view json) {
  auto document = parse(json);
  if (!document) return document.error().with_context("metadata");
  const Value* inputs = member(*document, "inputs");
  if (member(*document, "name") == nullptr) {
    return fail(ErrorCode::parse, "metadata: the answer describes no model");
  }
  if (inputs == nullptr || inputs->IsNull() || (inputs->IsArray() && inputs->Empty())) {
    return wao_tensor("predict-prob", "FP32");
  }
  if (!inputs->IsArray() || inputs->Size() > kMostInputs) {
    return fail(ErrorCode::parse, "metadata: inputs is not a list of a model's inputs");
  }
  if (inputs->Size() == 1) {
    const Value& only = (*inputs)[0];
    const auto name = text_of(member(only, "name")), datatype = text_of(member(only, "datatype"));
    const bool known = std::any_of(kNamed.begin(), kNamed.end(),
                                   [&](const NamedInput& named) { return named.name == name; });
    if (!known && columns_of(only) == 3 && is_float(datatype)) return wao_tensor(name, datatype);
  }
  V2Shape shape;
  for (rapidjson::SizeType i = 0; i < inputs->Size(); ++i) {
    const Value& input = (*inputs)[i];
    const auto name = text_of(member(input, "name")), datatype = text_of(member(input, "datatype"));
    const auto* named = std::find_if(kNamed.begin(), kNamed.end(),
                                     [&](const NamedInput& one) { return one.name == name; });
    if (named == kNamed.end() || !is_number(datatype)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("metadata: input {} is \"{}\" of type \"{}\"; known are the numbers "
                              "CPUUsage, LogicalProcessors, AmbientTemp, StaticPressureDiff, "
                              "CPU1Temp and CPU2Temp",
                              i, name, datatype));
    }
    shape.inputs.push_back(named->input);
    shape.names.emplace_back(name);
    shape.datatypes.emplace_back(datatype);
  }
  return shape;
}

std::string encode_v2_request(const V2Shape& shape, const std::vector<std::vector<double>>& rows) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  const auto begin_tensor = [&](std::string_view name, std::size_t columns,
                                std::string_view datatype) {
    writer.StartObject();
    writer.Key("name");
    put(writer, name);
    writer.Key("shape");
    writer.StartArray();
    writer.Uint64(rows.size());
    writer.Uint64(columns);
    writer.EndArray();
    writer.Key("datatype");
    put(writer, datatype);
    writer.Key("data");
    writer.StartArray();
  };
  const auto end_tensor = [&] {
    writer.EndArray();
    writer.EndObject();
  };
  writer.StartObject();
  if (!shape.one_tensor) {
    // One table whose columns are the tensors, in the order in which they are sent.
    writer.Key("parameters");
    writer.StartObject();
    writer.Key("content_type");
    writer.String("pd");
    writer.EndObject();
  }
  writer.Key("inputs");
  writer.StartArray();
  if (shape.one_tensor) {
    begin_tensor(shape.tensor, shape.inputs.size(), shape.datatype);
    for (const auto& row : rows) put_row(writer, row);
    end_tensor();
  } else {
    for (std::size_t i = 0; i < shape.inputs.size(); ++i) {
      begin_tensor(shape.names[i], 1, shape.datatypes[i]);
      for (const auto& row : rows) {
        if (is_float(shape.datatypes[i])) {
          writer.Double(row[i]);
        } else {
          writer.Int64(std::llround(row[i]));
        }
      }
      end_tensor();
    }
  }
  writer.EndArray();
  writer.EndObject();
  return taken(buffer);
}

Result<std::vector<Milliwatts>> decode_v2_answer(std::string_view json, std::size_t count) {
  auto document = parse(json);
  if (!document) return document.error();
  const Value* outputs = member(*document, "outputs");
  if (outputs == nullptr || !outputs->IsArray() || outputs->Empty()) {
    return fail(ErrorCode::parse, "the answer has no \"outputs\"");
  }
  if (outputs->Size() != 1) {
    return fail(ErrorCode::unsupported,
                fmt::format("the model has {} outputs; one, the watts, is wanted",
                            outputs->Size()));
  }
  const Value* data = member((*outputs)[0], "data");
  if (data == nullptr) return fail(ErrorCode::parse, "outputs[0] has no \"data\"");
  return decode_watts(*data, count, "outputs[0].data");
}

}  // namespace kwatt::telemetry
