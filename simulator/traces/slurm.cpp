#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/istreamwrapper.h>

#include "simulator/traces/snapshot.hpp"
#include "simulator/traces/units.hpp"

namespace kwatt::simulator::traces {
namespace {

using Value = rapidjson::Value;

constexpr std::int64_t kBootSeconds = 300, kShutdownSeconds = 60;  // of an HPC node, roughly
constexpr std::int64_t kMostNodesOfJob = 100'000;

const Value* member(const Value& object, const char* key) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

// A number as Slurm writes it: plain, or {"set":true,"infinite":false,"number":5} since 23.02.
std::optional<double> number_of(const Value& object, const char* key) {
  const Value* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->IsNumber()) return value->GetDouble();
  const Value* set = member(*value, "set");
  const Value* infinite = member(*value, "infinite");
  const Value* number = member(*value, "number");
  if (set == nullptr || !set->IsBool() || !set->GetBool()) return std::nullopt;
  if (infinite != nullptr && infinite->IsBool() && infinite->GetBool()) return std::nullopt;
  if (number == nullptr || !number->IsNumber()) return std::nullopt;
  return number->GetDouble();
}

std::string text_of(const Value& object, const char* key) {
  const Value* value = member(object, key);
  return value != nullptr && value->IsString() ? value->GetString() : "";
}

// A state: one word, or a list of them.
bool in_state(const Value& object, const char* key, std::string_view word) {
  const Value* value = member(object, key);
  if (value == nullptr) return false;
  if (value->IsString())
    return std::string_view(value->GetString()).find(word) != std::string::npos;
  if (!value->IsArray()) return false;
  return std::any_of(value->Begin(), value->End(), [&](const Value& one) {
    return one.IsString() && std::string_view(one.GetString()).find(word) != std::string::npos;
  });
}

// "gpu:a100:4(S:0-1),craynetwork:1" → 4.
double gpus_in(std::string_view gres) {
  double sum = 0;
  while (!gres.empty()) {
    const std::size_t end = std::min(gres.find(','), gres.size());
    std::string_view one = gres.substr(0, std::min(gres.find('('), end));
    gres.remove_prefix(std::min(end + 1, gres.size()));
    if (one.starts_with("gres:") || one.starts_with("gres/")) one.remove_prefix(5);
    if (!one.starts_with("gpu")) continue;
    const std::size_t colon = one.find_last_of(":=");
    const auto count = colon == std::string_view::npos
                           ? Result<double>(1.0)
                           : number_in(one.substr(colon + 1), "", 0, kMostGpus);
    sum += count ? *count : 1;
  }
  return sum;
}

struct Found {
  std::map<std::string, MachineSpec> machines;
  struct Queued {
    double submit = 0;
    bool running = false;
    double start = 0, limit_seconds = -1;
    Job job;
  };
  std::vector<Queued> jobs;
  std::uint64_t over = 0, down = 0, without_limit = 0;
  double newest = 0;  // the latest moment named: about when the snapshot was taken
};

void add_machine(Found& found, const std::string& name, double cpus, double mebibytes, double gpus,
                 bool off) {
  MachineSpec machine;
  machine.name = name;
  machine.capacity = amount_of(cpus, mebibytes, gpus);
  machine.starts_off = off;
  api::PowerModelSpec model;
  model.boot_seconds = kBootSeconds;
  model.shutdown_seconds = kShutdownSeconds;
  machine.power = models::model_of(model, machine.capacity.cpu);
  found.machines[name] = std::move(machine);
}

// An element of "nodes" (sinfo of Slurm 22.05, scontrol).
void take_node(const Value& node, Found& found) {
  const std::string name = text_of(node, "name");
  const double cpus = number_of(node, "cpus").value_or(0);
  if (name.empty() || cpus <= 0) return;
  const bool off =
      in_state(node, "state", "POWERED_DOWN") || in_state(node, "state_flags", "POWERED_DOWN");
  const bool down = in_state(node, "state", "DOWN") || in_state(node, "state", "DRAIN") ||
                    in_state(node, "state_flags", "DRAIN");
  if (down && !off) {
    ++found.down;
    return;
  }
  add_machine(found, name, cpus, number_of(node, "real_memory").value_or(0),
              gpus_in(text_of(node, "gres")), off);
}

// An element of "sinfo" (sinfo since 23.02): nodes that are alike.
void take_group(const Value& group, Found& found) {
  const Value* nodes = member(group, "nodes");
  const Value* names = nodes == nullptr ? nullptr : member(*nodes, "nodes");
  const Value* cpus = member(group, "cpus");
  const Value* memory = member(group, "memory");
  const Value* gres = member(group, "gres");
  const Value* state = member(group, "node");
  if (names == nullptr || !names->IsArray() || cpus == nullptr) return;
  const bool off = state != nullptr && in_state(*state, "state", "POWERED_DOWN");
  const bool down = state != nullptr && !off &&
                    (in_state(*state, "state", "DOWN") || in_state(*state, "state", "DRAIN"));
  for (const Value& name : names->GetArray()) {
    if (!name.IsString()) continue;
    if (down) {
      ++found.down;
      continue;
    }
    const double count = number_of(*cpus, "maximum").value_or(0);
    if (count <= 0) continue;
    add_machine(found, name.GetString(), count,
                memory == nullptr ? 0 : number_of(*memory, "maximum").value_or(0),
                gres == nullptr ? 0 : gpus_in(text_of(*gres, "total")), off);
  }
}

Result<void> take_job(const Value& value, std::size_t index, Found& found) {
  const bool running = in_state(value, "job_state", "RUNNING");
  if (!running && !in_state(value, "job_state", "PENDING")) {
    ++found.over;
    return {};
  }
  Found::Queued queued;
  queued.running = running;
  queued.submit = number_of(value, "submit_time").value_or(0);
  queued.start = number_of(value, "start_time").value_or(0);
  found.newest = std::max(found.newest, queued.submit);
  if (running) found.newest = std::max(found.newest, queued.start);
  if (const auto minutes = number_of(value, "time_limit"); minutes && *minutes > 0) {
    queued.limit_seconds = std::min(*minutes * 60, kMostSeconds);
  }
  const double cpus = number_of(value, "cpus").value_or(0);
  const double nodes = std::max(1.0, number_of(value, "node_count").value_or(1));
  if (cpus <= 0 || cpus > kMostCores || nodes > kMostNodesOfJob) {
    return fail(
        ErrorCode::parse,
        fmt::format("jobs[{}]: cpus must be from 1 to {:.0f} and node_count at most {}, got "
                    "{} and {}",
                    index, kMostCores, kMostNodesOfJob, cpus, nodes));
  }
  Job& job = queued.job;
  job.name = fmt::format("{:.0f}", number_of(value, "job_id").value_or(0));
  job.tasks = static_cast<std::int32_t>(nodes);
  const double each = std::ceil(cpus / nodes);
  double mebibytes = number_of(value, "memory_per_node").value_or(0);
  if (mebibytes <= 0) mebibytes = number_of(value, "memory_per_cpu").value_or(0) * each;
  job.need = amount_of(each, std::clamp(mebibytes, 0.0, kMostMebibytes),
                       gpus_in(text_of(value, "tres_per_node")));
  found.jobs.push_back(std::move(queued));
  return {};
}

Result<void> take_document(const rapidjson::Document& document, Found& found) {
  if (const Value* nodes = member(document, "nodes"); nodes != nullptr && nodes->IsArray()) {
    for (const Value& node : nodes->GetArray()) take_node(node, found);
  }
  if (const Value* groups = member(document, "sinfo"); groups != nullptr && groups->IsArray()) {
    for (const Value& group : groups->GetArray()) take_group(group, found);
  }
  if (const Value* jobs = member(document, "jobs"); jobs != nullptr && jobs->IsArray()) {
    for (rapidjson::SizeType i = 0; i < jobs->Size(); ++i) {
      if (auto done = take_job((*jobs)[i], i, found); !done) return done;
    }
  }
  return {};
}

}  // namespace

Result<Scene> read_slurm(std::istream& in, const std::string& name, Duration job_duration) {
  Found found;
  rapidjson::IStreamWrapper wrapper(in);
  std::size_t documents = 0;
  while (true) {
    while (wrapper.Peek() == ' ' || wrapper.Peek() == '\n' || wrapper.Peek() == '\r' ||
           wrapper.Peek() == '\t') {
      wrapper.Take();
    }
    if (wrapper.Peek() == '\0') break;
    rapidjson::Document document;
    document.ParseStream<rapidjson::kParseStopWhenDoneFlag | rapidjson::kParseIterativeFlag>(
        wrapper);
    if (document.HasParseError()) {
      return fail(ErrorCode::parse,
                  fmt::format("{}: at byte {}: {}", name, document.GetErrorOffset(),
                              rapidjson::GetParseError_En(document.GetParseError())));
    }
    ++documents;
    if (auto done = take_document(document, found); !done) return done.error().with_context(name);
  }
  Scene scene;
  for (auto& [machine_name, machine] : found.machines) scene.machines.push_back(std::move(machine));
  // Those that run come first: they have their places.
  std::stable_sort(found.jobs.begin(), found.jobs.end(), [](const auto& a, const auto& b) {
    return a.running != b.running ? a.running : a.submit < b.submit;
  });
  for (Found::Queued& queued : found.jobs) {
    double seconds = queued.limit_seconds;
    if (seconds < 0) {
      ++found.without_limit;
      seconds = static_cast<double>(job_duration.count()) / 1000;
    }
    if (queued.running) seconds = std::max(1.0, seconds - (found.newest - queued.start));
    queued.job.duration = seconds_of(seconds);
    scene.jobs.push_back(std::move(queued.job));
  }
  scene.report.rows = scene.jobs.size();
  scene.report.passed_over = found.over;
  if (scene.jobs.empty() && scene.machines.empty()) {
    return fail(
        ErrorCode::parse,
        fmt::format("{}: there are neither jobs nor nodes in its {} documents: it should be "
                    "what \"sinfo --json\" and \"squeue --json\" print",
                    name, documents));
  }
  if (found.down > 0) {
    scene.notes.push_back(
        fmt::format("{} nodes that are down or drained are left out", found.down));
  }
  if (found.without_limit > 0) {
    scene.notes.push_back(fmt::format("{} jobs without a time limit run for {} (--job-duration)",
                                      found.without_limit, format_go_duration(job_duration)));
  }
  return scene;
}

}  // namespace kwatt::simulator::traces
