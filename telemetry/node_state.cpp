#include "telemetry/node_state.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <rapidjson/document.h>

namespace kwatt::telemetry {
namespace {

constexpr std::string_view kWao = "waofed.bitmedia.co.jp/";

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

Error bad_label(const std::string& label, std::string_view text, std::string_view want) {
  return fail(ErrorCode::parse, fmt::format("label {}: \"{}\" must be {}", label, text, want));
}

Result<double> label_number(const api::StringMap& labels, const std::string& label) {
  if (!labels.contains(label)) return 0.0;
  const std::string_view text = labels.get(label);
  const auto value = number(text);
  if (!value) return bad_label(label, text, "a number");
  return *value;
}

Result<Milliwatts> label_watts(const api::StringMap& labels, const std::string& label) {
  if (!labels.contains(label)) return Milliwatts{0};
  const std::string_view text = labels.get(label);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > 100'000) {
    return bad_label(label, text, "whole watts from 0 to 100000");
  }
  return watts(value);
}

Result<void> label_range(const api::StringMap& labels, const std::string& name,
                         std::optional<PredictionPoint::Range>& out) {
  const std::string low = name + "/min", high = name + "/max";
  if (!labels.contains(low) || !labels.contains(high)) return {};
  auto lowest = label_number(labels, low), highest = label_number(labels, high);
  if (!lowest) return lowest.error();
  if (!highest) return highest.error();
  if (!(*lowest < *highest)) {
    return bad_label(high, labels.get(high), fmt::format("above {}", low));
  }
  out = PredictionPoint::Range{*lowest, *highest};
  return {};
}

std::string lowercase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool plausible(double celsius) {
  return celsius > -60 && celsius < 150;
}

void keep_coldest(std::optional<double>& kept, double celsius) {
  if (!kept || celsius < *kept) kept = celsius;
}

Result<rapidjson::Document> parsed(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return fail(ErrorCode::parse, "the answer is no JSON object");
  }
  return document;
}

const rapidjson::Value* member(const rapidjson::Value& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

std::string text_of(const rapidjson::Value* value) {
  return value != nullptr && value->IsString()
             ? std::string(value->GetString(), value->GetStringLength())
             : std::string();
}

}  // namespace

void lay_over(NodeState& state, const NodeState& later) {
  const auto over = [](std::optional<double>& below, const std::optional<double>& above) {
    if (above) below = above;
  };
  over(state.cpu_usage, later.cpu_usage);
  over(state.ambient_celsius, later.ambient_celsius);
  over(state.cpu1_celsius, later.cpu1_celsius);
  over(state.cpu2_celsius, later.cpu2_celsius);
  over(state.static_pressure_pascal, later.static_pressure_pascal);
}

Result<NodeState> fake_state(const api::StringMap& labels) {
  const std::string prefix = std::string(kWao) + "node-status.";
  auto usage = label_number(labels, prefix + "cpuusage");
  if (!usage) return usage.error();
  auto ambient = label_number(labels, prefix + "ambienttemp");
  if (!ambient) return ambient.error();
  auto pressure = label_number(labels, prefix + "staticpressurediff");
  if (!pressure) return pressure.error();
  if (*usage < 0 || *usage > 1) {
    return bad_label(prefix + "cpuusage", labels.get(prefix + "cpuusage"), "from 0 to 1");
  }
  NodeState state;
  state.cpu_usage = *usage;
  state.ambient_celsius = *ambient;
  state.static_pressure_pascal = *pressure;
  return state;
}

Result<FakePower> fake_power(const api::StringMap& labels) {
  auto base = label_watts(labels, std::string(kWao) + "fakepcp.basewatts");
  if (!base) return base.error();
  auto per_core = label_watts(labels, std::string(kWao) + "fakepcp.wpc");
  if (!per_core) return per_core.error();
  return FakePower{*base, *per_core};
}

Result<void> read_ranges(const api::StringMap& labels, PredictionPoint& point) {
  if (auto done = label_range(labels, "ambient", point.ambient_range); !done) return done;
  if (auto done = label_range(labels, "cpu1", point.cpu1_range); !done) return done;
  return label_range(labels, "cpu2", point.cpu2_range);
}

Result<NodeState> read_pressure_answer(std::string_view json) {
  auto document = parsed(json);
  if (!document) return document.error();
  const rapidjson::Value* sensors = member(*document, "sensor");
  if (sensors == nullptr || !sensors->IsArray() || sensors->Empty()) {
    return fail(ErrorCode::not_found, "the answer has no sensor");
  }
  const rapidjson::Value* pressure = member((*sensors)[0], "pressure");
  if (pressure == nullptr || !pressure->IsNumber()) {
    return fail(ErrorCode::parse, "sensor[0].pressure is no number");
  }
  NodeState state;
  state.static_pressure_pascal = pressure->GetDouble();
  return state;
}

Result<NodeState> read_ipmi_metrics(std::string_view text) {
  constexpr std::string_view kMetric = "ipmi_temperature_celsius{";
  std::optional<double> ambient, inlet;
  NodeState state;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.starts_with(kMetric)) continue;
    const std::size_t close = line.rfind('}');
    if (close == std::string_view::npos) {
      return fail(ErrorCode::parse, "a line of ipmi_temperature_celsius has no labels");
    }
    const std::string labels = lowercase(line.substr(0, close));
    std::string_view value = line.substr(close + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    value = value.substr(0, value.find(' '));
    // A sensor without a reading.
    if (lowercase(value) == "nan") continue;
    const auto celsius = number(value);
    if (!celsius) {
      return fail(ErrorCode::parse,
                  fmt::format("ipmi_temperature_celsius: \"{}\" is no number", value));
    }
    if (!plausible(*celsius)) continue;
    const auto says = [&](const char* word) { return labels.find(word) != std::string::npos; };
    if (says("ambient")) keep_coldest(ambient, *celsius);
    if (says("inlet") || says("intake")) keep_coldest(inlet, *celsius);
    if (says("cpu1") || says("cpu 1")) state.cpu1_celsius = *celsius;
    if (says("cpu2") || says("cpu 2")) state.cpu2_celsius = *celsius;
  }
  state.ambient_celsius = ambient ? ambient : inlet;
  if (!state.ambient_celsius) {
    return fail(ErrorCode::not_found,
                "no ipmi_temperature_celsius of a sensor named ambient, inlet or intake");
  }
  return state;
}

Result<NodeState> read_redfish_thermal(std::string_view json) {
  auto document = parsed(json);
  if (!document) return document.error();
  const rapidjson::Value* sensors = member(*document, "Temperatures");
  if (sensors == nullptr || !sensors->IsArray()) {
    return fail(ErrorCode::parse, "the Thermal resource has no Temperatures");
  }
  NodeState state;
  for (const rapidjson::Value& sensor : sensors->GetArray()) {
    const rapidjson::Value* reading = member(sensor, "ReadingCelsius");
    if (reading == nullptr || !reading->IsNumber() || !plausible(reading->GetDouble())) continue;
    const double celsius = reading->GetDouble();
    const std::string context = text_of(member(sensor, "PhysicalContext"));
    if (context == "Intake") keep_coldest(state.ambient_celsius, celsius);
    if (context == "CPU") (state.cpu1_celsius ? state.cpu2_celsius : state.cpu1_celsius) = celsius;
  }
  if (!state.ambient_celsius) {
    return fail(ErrorCode::not_found, "no temperature sensor has the PhysicalContext Intake");
  }
  return state;
}

net::Task<Result<std::string>> StateAgents::get(net::Client& client, std::string path) {
  net::Request request("GET", path);
  request.headers.set("Accept", "*/*");
  net::Limits limits;
  limits.connect = limits.header = limits.total = std::chrono::seconds{5};
  limits.body_bytes = std::size_t{4} << 20;
  auto response = co_await client.send(std::move(request), limits);
  if (!response) co_return response.error();
  if (response->status != 200) {
    co_return fail(ErrorCode::protocol, fmt::format("{} answered {}", path, response->status));
  }
  co_return std::move(response->body);
}

net::Task<Result<NodeState>> StateAgents::ask_redfish(net::Client& client, std::string root) {
  while (root.ends_with('/')) root.pop_back();
  auto list = co_await get(client, root + "/Chassis");
  if (!list) co_return list.error();
  auto document = parsed(*list);
  if (!document) co_return document.error();
  const rapidjson::Value* members = member(*document, "Members");
  Error last = fail(ErrorCode::not_found, "there is no chassis");
  if (members == nullptr || !members->IsArray()) co_return last;
  constexpr rapidjson::SizeType kMost = 4;
  for (rapidjson::SizeType i = 0; i < std::min(members->Size(), kMost); ++i) {
    const std::string path = text_of(member((*members)[i], "@odata.id"));
    if (!path.starts_with('/')) continue;
    auto thermal = co_await get(client, path + "/Thermal");
    if (!thermal) {
      last = thermal.error();
      continue;
    }
    auto state = read_redfish_thermal(*thermal);
    if (state) co_return state;
    last = state.error();
  }
  co_return last;
}

net::Task<Result<NodeState>> StateAgents::ask(std::string type, std::string endpoint) {
  const std::string what = fmt::format("{} {}", type, endpoint);
  auto url = net::parse_url(endpoint);
  if (!url) co_return url.error().with_context(what);
  const net::Origin& origin = url->origin;
  if (!allowed_.may(origin.host, origin.tls)) {
    co_return fail(
        ErrorCode::forbidden,
        fmt::format("{}: {} is not allowed; --endpoint-allow of the controller allows it", what,
                    origin.host));
  }
  net::Client client(executor_, origin, {}, allowed_.filter(origin.host, origin.tls));
  Result<NodeState> state = fail(ErrorCode::invalid_argument, "an agent that is not asked by HTTP");
  if (type == "Redfish") {
    state = co_await ask_redfish(client, url->path);
  } else {
    auto body = co_await get(client, url->path);
    if (!body) co_return body.error().with_context(what);
    if (type == "DifferentialPressureAPI") state = read_pressure_answer(*body);
    if (type == "IPMIExporter") state = read_ipmi_metrics(*body);
  }
  if (!state) co_return state.error().with_context(what);
  co_return state;
}

}  // namespace kwatt::telemetry
