#include "test/fuzz/targets.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "api/cron.hpp"
#include "api/decode.hpp"
#include "api/encode.hpp"
#include "api/quantity.hpp"
#include "api/window.hpp"
#include "hardware/allow_list.hpp"
#include "hardware/command.hpp"
#include "hardware/ipmi_messages.hpp"
#include "hardware/redfish_messages.hpp"
#include "hardware/redfish_power.hpp"
#include "hardware/wake_lan.hpp"
#include "net/gzip.hpp"
#include "net/message_reader.hpp"
#include "telemetry/ingest_format.hpp"

namespace kwatt::fuzz {
namespace {

// In every kind of build, unlike assert().
void must(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// What was decoded is written and read as the same. (Of those kinds that are written.)
template <class T>
void decode_and_encode(std::string_view json) {
  T object;
  if (!api::decode(json, object)) return;
  const std::string text = api::encode(object);
  T again;
  must(api::decode(text, again).has_value(), "what was written can be read");
  must(api::encode(again) == text, "what was read again is written the same");
}

template <class... T>
void decode_all(std::string_view json) {
  std::tuple<T...> objects;
  std::apply([&](T&... object) { ((void)api::decode(json, object), ...); }, objects);
}

void object(std::string_view bytes) {
  decode_and_encode<api::EnergyPolicy>(bytes);
  decode_and_encode<api::NodePower>(bytes);
  api::EnergyPolicy policy;
  if (api::decode(bytes, policy)) (void)api::validate(policy.spec);
  decode_all<api::Node, api::PodDisruptionBudget, api::PersistentVolumeClaim, api::PersistentVolume,
             api::VolumeAttachment, api::Lease, api::Workload, api::PodTemplateObject,
             api::CapacityBuffer, api::NodeHealthCheck, api::Status>(bytes);
  api::Interner interner;
  api::Pod pod;
  (void)api::decode(bytes, pod, &interner);
}

// Feeds all in pieces of this size; what came out, as text.
template <class Decoder>
std::string fed(Decoder& decoder, std::string& seen, std::string_view bytes, std::size_t piece) {
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    if (!decoder.feed(bytes.substr(at, piece))) return seen + "!";
  }
  return seen;
}

std::string watched(std::string_view bytes, std::size_t piece) {
  std::string seen;
  api::WatchDecoder<api::Node> decoder(nullptr, [&](api::WatchEvent<api::Node>&& event) {
    seen += event.type_text + " " + event.object.meta.name + " " + event.resource_version + "\n";
  });
  return fed(decoder, seen, bytes, piece);
}

std::string listed(std::string_view bytes, std::size_t piece) {
  std::string seen;
  api::ListDecoder<api::Pod> decoder(nullptr, [&](api::Pod&& pod) { seen += pod.name + "\n"; });
  fed(decoder, seen, bytes, piece);
  if (seen.ends_with("!")) return seen;
  const auto meta = decoder.finish();
  return seen + (meta ? meta->resource_version : "?");
}

void stream(std::string_view bytes) {
  must(watched(bytes, bytes.size() + 1) == watched(bytes, 3), "pieces of a watch do not matter");
  must(listed(bytes, bytes.size() + 1) == listed(bytes, 3), "pieces of a list do not matter");
}

// The words that policies are written in.
void words(std::string_view bytes) {
  const std::string text(bytes);
  api::Budget budget;
  const auto cut = bytes.find('\n');
  budget.schedule = std::string(bytes.substr(0, cut));
  if (cut != bytes.npos) budget.time_zone = std::string(bytes.substr(cut + 1));
  budget.duration = std::chrono::hours{8};
  const auto noon = parse_rfc3339("2026-11-20T12:00:00Z");
  const auto state = api::window_state(budget, *noon);
  if (!api::Cron::parse(budget.schedule) && !budget.schedule.empty()) {
    must(!state, "a budget without a good schedule has no window");
  }
  if (state && state->until) must(*state->until > *noon, "a window that is open ends later");
  (void)api::parse_quantity(bytes);
  (void)api::parse_quantity_milli(bytes);
  if (const auto duration = parse_go_duration(bytes)) {
    must(parse_go_duration(format_go_duration(*duration)) == duration,
         "durations are written well");
  }
  if (const auto time = parse_rfc3339(bytes)) {
    const auto written = parse_rfc3339(format_micro_time(*time));
    must(written == time, "times are written well");
  }
}

void redfish(std::string_view bytes) {
  namespace redfish = hardware::redfish;
  const std::string body(bytes);
  if (const auto system = redfish::parse_system(body)) {
    for (const auto reset :
         {hardware::Reset::on, hardware::Reset::graceful_shutdown, hardware::Reset::force_off}) {
      const auto type = redfish::reset_type(*system, reset);
      must(!type || *type != "PowerCycle", "no reset is a power cycle");
    }
    must(system->reset_target.empty() || redfish::local_target(system->reset_target).has_value(),
         "links stay on the service");
  }
  (void)redfish::parse_reset_types(body);
  (void)redfish::parse_root(body);
  (void)redfish::parse_members(body);
  (void)redfish::parse_chassis(body);
  (void)redfish::parse_supplies_link(body);
  (void)redfish::parse_metrics_link(body);
  (void)redfish::local_target(bytes);
  for (const auto& parse :
       {redfish::parse_power, redfish::parse_environment, redfish::parse_supply_metrics}) {
    const auto power = parse(body);
    if (!power) continue;
    const auto reading = redfish::reading_of(*power);
    must(!reading || !*reading || (*reading)->count() >= 0, "no reading is negative");
    (void)redfish::limit_of(*power);
  }
  net::Response response;
  response.body = body;
  for (const int status : {200, 401, 503}) {
    response.status = status;
    (void)redfish::error_of(response);
    (void)redfish::parse_session(response);
    (void)redfish::refuses_credentials(response);
  }
}

// What ipmitool and the operator's programs print, and the words of NodePower that name machines.
void printed(std::string_view bytes) {
  namespace ipmi = hardware::ipmi;
  const std::string text(bytes);
  (void)ipmi::parse_power(text);
  const auto reading = ipmi::parse_reading(text);
  must(!reading || !*reading || (*reading)->count() >= 0, "no reading is negative");
  (void)ipmi::parse_limit(text);
  const auto sensors = ipmi::sensor_reading(text);
  must(!sensors || sensors->count() >= 0, "no sum of sensors is negative");
  hardware::Finished finished;
  finished.exit_code = 1;
  finished.err = text;
  (void)ipmi::error_of(finished, "asking");
  (void)hardware::command_error(finished, "asking");
  (void)hardware::parse_command_state(text);
  const auto power = hardware::parse_command_power(text);
  must(!power || !*power || (*power)->count() >= 0, "no reading is negative");
  (void)hardware::parse_wake_address(bytes);
  (void)hardware::parse_wake_notes(bytes);
  (void)net::parse_url(bytes);
  static const auto allowed = hardware::AllowList::parse({"10.0.0.0/8,http://127.0.0.1,bmc"});
  must(allowed.has_value(), "this list is one");
  (void)allowed->refusal(text);
  (void)allowed->filter(text)("10.0.0.7");
}

void samples(std::string_view bytes) {
  const auto batch = telemetry::decode_batch(bytes);
  if (!batch) return;
  must(batch->samples.size() <= telemetry::kMaximumSamples, "no more samples than allowed");
  const auto again = telemetry::decode_batch(telemetry::encode(*batch));
  must(again && *again == *batch, "samples are written as they were read");
}

std::string message(net::MessageReader::Kind kind, std::string_view bytes, std::size_t piece) {
  net::MessageReader reader{kind, 4096, 65536};
  std::string buffer;
  bool broken = false;
  for (std::size_t at = 0; at < bytes.size() && !broken && !reader.done(); at += piece) {
    buffer += bytes.substr(at, piece);
    broken = reader.feed(buffer).has_value();
  }
  if (!broken && !reader.done()) broken = reader.end().has_value();
  must(reader.message().body.size() <= 65536, "no body is larger than allowed");
  if (broken) return "broken";
  const net::Message& read = reader.message();
  return read.method + " " + read.target + " " + std::to_string(read.status) + "\n" + read.body;
}

void http(std::string_view bytes) {
  using Kind = net::MessageReader::Kind;
  for (const Kind kind : {Kind::request, Kind::response, Kind::response_to_head}) {
    (void)message(kind, bytes, bytes.size() + 1);
    (void)message(kind, bytes, 1);
  }
  net::GzipDecoder decoder;
  std::string input(bytes), out;
  for (std::size_t before = 1; before != out.size() && out.size() < 65536;) {
    before = out.size();
    if (!decoder.decode(input, out, 4096)) break;
  }
}

constexpr std::array<Target, 7> kTargets{{{"object", object},
                                          {"stream", stream},
                                          {"words", words},
                                          {"redfish", redfish},
                                          {"printed", printed},
                                          {"samples", samples},
                                          {"http", http}}};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

}  // namespace kwatt::fuzz
