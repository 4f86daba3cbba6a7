#pragma once
// Clusters as they are: what kubectl and Slurm print about machines and work, and what
// `kubectl kwatt record` has written of a cluster over time.
#include "simulator/machine.hpp"
#include "simulator/traces/reading.hpp"

namespace kwatt::simulator::traces {

struct Scene {
  std::vector<MachineSpec> machines;  // by name
  std::vector<Job> jobs;
  std::vector<Service> services;
  std::optional<Duration> length;  // of a recording
  std::vector<std::string> notes;  // what was assumed or left out, sentences without a period
  Report report;
};

// `kubectl get nodes,pods -A -o json`; NodePowers in it give the machines their power models.
// Running and pending pods whose owner is a Job become jobs of `job_duration`, others services
// that use what they request; DaemonSet and static pods take their room from their node. Errors:
// parse, with the name, also where there are no nodes.
Result<Scene> read_kubectl(std::istream& in, const std::string& name, Duration job_duration);

// `sinfo --json`, `scontrol show nodes --json` and `squeue --json`, one after the other in one
// file, of Slurm 22.05 or later. Jobs run until their time limit (`job_duration` without one);
// those that run already first, with what is left. A job on several nodes is a gang. Errors: parse.
Result<Scene> read_slurm(std::istream& in, const std::string& name, Duration job_duration);

// ---- recordings: JSON lines, a header and then a line for each sample.

struct RecordedNode {
  std::string name, zone;
  Amount capacity;
  bool ready = true;
  std::vector<std::int64_t> curve_milliwatts;  // of its NodePower; empty: not given
  std::int64_t boot_seconds = 0, shutdown_seconds = 0, standby_milliwatts = 0;
};
struct RecordedPod {
  std::string uid, name;  // name: namespace/name
  bool job = false;       // its owner is a Job
  std::string node;       // "": not bound
  Amount need;
  std::optional<Millicores> used;  // measured, of metrics.k8s.io
};
struct Sample {
  TimePoint at;
  std::vector<RecordedNode> nodes;
  std::vector<RecordedPod> pods;
};
// Each with its newline.
std::string recording_header(Duration interval);
std::string recording_line(const Sample& sample);

// A pod is there from the first sample that has it to the last; one that waits is work that has
// come but not begun. Pods that are there in the last sample stay to the end of the simulation (a
// job: one interval longer). Machines are those of all samples. Errors: parse, with file and line.
Result<Scene> read_recording(std::istream& in, const std::string& name, const Reading& reading);

}  // namespace kwatt::simulator::traces
