#pragma once
// The Standard Workload Format of the Parallel Workloads Archive (D. G. Feitelson, D. Tsafrir,
// D. Krakov, "Experience with using the Parallel Workloads Archive", JPDC 74(10), 2014; version 2.2
// of the format): 18 numbers a line, ';' begins a comment, -1 is "not known".
//
// Taken from it: job number (1), submit time (2), run time (4), processors (5, else 8), memory per
// processor in KiB (7, else 10), status (11). A processor is a core. Jobs that never ran (cancelled
// before they started, or without run time) are passed over and counted.
#include "simulator/traces/reading.hpp"

namespace kwatt::simulator::traces {

struct SwfOptions {
  // A job of more processors is a gang: as many equal tasks as needed of at most so many cores.
  std::int64_t cores_per_task = 16;
};

class Swf final : public JobSource {
 public:
  Swf(std::istream& in, std::string name, Reading reading, SwfOptions options = {});
  Result<std::optional<Job>> next() override;
  const Report& report() const { return report_; }

 private:
  // nullopt: it never ran.
  Result<std::optional<Job>> job_of(std::string_view line) const;

  Lines lines_;
  Reading reading_;
  SwfOptions options_;
  Report report_;
  Duration last_{0};
};

}  // namespace kwatt::simulator::traces
