// record: samples nodes and pods of a cluster into a file that simulate and compare replay.
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/quantity.hpp"
#include "cli/output.hpp"
#include "cli/read.hpp"
#include "net/run.hpp"
#include "simulator/traces/snapshot.hpp"

namespace kwatt::cli {
namespace {

namespace traces = simulator::traces;

constexpr const char* kMetrics = "/apis/metrics.k8s.io/v1beta1/pods";
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kGpu = "nvidia.com/gpu";
constexpr int kOk = 200;

struct Options {
  std::string output, interval = "30s", duration;
};

simulator::Amount amount_of(const api::Resources& resources) {
  simulator::Amount amount{resources.cpu, resources.memory, 0};
  const auto gpus = resources.extended.find(kGpu);
  if (gpus != resources.extended.end()) amount.gpu_milli = gpus->second * 1000;
  return amount;
}

std::string text_of(const rapidjson::Value& object, const char* key) {
  const auto found = object.FindMember(key);
  return found != object.MemberEnd() && found->value.IsString() ? found->value.GetString() : "";
}

// CPU in use by "namespace/name", of a PodMetricsList; what cannot be read is not known.
std::map<std::string, Millicores> usage_in(const std::string& json) {
  std::map<std::string, Millicores> usage;
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (!document.IsObject() || !document.HasMember("items") || !document["items"].IsArray()) {
    return usage;
  }
  for (const auto& item : document["items"].GetArray()) {
    if (!item.IsObject() || !item.HasMember("metadata") || !item["metadata"].IsObject() ||
        !item.HasMember("containers") || !item["containers"].IsArray()) {
      continue;
    }
    std::int64_t sum = 0;
    bool known = false;
    for (const auto& container : item["containers"].GetArray()) {
      if (!container.IsObject() || !container.HasMember("usage") ||
          !container["usage"].IsObject()) {
        continue;
      }
      const auto cpu = api::parse_quantity_milli(text_of(container["usage"], "cpu"));
      if (!cpu) continue;
      known = true;
      sum += *cpu;
    }
    const auto& meta = item["metadata"];
    if (known) usage[text_of(meta, "namespace") + "/" + text_of(meta, "name")] = Millicores{sum};
  }
  return usage;
}

traces::RecordedNode node_of(const api::Node& node, const api::NodePower* power) {
  traces::RecordedNode out;
  out.name = node.meta.name;
  out.zone = node.meta.labels.get(kZone);
  out.capacity = amount_of(node.allocatable);
  const api::Condition* ready = api::find_condition(node.conditions, "Ready");
  out.ready = ready != nullptr && ready->status == "True";
  if (power == nullptr) return out;
  const models::PowerModel model = models::model_of(power->spec.model, node.allocatable.cpu);
  if (model.specified) {
    for (const Milliwatts point : model.curve.points) out.curve_milliwatts.push_back(point.count());
  }
  out.boot_seconds = power->spec.model.boot_seconds;
  out.shutdown_seconds = power->spec.model.shutdown_seconds;
  out.standby_milliwatts = power->spec.model.standby_milliwatts;
  return out;
}

kube::Task<Result<traces::Sample>> take_sample(Session& session) {
  traces::Sample sample;
  sample.at = session.clock.now();
  auto nodes = co_await read_all<api::Node>(session, kube::resources::nodes());
  if (!nodes) co_return nodes.error();
  // A cluster without kwatt has none; that is no reason not to record it.
  std::map<std::string, api::NodePower> machines;
  auto powers = co_await read_all<api::NodePower>(session, kube::resources::node_powers());
  if (powers) {
    for (api::NodePower& one : *powers) machines[one.meta.name] = std::move(one);
  } else if (powers.error().transient()) {
    co_return powers.error();
  }
  auto pods = co_await read_all<api::Pod>(session, kube::resources::pods());
  if (!pods) co_return pods.error();
  std::map<std::string, Millicores> usage;
  const net::Headers no_headers;
  auto metrics = co_await session.fetch(kMetrics, no_headers);
  if (metrics && metrics->status == kOk) usage = usage_in(metrics->body);
  for (const api::Node& node : *nodes) {
    const auto power = machines.find(node.meta.name);
    sample.nodes.push_back(node_of(node, power == machines.end() ? nullptr : &power->second));
  }
  for (const api::Pod& pod : *pods) {
    if (!pod.workload()) continue;
    traces::RecordedPod out;
    out.uid = pod.uid;
    out.name = pod.key();
    out.job = pod.owner != nullptr && pod.owner->kind == "Job";
    out.node = pod.node_name;
    out.need = amount_of(pod.spec->requests);
    if (const auto used = usage.find(out.name); used != usage.end()) out.used = used->second;
    sample.pods.push_back(std::move(out));
  }
  co_return sample;
}

Result<Duration> duration_of(const std::string& text, std::string_view option, Duration least) {
  const auto duration = parse_go_duration(text);
  if (duration && *duration >= least) return *duration;
  return fail(ErrorCode::invalid_argument,
              fmt::format("--{}: expected a duration from {} on, got \"{}\"", option,
                          format_go_duration(least), text));
}

kube::Task<Result<int>> record(Session& session, Options options) {
  auto interval = duration_of(options.interval, "interval", std::chrono::seconds{1});
  if (!interval) co_return interval.error();
  std::optional<Duration> length;
  if (!options.duration.empty()) {
    auto given = duration_of(options.duration, "for", std::chrono::seconds{0});
    if (!given) co_return given.error();
    length = *given;
  }
  std::ofstream file;
  if (!options.output.empty()) {
    file.open(options.output, std::ios::binary | std::ios::trunc);
    if (!file) co_return fail(ErrorCode::io, "cannot write " + options.output);
  }
  std::ostream& out = options.output.empty() ? session.out : file;
  out << traces::recording_header(*interval) << std::flush;
  const MonotonicPoint start = session.clock.monotonic();
  std::int64_t samples = 0;
  for (std::int64_t round = 0;; ++round) {
    auto sample = co_await take_sample(session);
    // The first must work; later a connection may be lost for a while.
    if (!sample && (samples == 0 || !sample.error().transient())) co_return sample.error();
    if (!sample) {
      session.err << "warning: a sample is missing: " << sample.error().text() << "\n";
    } else {
      out << traces::recording_line(*sample) << std::flush;
      if (!out) co_return fail(ErrorCode::io, "cannot write " + options.output);
      ++samples;
    }
    const MonotonicPoint next = start + (round + 1) * *interval;
    if (length && next - start > *length) break;
    const MonotonicPoint now = session.clock.monotonic();
    if (next > now) co_await net::sleep(std::chrono::ceil<Duration>(next - now));
  }
  if (!options.output.empty()) {
    session.err << fmt::format("{} in {}\n", count(samples, "sample"), options.output);
  }
  co_return kDone;
}

}  // namespace

void add_record(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      add_verb(app, "record", "Sample nodes and pods into a file that simulate and compare replay",
               "  kubectl kwatt record --interval 30s --for 24h --file day.jsonl\n"
               "  kubectl kwatt compare day.jsonl --strategies FCFS,ECSched\n");
  verb->add_option("--file", options->output, "Write there (default: the standard output)")
      ->type_name("FILE");
  verb->add_option("--interval", options->interval, "Between two samples")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--for", options->duration, "End after so long (default: at Ctrl-C)")
      ->type_name("DURATION");
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return record(session, *options); };
  });
}

}  // namespace kwatt::cli
