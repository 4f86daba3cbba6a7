#include "simulator/traces/ecsched.hpp"

#include <fmt/format.h>

#include "simulator/traces/units.hpp"

namespace kwatt::simulator::traces {
namespace {

constexpr std::size_t kLeast = 4, kMost = 6;
constexpr double kMebibytesPerGibibyte = 1024;

bool is_header(const std::vector<std::string_view>& row) {
  return row.size() >= kLeast && !number_in(row[1], "", -kMostSeconds, kMostSeconds) &&
         !number_in(row.back(), "", -kMostSeconds, kMostSeconds);
}

}  // namespace

Ecsched::Ecsched(std::istream& in, std::string name, Reading reading)
    : lines_(in, std::move(name)), reading_(reading) {}

Result<Job> Ecsched::job_of(const std::vector<std::string_view>& row) {
  if (row.size() < kLeast || row.size() > kMost) {
    return fail(ErrorCode::parse,
                fmt::format("expected 4 to 6 fields (id, arrival, cpu, memory, gpu, duration), got "
                            "{}",
                            row.size()));
  }
  const auto arrival = number_in(row[1], "arrival", 0, kMostSeconds);
  if (!arrival) return arrival.error();
  const auto cpu = number_in(row[2], "cpu", 0.001, kMostCores);
  if (!cpu) return cpu.error();
  Result<double> memory = 0.0, gpu = 0.0;
  if (row.size() > 4) {
    memory = number_in(row[3], "memory", 0, kMostMebibytes / kMebibytesPerGibibyte);
    if (!memory) return memory.error();
  }
  if (row.size() > 5) {
    gpu = number_in(row[4], "gpu", 0, kMostGpus);
    if (!gpu) return gpu.error();
  }
  const auto duration = number_in(row.back(), "duration", 0.001, kMostSeconds);
  if (!duration) return duration.error();
  Job job;
  job.name = std::string(row[0]);
  job.arrival = seconds_of(*arrival);
  job.duration = seconds_of(*duration);
  job.need = amount_of(*cpu, *memory * kMebibytesPerGibibyte, *gpu);
  return job;
}

Result<std::optional<Job>> Ecsched::next() {
  while (true) {
    auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) return std::optional<Job>{};
    const auto row = (*line)->find(',') == std::string_view::npos ? split_blanks(**line)
                                                                  : split_csv(**line, unquoted_);
    if (std::exchange(first_, false) && is_header(row)) continue;
    auto job = job_of(row);
    if (job && job->arrival < last_) job = back_in_time(job->arrival, last_);
    if (!job) {
      if (auto error = bad_row(lines_, job.error(), reading_, report_)) return *error;
      continue;
    }
    last_ = job->arrival;
    ++report_.rows;
    return std::optional<Job>{std::move(*job)};
  }
}

}  // namespace kwatt::simulator::traces
