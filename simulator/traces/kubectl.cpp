#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/decode.hpp"
#include "simulator/traces/snapshot.hpp"

namespace kwatt::simulator::traces {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr std::int64_t kBootSeconds = 120, kShutdownSeconds = 30;  // where nobody says

struct Objects {
  std::map<std::string, api::Node> nodes;
  std::map<std::string, api::NodePower> machines;
  std::map<std::string, api::Pod> pods;  // by namespace/name
  std::uint64_t others = 0;
  api::Interner interner;
};

std::string kind_of(const std::string& item) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(item.data(), item.size());
  if (!document.IsObject()) return {};
  const auto kind = document.FindMember("kind");
  return kind != document.MemberEnd() && kind->value.IsString() ? kind->value.GetString() : "";
}

Result<void> take(std::string& item, Objects& objects) {
  const std::string kind = kind_of(item);
  if (kind == "Node") {
    api::Node node;
    if (auto done = api::decode(item, node); !done) return done;
    objects.nodes[node.meta.name] = std::move(node);
  } else if (kind == "NodePower") {
    api::NodePower machine;
    if (auto done = api::decode(item, machine); !done) return done;
    objects.machines[machine.meta.name] = std::move(machine);
  } else if (kind == "Pod") {
    api::Pod pod;
    if (auto done = api::decode(item, pod, &objects.interner); !done) return done;
    objects.pods[pod.key()] = std::move(pod);
  } else {
    ++objects.others;
  }
  return {};
}

Amount amount_of(const api::Resources& resources) {
  Amount amount{resources.cpu, resources.memory, 0};
  const auto gpus = resources.extended.find(kGpu);
  if (gpus != resources.extended.end()) amount.gpu_milli = gpus->second * 1000;
  return amount;
}

MachineSpec machine_of(const api::Node& node, const api::NodePower* power) {
  MachineSpec machine;
  machine.name = node.meta.name;
  machine.zone = node.meta.labels.get(kZone);
  machine.capacity = amount_of(node.allocatable);
  api::PowerModelSpec model = power != nullptr ? power->spec.model : api::PowerModelSpec{};
  if (model.boot_seconds == 0) model.boot_seconds = kBootSeconds;
  if (model.shutdown_seconds == 0) model.shutdown_seconds = kShutdownSeconds;
  machine.power = models::model_of(model, machine.capacity.cpu);
  if (power != nullptr) {
    machine.starts_off = power->status.power_state == api::PowerState::Off;
    const api::AgentReport& report = power->status.report;
    if (report.hardware_min_mhz > 0 && report.hardware_max_mhz >= report.hardware_min_mhz) {
      machine.min_mhz = report.hardware_min_mhz;
      machine.max_mhz = report.hardware_max_mhz;
    }
  }
  return machine;
}

}  // namespace

Result<Scene> read_kubectl(std::istream& in, const std::string& name, Duration job_duration) {
  Objects objects;
  api::ListSplitter splitter;
  std::array<char, 1U << 16U> chunk{};
  const auto on_item = [&](std::string& item) { return take(item, objects); };
  while (in.read(chunk.data(), chunk.size()), in.gcount() > 0) {
    const std::string_view bytes(chunk.data(), static_cast<std::size_t>(in.gcount()));
    if (auto done = splitter.feed(bytes, on_item); !done) return done.error().with_context(name);
  }
  if (auto done = splitter.finish(); !done) return done.error().with_context(name);
  Scene scene;
  std::map<std::string, std::size_t> index;
  for (const auto& [node_name, node] : objects.nodes) {
    const auto power = objects.machines.find(node_name);
    index[node_name] = scene.machines.size();
    scene.machines.push_back(
        machine_of(node, power == objects.machines.end() ? nullptr : &power->second));
  }
  if (scene.machines.empty()) {
    return fail(ErrorCode::parse,
                name +
                    ": there are no nodes in it: it should be what \"kubectl get nodes,pods -A "
                    "-o json\" prints");
  }
  std::uint64_t without_cpu = 0;
  for (const auto& [key, pod] : objects.pods) {
    if (pod.terminal()) {
      ++scene.report.passed_over;
      continue;
    }
    const auto on = index.find(pod.node_name);
    Amount need = amount_of(pod.spec->requests);
    if (!pod.workload()) {
      if (on == index.end()) continue;
      Amount& capacity = scene.machines[on->second].capacity;
      capacity -= need;
      capacity.cpu = std::max(capacity.cpu, Millicores{1});
      capacity.memory = std::max(capacity.memory, Bytes{0});
      capacity.gpu_milli = std::max<std::int64_t>(capacity.gpu_milli, 0);
      continue;
    }
    if (need.cpu <= Millicores{0}) {
      need.cpu = Millicores{1};
      ++without_cpu;
    }
    ++scene.report.rows;
    if (pod.owner != nullptr && pod.owner->kind == "Job") {
      Job job;
      job.name = key;
      job.duration = job_duration;
      job.need = need;
      scene.jobs.push_back(std::move(job));
      continue;
    }
    Service service;
    service.name = key;
    service.need = need;
    if (on != index.end() && !scene.machines[on->second].starts_off) service.on = pod.node_name;
    scene.services.push_back(std::move(service));
  }
  if (!scene.jobs.empty()) {
    scene.notes.push_back(fmt::format("{} pods of Jobs run for {} from now on (--job-duration)",
                                      scene.jobs.size(), format_go_duration(job_duration)));
  }
  if (without_cpu > 0) {
    scene.notes.push_back(
        fmt::format("{} pods request no CPU and count as using none", without_cpu));
  }
  if (objects.others > 0) {
    scene.notes.push_back(
        fmt::format("{} objects of other kinds say nothing here", objects.others));
  }
  return scene;
}

}  // namespace kwatt::simulator::traces
