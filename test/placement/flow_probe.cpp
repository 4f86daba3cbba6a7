// Solves assignment problems, one JSON line each, with both of our solvers: what test_flow.py
// compares with OR-tools.
//
//   in:  {"arcs": [[[node, cost], …] of each job], "unplaced": [cost of each job],
//         "units": [[price, …] of each node]}
//   out: {"assign": cost, "simplex": cost, "checked": cost of assign()'s plan by its arcs and
//   units}
#include <iostream>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "placement/flow/assignment.hpp"
#include "placement/flow/network_simplex.hpp"

using namespace kwatt::placement::flow;

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    rapidjson::Document json;
    json.Parse(line.c_str());
    if (json.HasParseError() || !json.IsObject()) {
      std::cerr << "flow_probe: not a JSON object\n";
      return 1;
    }
    Problem problem;
    for (const auto& job : json["arcs"].GetArray()) {
      for (const auto& arc : job.GetArray()) {
        problem.arcs.push_back({arc[0].GetUint(), arc[1].GetInt64()});
      }
      problem.first.push_back(static_cast<std::uint32_t>(problem.arcs.size()));
    }
    for (const auto& cost : json["unplaced"].GetArray())
      problem.unplaced.push_back(cost.GetInt64());
    for (const auto& node : json["units"].GetArray()) {
      for (const auto& price : node.GetArray()) problem.unit.push_back(price.GetInt64());
      problem.unit_first.push_back(static_cast<std::uint32_t>(problem.unit.size()));
    }
    const auto found = assign(problem);
    const auto flow = min_cost_flow(network_of(problem));
    if (!found || !flow) {
      std::cerr << (found ? flow.error() : found.error()).text() << "\n";
      return 1;
    }
    const auto checked = cost_of(problem, found->node);
    if (!checked) {
      std::cerr << checked.error().text() << "\n";
      return 1;
    }
    fmt::print("{{\"assign\":{},\"simplex\":{},\"checked\":{}}}\n", found->cost, flow->cost,
               *checked);
    std::fflush(stdout);
  }
  return 0;
}
