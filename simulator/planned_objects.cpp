#include "simulator/planned_objects.hpp"

#include <charconv>

#include <fmt/format.h>

#include "planner/plan.hpp"
#include "planner/steps_common.hpp"

namespace kwatt::simulator {
namespace {

constexpr std::int64_t kPodsPerNode = 1'000'000;  // the number of pods is no limit here
constexpr Duration kBefore = std::chrono::hours{24};

std::int64_t number_of(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

api::PowerState power_state(MachineState state) {
  switch (state) {
    case MachineState::off:
      return api::PowerState::Off;
    case MachineState::booting:
      return api::PowerState::PoweringOn;
    case MachineState::on:
      return api::PowerState::On;
    case MachineState::stopping:
      return api::PowerState::PoweringOff;
  }
  return api::PowerState::Unknown;
}

PlannedNode make_node(const Simulation& simulation, MachineId id, const std::string& policy) {
  const Machine& machine = simulation.machine(id);
  const MachineSpec& spec = machine.spec();
  const TimePoint now = simulation.now();
  PlannedNode out;
  out.id = id;
  out.zone = spec.zone;
  out.model = spec.power;
  out.ready = machine.state() == MachineState::on;
  out.node.meta.name = spec.name;
  out.node.meta.uid = "node-" + spec.name;
  out.node.meta.resource_version = "1";
  out.node.meta.creation_timestamp = now - 30 * kBefore;
  out.node.meta.labels = {{"kubernetes.io/hostname", spec.name}};
  if (!spec.zone.empty()) out.node.meta.labels.set("topology.kubernetes.io/zone", spec.zone);
  out.node.allocatable.cpu = spec.capacity.cpu;
  out.node.allocatable.memory = spec.capacity.memory;
  out.node.allocatable.pods = kPodsPerNode;
  if (spec.capacity.gpu_milli > 0) {
    out.node.allocatable.extended[kGpuResource] = spec.capacity.gpu_milli;
  }
  out.node.conditions.push_back({"Ready", out.ready ? "True" : "False", "", "", 0, now - kBefore});
  api::NodePower& power = out.machine;
  power.meta.name = spec.name;
  power.meta.uid = "npw-" + spec.name;
  power.meta.resource_version = "1";
  power.spec.bmc.address = "lab+http://simulated/machines/" + spec.name;
  for (const Milliwatts point : spec.power.curve.points) {
    power.spec.model.curve_milliwatts.push_back(point.count());
  }
  api::NodeMemory& memory = power.status.memory;
  memory.last_on = now - kBefore;
  memory.wake_verified_at = now - kBefore;
  power.status.power_state = power_state(machine.state());
  power.status.power_state_since = now - kBefore;
  if (!out.ready) {
    // As an off sequence of ours leaves it.
    memory.powered_off_by_us = memory.cordoned_by_us = true;
    memory.last_off = now - kBefore;
    memory.last_on = now - 2 * kBefore;
    memory.owner_policy = policy;
    out.node.unschedulable = true;
    out.node.taints = {{std::string(planner::names::kPowerOffTaint), "", "NoExecute", {}}};
  }
  api::AgentReport& report = power.status.report;
  report.boot_id = "boot-0";
  report.time = now;
  report.governor = "performance";
  report.converged = true;
  report.available_governors = {"performance", "powersave", "schedutil"};
  report.hardware_min_mhz = spec.min_mhz;
  report.hardware_max_mhz = spec.max_mhz;
  report.cap_min_watts = spec.power.curve.idle().count() / 1000 + 1;
  report.cap_max_watts = spec.power.curve.maximum().count() / 1000;
  return out;
}

void apply(api::Node& node, const planner::PatchNode& patch, TimePoint now) {
  if (patch.unschedulable) node.unschedulable = *patch.unschedulable;
  for (const std::string& key : patch.remove_taints) {
    std::erase_if(node.taints, [&](const api::Taint& taint) { return taint.key == key; });
  }
  for (const api::Taint& taint : patch.add_taints) {
    if (!planner::steps::has_taint(node, taint.key)) node.taints.push_back(taint);
  }
  for (const auto& [key, value] : patch.set_annotations) node.meta.annotations.set(key, value);
  for (const auto& [key, value] : patch.set_labels) node.meta.labels.set(key, value);
  for (const std::string& key : patch.remove_annotations) node.meta.annotations.erase(key);
  for (const std::string& key : patch.remove_labels) node.meta.labels.erase(key);
  if (patch.suspended_condition) {
    const std::string type(planner::names::kSuspendedCondition);
    std::erase_if(node.conditions, [&](const auto& one) { return one.type == type; });
    if (*patch.suspended_condition) node.conditions.push_back({type, "True", "", "", 0, now});
  }
}

AppliedSettings settings_of(const api::Node& node, const MachineSpec& machine) {
  namespace names = planner::names;
  AppliedSettings settings;
  const api::StringMap& annotations = node.meta.annotations;
  if (annotations.get(names::kGovernor) == "powersave") settings.mhz = machine.min_mhz;
  if (const std::string* mhz = annotations.find(names::kMaxFrequency)) {
    const std::int64_t most = number_of(*mhz);
    if (settings.mhz == 0 || (most > 0 && most < settings.mhz)) settings.mhz = most;
  }
  settings.cap_watts = number_of(annotations.get(names::kPowerCap));
  return settings;
}

std::shared_ptr<const api::PodTemplate> PodBook::template_of(const Amount& need) {
  auto& known = templates_[{need.cpu.count(), need.memory.count(), need.gpu_milli}];
  if (known == nullptr) {
    auto made = std::make_shared<api::PodTemplate>();
    made->requests.cpu = need.cpu;
    made->requests.memory = need.memory;
    made->requests.pods = 1;
    if (need.gpu_milli > 0) made->requests.extended[kGpuResource] = need.gpu_milli;
    made->scheduler_name = "default-scheduler";
    known = std::move(made);
  }
  return known;
}

PodBook::Pods PodBook::make(const Simulation& simulation, WorkId id) {
  using Phase = Simulation::Work::Phase;
  const Simulation::Work& work = simulation.work(id);
  const TimePoint start = simulation.settings().start;
  const auto owner = std::make_shared<api::OwnerReference>(api::OwnerReference{
      work.service ? "ReplicaSet" : "Job", work.name, fmt::format("owner-{}", work.serial), true});
  const auto spec = template_of(work.job.need);
  Pods pods;
  for (std::int32_t member = 0; member < work.job.tasks; ++member) {
    auto pod = std::make_shared<api::Pod>();
    pod->namespace_name = work.service ? "services" : "jobs";
    pod->name = work.job.tasks == 1 ? work.name : fmt::format("{}-{}", work.name, member);
    pod->uid = fmt::format("pod-{}-{}-{}", work.serial, work.queued_ms, member);
    pod->resource_version = "1";
    pod->spec = spec;
    pod->owner = owner;
    pod->creation_timestamp = start + Duration{work.queued_ms};
    pod->scheduled_transition = start + Duration{work.queued_ms};
    if (work.phase == Phase::queued) {
      pod->scheduled = api::PodScheduled::unschedulable;
    } else {
      const MachineId machine =
          member == 0 ? work.machine : work.others[static_cast<std::size_t>(member - 1)].first;
      pod->node_name = simulation.machine(machine).spec().name;
      pod->phase = api::PodPhase::running;
      pod->ready = true;
      pod->scheduled = api::PodScheduled::yes;
      if (work.phase == Phase::leaving) pod->deletion_timestamp = simulation.now();
    }
    pods.push_back(std::move(pod));
  }
  return pods;
}

const PodBook::Pods& PodBook::pods_of(const Simulation& simulation, WorkId id) {
  const Simulation::Work& work = simulation.work(id);
  Entry& entry = entries_[id];
  const bool same = entry.serial == work.serial && entry.phase == work.phase &&
                    entry.queued_ms == work.queued_ms && entry.machine == work.machine;
  if (!same || entry.pods.empty()) {
    for (const auto& pod : entry.pods) by_uid_.erase(pod->uid);
    entry = {work.serial, work.phase, work.queued_ms, work.machine, make(simulation, id)};
    for (const auto& pod : entry.pods) by_uid_[pod->uid] = id;
  }
  return entry.pods;
}

std::optional<WorkId> PodBook::work_of(const Simulation& simulation, const std::string& uid) const {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return std::nullopt;
  const Entry& entry = entries_.at(found->second);
  const Simulation::Work& work = simulation.work(found->second);
  const bool same = entry.serial == work.serial && entry.queued_ms == work.queued_ms &&
                    work.phase != Simulation::Work::Phase::gone;
  if (!same) return std::nullopt;
  return found->second;
}

void PodBook::tidy(const Simulation& simulation) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const Simulation::Work& work = simulation.work(entry->first);
    const bool here =
        work.phase != Simulation::Work::Phase::gone && work.serial == entry->second.serial;
    if (here) {
      ++entry;
      continue;
    }
    for (const auto& pod : entry->second.pods) by_uid_.erase(pod->uid);
    entry = entries_.erase(entry);
  }
}

}  // namespace kwatt::simulator
