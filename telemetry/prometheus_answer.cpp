#include "telemetry/prometheus_answer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

namespace kwatt::telemetry {
namespace {

constexpr std::size_t kLongestLabel = 1024;
constexpr std::size_t kLongestError = 512;
constexpr int kDeepestSkipped = 16;

// "12.5", "NaN", "+Inf", "-Inf", as Prometheus writes samples.
bool parse_value(std::string_view text, double& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// Events straight into the list: no tree is built from foreign bytes. Returning false stops the
// reader; `error_` then says why. Members that are not needed are skipped with their subtree.
class AnswerHandler {
 public:
  explicit AnswerHandler(const std::vector<std::string>& wanted) : wanted_(wanted) {}
  std::string error;  // why reading was stopped
  std::string status, result_type, error_type, error_text;
  std::vector<Series> series;

  bool Null() { return scalar(); }
  bool Bool(bool) { return scalar(); }
  bool Int(int value) { return number(value); }
  bool Uint(unsigned value) { return number(value); }
  bool Int64(std::int64_t value) { return number(static_cast<double>(value)); }
  bool Uint64(std::uint64_t value) { return number(static_cast<double>(value)); }
  bool Double(double value) { return number(value); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return scalar(); }

  bool String(const char* data, rapidjson::SizeType size, bool) {
    return skipped_ > 0 || take_text({data, size});
  }
  bool Key(const char* data, rapidjson::SizeType size, bool) {
    if (skipped_ == 0) key_.assign(data, std::min<std::size_t>(size, kLongestLabel));
    return true;
  }
  bool StartObject() {
    if (skipped_ > 0) return deeper();
    switch (place_) {
      case Place::start:
        return enter(Place::root);
      case Place::root:
        return key_ == "data" ? enter(Place::data) : deeper();
      case Place::result:
        if (series.size() == kMostSeries) return refuse("more series than anybody needs");
        series.emplace_back();
        has_value_ = false;
        return enter(Place::element);
      case Place::element:
        return key_ == "metric" ? enter(Place::metric) : deeper();
      case Place::data:
        return key_ == "result" ? refuse("data.result must be a list") : deeper();
      default:
        return refuse("an object where a value was expected");
    }
  }
  bool EndObject(rapidjson::SizeType) {
    if (skipped_ > 0) return shallower();
    switch (place_) {
      case Place::metric:
        return enter(Place::element);
      case Place::element:
        if (!has_value_) return refuse("a series without a value");
        return enter(Place::result);
      case Place::data:
        return enter(Place::root);
      default:
        return enter(Place::end);
    }
  }
  bool StartArray() {
    if (skipped_ > 0) return deeper();
    if (place_ == Place::data && key_ == "result") return enter(Place::result);
    if (place_ == Place::element && key_ == "value") {
      position_ = 0;
      return enter(Place::value);
    }
    if (place_ == Place::root || place_ == Place::data || place_ == Place::element) return deeper();
    return refuse("a list where it does not belong");
  }
  bool EndArray(rapidjson::SizeType) {
    if (skipped_ > 0) return shallower();
    if (place_ == Place::value) {
      if (position_ != 2) return refuse("a value must be a time and a text");
      has_value_ = true;
      return enter(Place::element);
    }
    return enter(Place::data);
  }

 private:
  enum class Place { start, root, data, result, element, metric, value, end };

  bool enter(Place place) {
    place_ = place;
    key_.clear();
    return true;
  }
  bool deeper() { return ++skipped_ <= kDeepestSkipped || refuse("nested too deep"); }
  bool shallower() {
    --skipped_;
    return true;
  }
  bool refuse(std::string why) {
    error = std::move(why);
    return false;
  }
  bool scalar() {
    if (skipped_ > 0 || place_ == Place::root || place_ == Place::data ||
        place_ == Place::element) {
      return true;
    }
    return refuse("a value of another type than expected");
  }
  bool number(double value) {
    if (skipped_ == 0 && place_ == Place::value && position_ == 0) {
      series.back().time = value;
      ++position_;
      return true;
    }
    return scalar();
  }
  bool take_text(std::string_view text) {
    switch (place_) {
      case Place::root:
        if (key_ == "status") status = text.substr(0, kLongestError);
        if (key_ == "errorType") error_type = text.substr(0, kLongestError);
        if (key_ == "error") error_text = text.substr(0, kLongestError);
        return true;
      case Place::data:
        if (key_ == "resultType") result_type = text.substr(0, kLongestError);
        return true;
      case Place::element:
        return true;
      case Place::metric:
        if (std::find(wanted_.begin(), wanted_.end(), key_) != wanted_.end()) {
          if (text.size() > kLongestLabel) return refuse("label " + key_ + " is too long");
          series.back().labels.emplace_back(key_, std::string(text));
        }
        return true;
      case Place::value:
        if (position_ != 1) return refuse("a value must be a time and a text");
        series.back().is_number = parse_value(text, series.back().value);
        ++position_;
        return true;
      default:
        return refuse("a text where it does not belong");
    }
  }

  const std::vector<std::string>& wanted_;
  Place place_ = Place::start;
  std::string key_;
  int skipped_ = 0;
  int position_ = 0;  // within a value
  bool has_value_ = false;
};

ErrorCode code_of(std::string_view error_type) {
  if (error_type == "timeout") return ErrorCode::timeout;
  if (error_type == "canceled") return ErrorCode::cancelled;
  if (error_type == "unavailable") return ErrorCode::unavailable;
  if (error_type == "internal") return ErrorCode::internal;
  if (error_type == "not_found") return ErrorCode::not_found;
  return ErrorCode::invalid_argument;  // bad_data, execution: the query itself
}

}  // namespace

std::string_view Series::label(std::string_view name) const {
  for (const auto& [key, text] : labels) {
    if (key == name) return text;
  }
  return {};
}

Result<std::vector<Series>> parse_instant_vector(std::string_view json,
                                                 const std::vector<std::string>& wanted) {
  AnswerHandler handler(wanted);
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(json.data(), json.size());
  const auto parsed =
      reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(stream,
                                                                                           handler);
  if (!handler.error.empty()) {
    return fail(ErrorCode::parse, fmt::format("not an answer of Prometheus (byte {}): {}",
                                              parsed.Offset(), handler.error));
  }
  if (parsed.IsError()) {
    return fail(ErrorCode::parse, fmt::format("not JSON at byte {}: {}", parsed.Offset(),
                                              rapidjson::GetParseError_En(parsed.Code())));
  }
  if (handler.status == "error") {
    return fail(code_of(handler.error_type),
                fmt::format("Prometheus refuses the query ({})", handler.error_type),
                handler.error_text);
  }
  if (handler.status != "success") {
    return fail(ErrorCode::parse, "not an answer of Prometheus: it has no status");
  }
  if (handler.result_type != "vector") {
    return fail(ErrorCode::parse,
                fmt::format("the query gives a {} in place of a vector",
                            handler.result_type.empty() ? "nothing" : handler.result_type));
  }
  return std::move(handler.series);
}

}  // namespace kwatt::telemetry
