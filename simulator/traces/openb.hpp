#pragma once
// Alibaba's GPU cluster trace of 2023 (github.com/alibaba/clusterdata, cluster-trace-gpu-v2023):
// openb_node_list_*.csv and openb_pod_list_*.csv. Columns are found by their names in the first
// line, in any order; others are passed over. Comma-separated, no quotes; a line may end in \r.
//
//   nodes: sn, cpu_milli, memory_mib, gpu (count), model
//   pods:  name, cpu_milli, memory_mib, num_gpu, gpu_milli (0..1000 of each GPU), and, where the
//          file has them, gpu_spec (models separated by |; empty: any) and creation_time,
//          deletion_time (seconds)
//
// Errors of both readers: parse, "NAME:LINE: what is wrong and what was expected".
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace kwatt::simulator {

struct OpenbNode {
  std::string name;
  Millicores cpu;  // > 0
  Bytes memory;    // > 0
  int gpus = 0;    // 0..32
  std::string model;
};

struct OpenbPod {
  std::string name;
  Millicores cpu;
  Bytes memory;
  int gpus = 0;
  int gpu_milli = 0;                // of each GPU: 1000 if gpus > 1; 0 without GPUs
  std::vector<std::string> models;  // empty: any
  std::optional<std::int64_t> created_second, deleted_second;

  std::int64_t total_gpu_milli() const { return std::int64_t{gpus} * gpu_milli; }
};

Result<std::vector<OpenbNode>> read_openb_nodes(std::istream& in, std::string_view name);
Result<std::vector<OpenbPod>> read_openb_pods(std::istream& in, std::string_view name);

}  // namespace kwatt::simulator
