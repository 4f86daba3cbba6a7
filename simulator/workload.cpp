#include "simulator/workload.hpp"

#include <algorithm>

namespace kwatt::simulator {

JobList::JobList(std::vector<Job> jobs) : jobs_(std::move(jobs)) {
  std::stable_sort(jobs_.begin(), jobs_.end(),
                   [](const Job& a, const Job& b) { return a.arrival < b.arrival; });
}

Result<std::optional<Job>> JobList::next() {
  if (at_ == jobs_.size()) return std::optional<Job>{};
  return std::optional<Job>{jobs_[at_++]};
}

}  // namespace kwatt::simulator
