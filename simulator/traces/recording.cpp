#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "simulator/traces/snapshot.hpp"
#include "simulator/traces/units.hpp"

namespace kwatt::simulator::traces {
namespace {

using Value = rapidjson::Value;
using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

constexpr std::int64_t kBootSeconds = 120, kShutdownSeconds = 30;  // where nobody says
constexpr std::size_t kCurvePoints = 11;

void text(Writer& out, const char* key, const std::string& value) {
  out.Key(key);
  out.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void number(Writer& out, const char* key, std::int64_t value) {
  out.Key(key);
  out.Int64(value);
}

void amount(Writer& out, const Amount& value) {
  number(out, "cpuMilli", value.cpu.count());
  number(out, "memoryBytes", value.memory.count());
  if (value.gpu_milli > 0) number(out, "gpuMilli", value.gpu_milli);
}

const Value* member(const Value& object, const char* key) {
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

// What is missing or of another kind: where, for the error.
struct Expect {
  std::string problem;

  std::int64_t number(const Value& object, const char* key, std::optional<std::int64_t> otherwise) {
    const Value* value = member(object, key);
    if (value == nullptr && otherwise) return *otherwise;
    if (value != nullptr && value->IsInt64() && value->GetInt64() >= 0) return value->GetInt64();
    if (problem.empty()) problem = fmt::format("{}: expected a whole number from 0 on", key);
    return 0;
  }
  std::string text(const Value& object, const char* key, bool needed) {
    const Value* value = member(object, key);
    if (value != nullptr && value->IsString()) return value->GetString();
    if (problem.empty() && (needed || value != nullptr)) {
      problem = fmt::format("{}: expected text", key);
    }
    return "";
  }
  Amount amount(const Value& object) {
    return {Millicores{number(object, "cpuMilli", {})}, Bytes{number(object, "memoryBytes", 0)},
            number(object, "gpuMilli", 0)};
  }
};

struct Seen {
  RecordedPod pod;
  TimePoint first, last;
  std::optional<TimePoint> bound;
  std::vector<std::pair<TimePoint, Permille>> use;
};

struct Recording {
  Duration interval{0};
  std::optional<TimePoint> first, last;
  std::map<std::string, MachineSpec> machines;
  std::map<std::string, Seen> pods;  // by uid
};

Result<void> take_nodes(const Value& nodes, Recording& recording) {
  for (const Value& node : nodes.GetArray()) {
    if (!node.IsObject()) return fail(ErrorCode::parse, "nodes: expected objects");
    Expect expect;
    MachineSpec machine;
    machine.name = expect.text(node, "name", true);
    machine.zone = expect.text(node, "zone", false);
    machine.capacity = expect.amount(node);
    api::PowerModelSpec model;
    model.boot_seconds = expect.number(node, "bootSeconds", kBootSeconds);
    model.shutdown_seconds = expect.number(node, "shutdownSeconds", kShutdownSeconds);
    model.standby_milliwatts = expect.number(node, "standbyMilliwatts", 0);
    const Value* curve = member(node, "curveMilliwatts");
    if (curve != nullptr && curve->IsArray() && curve->Size() == kCurvePoints) {
      for (const Value& point : curve->GetArray()) {
        model.curve_milliwatts.push_back(
            point.IsInt64() ? std::max<std::int64_t>(0, point.GetInt64()) : 0);
      }
    }
    if (machine.capacity.cpu.count() == 0 && expect.problem.empty()) {
      expect.problem = "cpuMilli: must be above 0";
    }
    if (!expect.problem.empty()) {
      return fail(ErrorCode::parse, fmt::format("node \"{}\": {}", machine.name, expect.problem));
    }
    machine.power = models::model_of(model, machine.capacity.cpu);
    recording.machines.insert_or_assign(machine.name, std::move(machine));
  }
  return {};
}

Result<void> take_pods(const Value& pods, TimePoint at, Recording& recording) {
  for (const Value& value : pods.GetArray()) {
    if (!value.IsObject()) return fail(ErrorCode::parse, "pods: expected objects");
    Expect expect;
    RecordedPod pod;
    pod.uid = expect.text(value, "uid", true);
    pod.name = expect.text(value, "name", true);
    pod.node = expect.text(value, "node", false);
    const Value* job = member(value, "job");
    pod.job = job != nullptr && job->IsBool() && job->GetBool();
    pod.need = expect.amount(value);
    const std::int64_t used = expect.number(value, "usedMilli", 0);
    if (!expect.problem.empty()) {
      return fail(ErrorCode::parse, fmt::format("pod \"{}\": {}", pod.name, expect.problem));
    }
    pod.need.cpu = std::max(pod.need.cpu, Millicores{1});
    auto [seen, added] = recording.pods.try_emplace(pod.uid, Seen{pod, at, at, {}, {}});
    seen->second.last = at;
    if (!pod.node.empty() && !seen->second.bound) {
      seen->second.bound = at;
      seen->second.pod.node = pod.node;
    }
    if (member(value, "usedMilli") != nullptr) {
      seen->second.use.emplace_back(at, Permille{used * 1000 / pod.need.cpu.count()});
    }
  }
  return {};
}

Result<void> take_line(std::string_view line, Recording& recording) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(line.data(), line.size());
  if (document.HasParseError()) {
    return fail(ErrorCode::parse, rapidjson::GetParseError_En(document.GetParseError()));
  }
  if (!document.IsObject()) return fail(ErrorCode::parse, "expected an object");
  if (member(document, "kwattRecording") != nullptr) {
    Expect expect;
    recording.interval = Duration{expect.number(document, "intervalMilliseconds", {})};
    if (!expect.problem.empty()) return fail(ErrorCode::parse, expect.problem);
    return {};
  }
  Expect expect;
  const auto at = parse_rfc3339(expect.text(document, "time", true));
  const Value* nodes = member(document, "nodes");
  const Value* pods = member(document, "pods");
  if (!at || nodes == nullptr || !nodes->IsArray() || pods == nullptr || !pods->IsArray()) {
    return fail(ErrorCode::parse, "expected a sample with time, nodes and pods");
  }
  if (recording.last && *at <= *recording.last) {
    return fail(ErrorCode::parse,
                fmt::format("{} is not after the sample before it ({})", format_rfc3339(*at),
                            format_rfc3339(*recording.last)));
  }
  if (auto done = take_nodes(*nodes, recording); !done) return done;
  if (auto done = take_pods(*pods, *at, recording); !done) return done;
  if (!recording.first) recording.first = *at;
  recording.last = *at;
  return {};
}

Scene scene_of(Recording&& recording) {
  Scene scene;
  scene.length = *recording.last - *recording.first + recording.interval;
  for (auto& [name, machine] : recording.machines) scene.machines.push_back(std::move(machine));
  std::vector<const Seen*> pods;
  for (const auto& [uid, seen] : recording.pods) pods.push_back(&seen);
  std::stable_sort(pods.begin(), pods.end(),
                   [](const Seen* a, const Seen* b) { return a->first < b->first; });
  for (const Seen* seen : pods) {
    const Duration arrival = seen->first - *recording.first;
    const bool stays = seen->last == *recording.last;
    if (seen->pod.job) {
      Job job;
      job.name = seen->pod.name;
      job.arrival = arrival;
      job.duration = seen->last - seen->bound.value_or(seen->first) + recording.interval;
      job.need = seen->pod.need;
      scene.jobs.push_back(std::move(job));
      continue;
    }
    Service service;
    service.name = seen->pod.name;
    service.arrival = arrival;
    if (!stays) service.end = seen->last - *recording.first + recording.interval;
    service.need = seen->pod.need;
    service.step = recording.interval;
    // Samples that are missing repeat the one before.
    for (const auto& [at, share] : seen->use) {
      const auto index = static_cast<std::size_t>((at - seen->first) / recording.interval);
      const Permille before = service.use.empty() ? share : service.use.back();
      while (service.use.size() < index) service.use.push_back(before);
      if (service.use.size() == index) service.use.push_back(share);
    }
    if (arrival == Duration{0} && recording.machines.contains(seen->pod.node)) {
      service.on = seen->pod.node;
    }
    scene.services.push_back(std::move(service));
  }
  return scene;
}

}  // namespace

std::string recording_header(Duration interval) {
  return fmt::format("{{\"kwattRecording\":1,\"intervalMilliseconds\":{}}}\n", interval.count());
}

std::string recording_line(const Sample& sample) {
  rapidjson::StringBuffer buffer;
  Writer out(buffer);
  out.StartObject();
  text(out, "time", format_rfc3339(sample.at));
  out.Key("nodes");
  out.StartArray();
  for (const RecordedNode& node : sample.nodes) {
    out.StartObject();
    text(out, "name", node.name);
    if (!node.zone.empty()) text(out, "zone", node.zone);
    amount(out, node.capacity);
    out.Key("ready");
    out.Bool(node.ready);
    if (!node.curve_milliwatts.empty()) {
      out.Key("curveMilliwatts");
      out.StartArray();
      for (const std::int64_t point : node.curve_milliwatts) out.Int64(point);
      out.EndArray();
    }
    if (node.boot_seconds > 0) number(out, "bootSeconds", node.boot_seconds);
    if (node.shutdown_seconds > 0) number(out, "shutdownSeconds", node.shutdown_seconds);
    if (node.standby_milliwatts > 0) number(out, "standbyMilliwatts", node.standby_milliwatts);
    out.EndObject();
  }
  out.EndArray();
  out.Key("pods");
  out.StartArray();
  for (const RecordedPod& pod : sample.pods) {
    out.StartObject();
    text(out, "uid", pod.uid);
    text(out, "name", pod.name);
    if (pod.job) {
      out.Key("job");
      out.Bool(true);
    }
    if (!pod.node.empty()) text(out, "node", pod.node);
    amount(out, pod.need);
    if (pod.used) number(out, "usedMilli", pod.used->count());
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

Result<Scene> read_recording(std::istream& in, const std::string& name, const Reading& reading) {
  Lines lines(in, name, '#', kLongestSample);
  Recording recording;
  Report report;
  while (true) {
    auto line = lines.next();
    if (!line) return line.error();
    if (!*line) break;
    if (auto done = take_line(**line, recording); !done) {
      if (auto error = bad_row(lines, done.error(), reading, report)) return *error;
      continue;
    }
    ++report.rows;
  }
  if (!recording.first || recording.interval <= Duration{0}) {
    return fail(ErrorCode::parse,
                name +
                    ": there is no header or no sample in it: it should be what \"kubectl kwatt "
                    "record\" writes");
  }
  Scene scene = scene_of(std::move(recording));
  scene.report = std::move(report);
  return scene;
}

}  // namespace kwatt::simulator::traces
