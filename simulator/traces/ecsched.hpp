#pragma once
// The job trace of the ECSched experiments (Y. Hu, H. Zhou, C. de Laat, Z. Zhao, "Concurrent
// container scheduling on heterogeneous clusters with multi-resource constraints", FGCS 102, 2020):
// a job is its id, when it arrives, the resources it wants and how long it runs. One job a line,
// fields separated by commas or blanks:
//   id  arrival  cpu  [memory  [gpu]]  duration
// arrival and duration in seconds, cpu in cores, memory in GiB, gpu in GPUs; 4 to 6 fields. A first
// line whose second field is no number is a header and is passed over. The paper publishes no
// files; this is the form in which its description is commonly written down.
#include "simulator/traces/reading.hpp"

namespace kwatt::simulator::traces {

class Ecsched final : public JobSource {
 public:
  Ecsched(std::istream& in, std::string name, Reading reading);
  Result<std::optional<Job>> next() override;
  const Report& report() const { return report_; }

 private:
  static Result<Job> job_of(const std::vector<std::string_view>& row);

  Lines lines_;
  Reading reading_;
  Report report_;
  std::vector<std::string> unquoted_;
  bool first_ = true;
  Duration last_{0};
};

}  // namespace kwatt::simulator::traces
