#include "telemetry/ingest_format.hpp"

#include <array>

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace kwatt::telemetry {
namespace {

constexpr std::array<std::string_view, 4> kSources{"none", "rapl", "rapl-psys", "hwmon"};
constexpr std::size_t kLongestText = 253;
constexpr std::int64_t kMostMegahertz = 100'000;
constexpr std::int64_t kMostMilliCelsius = 150'000;

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void key(Writer& writer, std::string_view name) {
  writer.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
}
void text(Writer& writer, std::string_view name, std::string_view value) {
  key(writer, name);
  writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}
void number(Writer& writer, std::string_view name, std::int64_t value) {
  key(writer, name);
  writer.Int64(value);
}

// RFC 3339 with milliseconds.
std::string format_time(TimePoint time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  std::string text = format_rfc3339(second);
  text.pop_back();  // Z
  return text + fmt::format(".{:03}Z", (time - second).count());
}

void write(Writer& writer, const AgentSample& sample) {
  writer.StartObject();
  text(writer, "time", format_time(sample.time));
  number(writer, "cpuBusyPermille", sample.cpu_busy.count());
  number(writer, "utilizationPermille", sample.utilization.count());
  if (sample.power) number(writer, "milliwatts", sample.power->count());
  text(writer, "source", to_string(sample.source));
  number(writer, "mhz", sample.frequency.count());
  text(writer, "governor", sample.governor);
  if (sample.milli_celsius) number(writer, "milliCelsius", *sample.milli_celsius);
  writer.EndObject();
}

// Events straight into the batch: no tree is built from foreign bytes. Returning false stops the
// reader; `error_` then says why. Values of unknown keys are skipped with their whole subtree.
class BatchHandler {
 public:
  explicit BatchHandler(AgentBatch& batch) : batch_(batch) {}
  const std::string& error() const { return error_; }

  bool Null() { return skipping() || wrong("null"); }
  bool Bool(bool) { return skipping() || wrong("a boolean"); }
  bool Int(int value) { return integer(value); }
  bool Uint(unsigned value) { return integer(value); }
  bool Int64(std::int64_t value) { return integer(value); }
  bool Uint64(std::uint64_t) { return skipping() || wrong("too large a number"); }
  bool Double(double) { return skipping() || refuse(path() + "must be a whole number"); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return wrong("a number"); }

  bool String(const char* data, rapidjson::SizeType size, bool) {
    return skipping() || take_text({data, size});
  }

  bool Key(const char* data, rapidjson::SizeType size, bool) {
    if (skip_depth_ == 0) key_.assign(data, size);
    return true;
  }

  bool StartObject() {
    if (skip_depth_ > 0) return enter_skipped();
    if (place_ == Place::start) return enter(Place::batch);
    if (place_ == Place::samples) {
      if (batch_.samples.size() == kMaximumSamples) {
        return refuse(fmt::format("samples: more than {}", kMaximumSamples));
      }
      batch_.samples.emplace_back();
      has_time_ = false;
      return enter(Place::sample);
    }
    return known() ? wrong("an object") : enter_skipped();
  }

  bool EndObject(rapidjson::SizeType) {
    if (skip_depth_ > 0) return leave_skipped();
    if (place_ == Place::sample) {
      if (!end_sample()) return false;
      place_ = Place::samples;
      return true;
    }
    place_ = Place::end;
    return true;
  }

  bool StartArray() {
    if (skip_depth_ > 0) return enter_skipped();
    if (place_ == Place::batch && key_ == "samples") return enter(Place::samples);
    if (place_ == Place::batch || place_ == Place::sample) {
      return known() ? wrong("a list") : enter_skipped();
    }
    return refuse(path() + "must not be a list");
  }

  bool EndArray(rapidjson::SizeType) {
    if (skip_depth_ > 0) return leave_skipped();
    place_ = Place::batch;
    key_.clear();
    return true;
  }

 private:
  enum class Place { start, batch, samples, sample, end };
  static constexpr int kDeepestSkipped = 16;

  bool enter(Place place) {
    place_ = place;
    key_.clear();
    return true;
  }
  bool enter_skipped() {
    if (++skip_depth_ > kDeepestSkipped) return refuse(path() + "nested too deep");
    return true;
  }
  bool leave_skipped() {
    --skip_depth_;
    return true;
  }

  bool known() const {
    if (place_ == Place::batch) return key_ == "node" || key_ == "bootID" || key_ == "samples";
    if (place_ == Place::sample) {
      return key_ == "time" || key_ == "cpuBusyPermille" || key_ == "utilizationPermille" ||
             key_ == "milliwatts" || key_ == "source" || key_ == "mhz" || key_ == "governor" ||
             key_ == "milliCelsius";
    }
    return true;
  }
  // A value that concerns nobody here.
  bool skipping() const { return skip_depth_ > 0 || !known(); }

  std::string path() const {
    std::string path;
    if (place_ == Place::sample) {
      path = fmt::format("samples[{}].", batch_.samples.size() - 1);
    }
    if (place_ == Place::samples) path = fmt::format("samples[{}]", batch_.samples.size());
    path += key_;
    while (path.ends_with('.')) path.pop_back();
    return path.empty() ? "" : path + ": ";
  }
  bool refuse(std::string why) {
    error_ = std::move(why);
    return false;
  }
  bool wrong(std::string_view what) { return refuse(path() + "must not be " + std::string(what)); }

  bool integer(std::int64_t value) {
    if (skipping()) return true;
    if (place_ != Place::sample) return wrong("a number");
    AgentSample& sample = batch_.samples.back();
    // One reading out of range costs one sample, which SampleStore drops, not the whole push.
    const auto bounded = [&](std::int64_t most) {
      return (value >= 0 && value <= most) ||
             refuse(fmt::format("{}must be 0 to {}", path(), most));
    };
    if (key_ == "cpuBusyPermille") {
      sample.cpu_busy = Permille{value};
      return true;
    }
    if (key_ == "utilizationPermille") {
      sample.utilization = Permille{value};
      return true;
    }
    if (key_ == "milliwatts") {
      sample.power = Milliwatts{value};
      return true;
    }
    if (key_ == "mhz") {
      sample.frequency = Megahertz{value};
      return bounded(kMostMegahertz);
    }
    if (key_ == "milliCelsius") {
      sample.milli_celsius = value;
      return bounded(kMostMilliCelsius);
    }
    return wrong("a number");
  }

  bool take_text(std::string_view value) {
    if (value.size() > kLongestText) {
      return refuse(fmt::format("{}must be at most {} bytes", path(), kLongestText));
    }
    if (place_ == Place::batch && key_ == "node") return assign(batch_.node, value);
    if (place_ == Place::batch && key_ == "bootID") return assign(batch_.boot_id, value);
    if (place_ != Place::sample) return wrong("a text");
    AgentSample& sample = batch_.samples.back();
    if (key_ == "governor") return assign(sample.governor, value);
    if (key_ == "time") {
      const auto time = parse_rfc3339(value);
      if (!time) return refuse(path() + "must be an RFC 3339 time");
      sample.time = *time;
      return has_time_ = true;
    }
    if (key_ == "source") {
      const auto source = parse_power_source(value);
      if (!source) return refuse(path() + "must be one of none, rapl, rapl-psys, hwmon");
      sample.source = *source;
      return true;
    }
    return wrong("a text");
  }
  static bool assign(std::string& target, std::string_view value) {
    target = value;
    return true;
  }

  bool end_sample() {
    key_.clear();
    const AgentSample& sample = batch_.samples.back();
    if (!has_time_) return refuse(path() + "has no time");
    if (sample.power.has_value() != (sample.source != PowerSource::none)) {
      return refuse(path() + "milliwatts and source must come together");
    }
    return true;
  }

  AgentBatch& batch_;
  std::string error_, key_;
  Place place_ = Place::start;
  int skip_depth_ = 0;
  bool has_time_ = false;
};

}  // namespace

std::string_view to_string(PowerSource source) {
  return kSources.at(static_cast<std::size_t>(source));
}

std::optional<PowerSource> parse_power_source(std::string_view word) {
  for (std::size_t i = 0; i < kSources.size(); ++i) {
    if (kSources[i] == word) return static_cast<PowerSource>(i);
  }
  return std::nullopt;
}

std::string encode(const AgentBatch& batch) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  text(writer, "node", batch.node);
  text(writer, "bootID", batch.boot_id);
  key(writer, "samples");
  writer.StartArray();
  for (const AgentSample& sample : batch.samples) write(writer, sample);
  writer.EndArray();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

Result<AgentBatch> decode_batch(std::string_view json) {
  AgentBatch batch;
  BatchHandler handler(batch);
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(json.data(), json.size());
  const auto parsed =
      reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(stream,
                                                                                           handler);
  if (!handler.error().empty()) return fail(ErrorCode::parse, handler.error());
  if (parsed.IsError()) {
    return fail(ErrorCode::parse, fmt::format("not JSON at byte {}: {}", parsed.Offset(),
                                              rapidjson::GetParseError_En(parsed.Code())));
  }
  if (batch.node.empty()) return fail(ErrorCode::parse, "node: must name the node");
  return batch;
}

}  // namespace kwatt::telemetry
