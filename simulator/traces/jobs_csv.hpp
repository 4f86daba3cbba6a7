#pragma once
// Our own format of jobs: CSV with a header, columns in any order, rows by arrival.
//   required: id, arrival_s, duration_s, cpu
//   optional: memory_mib, gpu, tasks, deadline_s, usage_percent
// cpu in cores, gpu in GPUs (both may be fractions), deadline_s counts from the trace's start as
// arrival_s does; "" is the default. See docs/reference/traces.md.
#include "simulator/traces/reading.hpp"

namespace kwatt::simulator::traces {

// Reads row by row. The stream must outlive it.
class JobsCsv final : public JobSource {
 public:
  JobsCsv(std::istream& in, std::string name, Reading reading);
  Result<std::optional<Job>> next() override;
  const Report& report() const { return report_; }

 private:
  Result<Job> job_of(const std::vector<std::string_view>& row) const;

  Lines lines_;
  Reading reading_;
  Report report_;
  std::optional<Columns> columns_;
  std::vector<std::string> unquoted_;
  Duration last_{0};
};

}  // namespace kwatt::simulator::traces
