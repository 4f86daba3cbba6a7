#include "simulator/traces/jobs_csv.hpp"

#include <fmt/format.h>

#include "simulator/traces/units.hpp"

namespace kwatt::simulator::traces {
namespace {

const std::vector<std::string_view> kColumns = {"id",    "arrival_s",  "duration_s",
                                                "cpu",   "memory_mib", "gpu",
                                                "tasks", "deadline_s", "usage_percent"};
constexpr std::size_t kRequired = 4;
constexpr double kMostTasks = 100'000;

}  // namespace

JobsCsv::JobsCsv(std::istream& in, std::string name, Reading reading)
    : lines_(in, std::move(name)), reading_(reading) {}

Result<Job> JobsCsv::job_of(const std::vector<std::string_view>& row) const {
  const auto value = [&](std::string_view column, double otherwise, double least,
                         double most) -> Result<double> {
    const auto text = columns_->field(row, column);
    if (!text) return otherwise;
    return number_in(*text, column, least, most);
  };
  for (std::size_t i = 0; i < kRequired; ++i) {
    if (columns_->field(row, kColumns[i])) continue;
    return fail(ErrorCode::parse, fmt::format("column \"{}\" is empty", kColumns[i]));
  }
  const auto arrival = value("arrival_s", 0, 0, kMostSeconds);
  if (!arrival) return arrival.error();
  const auto duration = value("duration_s", 0, 0.001, kMostSeconds);
  if (!duration) return duration.error();
  const auto cpu = value("cpu", 0, 0.001, kMostCores);
  if (!cpu) return cpu.error();
  const auto memory = value("memory_mib", 0, 0, kMostMebibytes);
  if (!memory) return memory.error();
  const auto gpu = value("gpu", 0, 0, kMostGpus);
  if (!gpu) return gpu.error();
  const auto tasks = value("tasks", 1, 1, kMostTasks);
  if (!tasks) return tasks.error();
  const auto deadline = value("deadline_s", -1, 0, 2 * kMostSeconds);
  if (!deadline) return deadline.error();
  const auto usage = value("usage_percent", 100, 0.1, 100);
  if (!usage) return usage.error();
  Job job;
  job.name = std::string(*columns_->field(row, "id"));
  job.arrival = seconds_of(*arrival);
  job.duration = seconds_of(*duration);
  job.need = amount_of(*cpu, *memory, *gpu);
  job.tasks = static_cast<std::int32_t>(*tasks);
  job.usage = Permille{rounded(*usage * 10)};
  if (*deadline >= 0) job.deadline = seconds_of(*deadline);
  return job;
}

Result<std::optional<Job>> JobsCsv::next() {
  while (true) {
    auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) {
      if (columns_) return std::optional<Job>{};
      return fail(ErrorCode::parse, fmt::format("{}: the file is empty: expected a header such as "
                                                "id,arrival_s,duration_s,cpu,memory_mib",
                                                lines_.name()));
    }
    if (!columns_) {
      auto columns = Columns::read(lines_, **line, kColumns, kRequired);
      if (!columns) return columns.error();
      columns_ = std::move(*columns);
      continue;
    }
    const auto row = split_csv(**line, unquoted_);
    Result<Job> job = row.size() == columns_->count()
                          ? job_of(row)
                          : fail(ErrorCode::parse, fmt::format("expected {} fields, got {}",
                                                               columns_->count(), row.size()));
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
