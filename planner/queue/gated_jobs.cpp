#include "planner/queue/gated_jobs.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

namespace kwatt::planner::queue {
namespace {

using PodPointer = std::shared_ptr<const api::Pod>;

std::string_view mark(const api::Pod& pod, std::string_view key) {
  const std::string_view label = pod.spec->labels.get(key);
  return label.empty() ? pod.annotations.get(key) : label;
}

bool alive(const api::Pod& pod) {
  return !pod.terminal() && !pod.deletion_timestamp;
}

bool behind_gate(const api::Pod& pod, const Released& released) {
  return pod.spec->scheduling_gated && pod.node_name.empty() && alive(pod) &&
         !released.contains(pod.uid);
}

// What one pod wishes. `wrong` collects what cannot be read.
struct Wish {
  std::uint32_t gang_size = 0;  // 0: alone
  Duration expected = kExpectedWithoutWord;
  TimePoint deadline = TimePoint::max();
  std::optional<Duration> max_delay;
  std::string wrong;
};

void complain(Wish& wish, std::string_view key, std::string_view want, std::string_view got) {
  if (!wish.wrong.empty()) wish.wrong += "; ";
  wish.wrong += fmt::format("{}: expected {}, got \"{}\"", key, want, got.substr(0, 100));
}

Wish wish_of(const api::Pod& pod) {
  Wish wish;
  if (const auto text = mark(pod, names::kGangSize); !text.empty()) {
    std::uint32_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error == std::errc{} && end == text.data() + text.size() && size >= 1 &&
        size <= kLargestGang) {
      wish.gang_size = size;
    } else {
      complain(wish, names::kGangSize, fmt::format("1 to {}", kLargestGang), text);
    }
  }
  const auto duration = [&](std::string_view key) -> std::optional<Duration> {
    const auto text = mark(pod, key);
    if (text.empty()) return std::nullopt;
    const auto value = parse_go_duration(text);
    if (value && *value >= Duration{0}) return value;
    complain(wish, key, "a duration such as 90m", text);
    return std::nullopt;
  };
  if (const auto expected = duration(names::kExpected)) wish.expected = *expected;
  wish.max_delay = duration(names::kMaxDelay);
  if (const auto text = mark(pod, names::kDeadline); !text.empty()) {
    if (const auto time = parse_rfc3339(text)) {
      wish.deadline = *time;
    } else {
      complain(wish, names::kDeadline, "a time such as 2026-11-20T21:00:00Z", text);
    }
  }
  return wish;
}

// Which pods belong together; "" for a pod that is alone.
std::string gang_of(const api::Pod& pod) {
  if (mark(pod, names::kGangSize).empty()) return "";
  const std::string_view name = mark(pod, names::kGang);
  if (!name.empty()) return fmt::format("{}/{}", pod.namespace_name, name);
  return pod.owner == nullptr ? "" : pod.owner->uid;
}

void merge(QueuedJob& into, const api::Pod& pod, const Wish& wish) {
  strategies::Job& job = into.job;
  const strategies::Request need = request_of(pod.spec->requests);
  job.request.cpu = std::max(job.request.cpu, need.cpu);
  job.request.memory = std::max(job.request.memory, need.memory);
  job.request.gpu_milli = std::max(job.request.gpu_milli, need.gpu_milli);
  const TimePoint created = pod.creation_timestamp.value_or(TimePoint{});
  job.arrival = std::min(job.arrival, created);
  job.expected = std::max(job.expected, wish.expected);
  job.deadline = std::min(job.deadline, wish.deadline);
  if (wish.max_delay) job.latest_start = std::min(job.latest_start, created + *wish.max_delay);
}

}  // namespace

strategies::Request request_of(const api::Resources& resources) {
  strategies::Request out{resources.cpu, resources.memory, 0};
  for (const char* gpu : {"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"}) {
    const auto found = resources.extended.find(gpu);
    if (found != resources.extended.end()) out.gpu_milli += found->second * 1000;
  }
  if (!strategies::valid(out)) out.cpu = Millicores{1};
  return out;
}

std::string on_its_way_to(const api::Pod& pod, const Released& released) {
  if (!pod.node_name.empty() || !alive(pod)) return "";
  const auto found = released.find(pod.uid);
  if (found != released.end()) return found->second;
  if (pod.spec->scheduling_gated) return "";
  return std::string(pod.annotations.get(names::kAssignedNode));
}

std::vector<GatedJob> gated_jobs(const Snapshot& snapshot, const Released& released) {
  std::vector<GatedJob> out;
  std::map<std::pair<std::string, std::string>, std::size_t> gangs;  // by queue and gang
  for (const PodPointer& pod : snapshot.unbound) {
    const std::string queue(mark(*pod, names::kQueue));
    if (queue.empty() || !behind_gate(*pod, released)) continue;
    const Wish wish = wish_of(*pod);
    const std::string gang = gang_of(*pod);
    std::size_t at = out.size();
    if (!gang.empty()) at = gangs.emplace(std::pair{queue, gang}, at).first->second;
    if (at == out.size()) {
      GatedJob& made = out.emplace_back();
      made.queue = queue;
      made.namespace_name = pod->namespace_name;
      const std::string_view name = mark(*pod, names::kGang);
      made.name = gang.empty()            ? pod->name
                  : !name.empty()         ? std::string(name)
                  : pod->owner != nullptr ? pod->owner->name
                                          : pod->name;
      made.job.name = made.namespace_name + "/" + made.name;
      made.job.job.expected = Duration{0};
      made.job.job.arrival = TimePoint::max();
      made.job.job.members = 0;
      made.job.missing = std::max(wish.gang_size, 1U);
    }
    GatedJob& job = out[at];
    job.pods.push_back(pod);
    merge(job.job, *pod, wish);
    ++job.job.job.members;
    job.job.missing -= std::min(job.job.missing, 1U);
    if (job.malformed.empty()) job.malformed = wish.wrong;
  }
  if (!gangs.empty()) {
    // Members that passed the gate before: what is left of their gang follows at once.
    const auto passed = [&](const api::Pod& pod) {
      if (!alive(pod) || behind_gate(pod, released)) return;
      const std::string queue(mark(pod, names::kQueue));
      if (queue.empty()) return;
      const auto found = gangs.find({queue, gang_of(pod)});
      if (found != gangs.end()) out[found->second].job.begun = true;
    };
    for (const PodPointer& pod : snapshot.unbound) passed(*pod);
    for (const auto& [name, node] : snapshot.nodes) {
      for (const PodPointer& pod : node.pods) passed(*pod);
    }
  }
  std::sort(out.begin(), out.end(), [](const GatedJob& a, const GatedJob& b) {
    return std::tie(a.job.job.arrival, a.job.name) < std::tie(b.job.job.arrival, b.job.name);
  });
  return out;
}

}  // namespace kwatt::planner::queue
