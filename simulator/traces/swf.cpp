#include "simulator/traces/swf.hpp"

#include <array>

#include <fmt/format.h>

#include "simulator/traces/units.hpp"

namespace kwatt::simulator::traces {
namespace {

constexpr std::size_t kFields = 18;
constexpr std::array<std::string_view, kFields> kNames = {
    "job number",     "submit time",      "wait time", "run time",
    "processors",     "CPU time",         "memory",    "requested processors",
    "requested time", "requested memory", "status",    "user",
    "group",          "executable",       "queue",     "partition",
    "preceding job",  "think time"};
constexpr int kSubmit = 1, kRun = 3, kProcessors = 4, kMemory = 6, kWantedProcessors = 7,
              kWantedMemory = 9, kStatus = 10;
constexpr double kCancelled = 5;
constexpr double kMostProcessors = 1e7, kMostKibibytes = 1e12;

}  // namespace

Swf::Swf(std::istream& in, std::string name, Reading reading, SwfOptions options)
    : lines_(in, std::move(name), ';'), reading_(reading), options_(options) {}

Result<std::optional<Job>> Swf::job_of(std::string_view line) const {
  const auto row = split_blanks(line);
  if (row.size() != kFields) {
    return fail(ErrorCode::parse, fmt::format("expected the {} fields of the Standard Workload "
                                              "Format, got {}",
                                              kFields, row.size()));
  }
  std::array<double, kFields> field{};
  for (const int i :
       {0, kSubmit, kRun, kProcessors, kMemory, kWantedProcessors, kWantedMemory, kStatus}) {
    const auto index = static_cast<std::size_t>(i);
    const double most = i == kProcessors || i == kWantedProcessors ? kMostProcessors
                        : i == kMemory || i == kWantedMemory       ? kMostKibibytes
                                                                   : kMostSeconds;
    auto value = number_in(row[index], fmt::format("field {} ({})", i + 1, kNames[index]),
                           i == kSubmit ? 0 : -1, most);
    if (!value) return value.error();
    field[index] = *value;
  }
  const double run = field[kRun];
  if (run <= 0) {
    if (field[kStatus] == kCancelled || run == 0 || run == -1) return std::optional<Job>{};
  }
  const double processors = field[kProcessors] > 0 ? field[kProcessors] : field[kWantedProcessors];
  if (processors < 1) {
    return fail(ErrorCode::parse, "fields 5 and 8 (processors): one of them must be above 0");
  }
  const double kibibytes =
      std::max(0.0, field[kMemory] > 0 ? field[kMemory] : field[kWantedMemory]);
  const auto all = rounded(processors);
  const std::int64_t tasks = (all + options_.cores_per_task - 1) / options_.cores_per_task;
  const std::int64_t each = (all + tasks - 1) / tasks;
  Job job;
  job.name = std::string(row[0]);
  job.arrival = seconds_of(field[kSubmit]);
  job.duration = seconds_of(run);
  job.tasks = static_cast<std::int32_t>(tasks);
  job.need = amount_of(static_cast<double>(each), kibibytes / 1024 * static_cast<double>(each), 0);
  return std::optional<Job>{std::move(job)};
}

Result<std::optional<Job>> Swf::next() {
  while (true) {
    auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) return std::optional<Job>{};
    auto job = job_of(**line);
    if (job && *job && (*job)->arrival < last_) job = back_in_time((*job)->arrival, last_);
    if (!job) {
      if (auto error = bad_row(lines_, job.error(), reading_, report_)) return *error;
      continue;
    }
    if (!*job) {
      ++report_.passed_over;
      continue;
    }
    last_ = (*job)->arrival;
    ++report_.rows;
    return std::move(*job);
  }
}

}  // namespace kwatt::simulator::traces
