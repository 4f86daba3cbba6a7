// How long a choice takes: filter and score of the default profile for one pod, on one core. Prints
// JSON; times are of the CPU, the median and the 99th percentile of many pods.
#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "placement/registry.hpp"

namespace {

using namespace kwatt;
using namespace kwatt::placement;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Four kinds of machines, a tenth nearly full, a tenth slow, each twentieth with a taint; with
// temperatures and two zones of electricity, so that every plugin has work.
NodeInfo node(int i) {
  auto object = std::make_shared<api::Node>();
  object->meta.name = fmt::format("node-{:04}", i);
  object->meta.labels = {{"kubernetes.io/arch", "amd64"},
                         {"topology.kubernetes.io/zone", std::string(1, i % 2 == 0 ? 'a' : 'b')}};
  if (i % 20 == 0) object->taints = {{"dedicated", "gpu", "NoSchedule", {}}};
  NodeInfo info;
  info.name = object->meta.name;
  info.node = object;
  info.face = face_of(*object);
  const std::int64_t cpus = 16 << (i % 4);
  info.allocatable.cpu = Millicores{cpus * 1000};
  info.allocatable.memory = Bytes{cpus * 4 * kGiB};
  info.allocatable.pods = 110;
  const std::int64_t used = i % 10 == 3 ? 990 : i * 37 % 800;
  info.requested.cpu = Millicores{cpus * used};
  info.requested.memory = Bytes{cpus * 4 * kGiB * used / 1000};
  info.requested.pods = 20;
  info.load = Permille{used};
  info.slow = i % 10 == 0;
  api::PowerModelSpec spec;
  spec.idle_milliwatts = 50'000 + cpus * 500;
  spec.max_milliwatts = 150'000 + cpus * 2'000 + i % 7 * 1'000;
  info.model = models::model_of(spec, info.allocatable.cpu);
  info.thermal = {Millicelsius{22'000 + i % 9 * 1'000}, Millicelsius{55'000 + i % 20 * 1'000},
                  Millicelsius{40'000}, Millicelsius{85'000}};
  info.grams_per_kwh = i % 2 == 0 ? 120 : 380;
  return info;
}

PodInfo pod(int i) {
  auto spec = std::make_shared<api::PodTemplate>();
  spec->requests.cpu = Millicores{100 + 50 * (i % 40)};
  spec->requests.memory = Bytes{(1 + i % 4) * kGiB / 2};
  if (i % 4 == 0) spec->node_selector = {{"kubernetes.io/arch", "amd64"}};
  PodInfo info;
  info.spec = spec;
  info.namespace_name = "shop";
  info.owner_uid = "web";
  info.expected = spec->requests.cpu;
  return info;
}

// CPU seconds of this thread.
double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void measure(int nodes, int repeats, std::string_view end) {
  std::vector<NodeInfo> all;
  for (int i = 0; i < nodes; ++i) all.push_back(node(i));
  std::vector<const NodeInfo*> targets;
  for (const NodeInfo& info : all) targets.push_back(&info);
  const auto framework = *node_framework(default_profile());
  std::vector<double> times;
  std::size_t chosen = 0;
  for (int i = 0; i < repeats; ++i) {
    const PodInfo request = pod(i);
    const double start = cpu_now();
    const auto choice = framework.choose(request, targets);
    times.push_back(cpu_now() - start);
    if (choice.has_value() && choice->best) ++chosen;
  }
  std::sort(times.begin(), times.end());
  fmt::print(R"({{"nodes":{},"chosen":{},"pods":{},"medianMicros":{:.2f},"p99Micros":{:.2f}}}{})",
             nodes, chosen, repeats, times[times.size() / 2] * 1e6,
             times[times.size() * 99 / 100] * 1e6, end);
}

}  // namespace

int main() {
  fmt::print("[");
  measure(500, 4000, ",");
  measure(5000, 800, "]\n");
  return 0;
}
