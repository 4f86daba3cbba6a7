// Reads instances as JSON, one a line, and prints a placement per strategy, one line of JSON each:
// what test_optimum.py compares with an exact solver and ./dev bench placement measures.
//
//   in:  {"bootOverSeconds", "nodes": [{"milliwatts": [11], "millicores", "memory" (bytes), "pods",
//         "awake", "loadPermille", "requestedMillicores", "requestedMemory", "standbyMilliwatts",
//         "bootMillijoules"}], "pods": [{"millicores", "memory", "replicas"}]}
//   out: {"batch" | "oneByOne" | "mostAllocated" | "leastAllocated":
//         {"milliwatts", "unplaced", "seconds" (CPU time), "counts": [[replicas of pod on node]]}}
#include <ctime>
#include <iostream>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "placement/batch.hpp"

namespace {

using namespace kwatt;
using namespace kwatt::placement;

struct Instance {
  std::vector<NodeInfo> nodes;
  std::vector<PodInfo> pods;
  std::vector<std::size_t> kinds;  // of each pod: its position in the instance's list
  std::size_t kind_count = 0;
  BatchSettings settings;
};

Instance instance_of(const rapidjson::Value& json) {
  Instance instance;
  instance.settings.energy.boot_over = std::chrono::seconds{json["bootOverSeconds"].GetInt64()};
  for (const auto& n : json["nodes"].GetArray()) {
    NodeInfo node;
    node.name = fmt::format("node-{:02}", instance.nodes.size());
    auto object = std::make_shared<api::Node>();
    object->meta.name = node.name;
    node.node = object;
    node.face = face_of(*object);
    node.allocatable.cpu = Millicores{n["millicores"].GetInt64()};
    node.allocatable.memory = Bytes{n["memory"].GetInt64()};
    node.allocatable.pods = n["pods"].GetInt64();
    node.requested.cpu = Millicores{n["requestedMillicores"].GetInt64()};
    node.requested.memory = Bytes{n["requestedMemory"].GetInt64()};
    node.awake = n["awake"].GetBool();
    node.load = Permille{n["loadPermille"].GetInt64()};
    for (rapidjson::SizeType i = 0; i < 11; ++i) {
      node.model.curve.points[i] = Milliwatts{n["milliwatts"][i].GetInt64()};
    }
    node.model.standby = Milliwatts{n["standbyMilliwatts"].GetInt64()};
    node.model.boot_energy = Millijoules{n["bootMillijoules"].GetInt64()};
    instance.nodes.push_back(std::move(node));
  }
  // As pods arrive: of all kinds in turn, not one kind after another.
  std::vector<std::int64_t> left;
  std::vector<std::shared_ptr<const api::PodTemplate>> templates;
  for (const auto& p : json["pods"].GetArray()) {
    auto spec = std::make_shared<api::PodTemplate>();
    spec->requests.cpu = Millicores{p["millicores"].GetInt64()};
    spec->requests.memory = Bytes{p["memory"].GetInt64()};
    templates.push_back(std::move(spec));
    left.push_back(p["replicas"].GetInt64());
  }
  instance.kind_count = left.size();
  for (bool any = true; any;) {
    any = false;
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (left[k] == 0) continue;
      --left[k];
      any = true;
      PodInfo pod;
      pod.spec = templates[k];
      pod.expected = templates[k]->requests.cpu;
      instance.pods.push_back(std::move(pod));
      instance.kinds.push_back(k);
    }
  }
  return instance;
}

std::string answer(const Instance& instance, std::string_view name, const BatchPlan& plan,
                   double seconds) {
  std::vector<std::vector<int>> counts(instance.kind_count,
                                       std::vector<int>(instance.nodes.size()));
  std::size_t unplaced = 0;
  for (std::size_t p = 0; p < plan.node.size(); ++p) {
    if (plan.node[p]) {
      ++counts[instance.kinds[p]][*plan.node[p]];
    } else {
      ++unplaced;
    }
  }
  std::string rows;
  for (const auto& row : counts) {
    rows += fmt::format("{}[{}]", rows.empty() ? "" : ",", fmt::join(row, ","));
  }
  return fmt::format(R"("{}":{{"milliwatts":{},"unplaced":{},"seconds":{:.6f},"counts":[{}]}})",
                     name, plan.increase.count(), unplaced, seconds, rows);
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    rapidjson::Document json;
    json.Parse(line.c_str());
    if (json.HasParseError() || !json.IsObject()) {
      std::cerr << "not a JSON object: " << line.substr(0, 80) << '\n';
      return 2;
    }
    const Instance instance = instance_of(json);
    std::vector<const NodeInfo*> nodes;
    for (const NodeInfo& node : instance.nodes) nodes.push_back(&node);
    std::string out;
    const auto run = [&](std::string_view name, const auto& place) {
      const std::clock_t start = std::clock();
      const auto plan = place();
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      out += out.empty() ? "{" : ",";
      out += answer(instance, name, *plan, seconds);
    };
    const BatchSettings& s = instance.settings;
    run("batch", [&] { return place_batch(instance.pods, nodes, s); });
    run("oneByOne", [&] { return place_one_by_one(instance.pods, nodes, s); });
    run("mostAllocated",
        [&] { return place_by_allocation(instance.pods, nodes, Allocated::most, s); });
    run("leastAllocated",
        [&] { return place_by_allocation(instance.pods, nodes, Allocated::least, s); });
    std::cout << out << "}\n";
  }
  return 0;
}
