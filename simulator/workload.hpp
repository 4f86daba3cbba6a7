#pragma once
// The work that is replayed: jobs, which come, run for a time and end, and services, which stay and
// use what their series says. Times are milliseconds since the simulation's start.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace kwatt::simulator {

// An amount of a machine; the same three wherever work and machines meet.
struct Amount {
  Millicores cpu;
  Bytes memory;
  std::int64_t gpu_milli = 0;  // thousandths of a GPU
  bool fits_in(const Amount& room) const {
    return cpu <= room.cpu && memory <= room.memory && gpu_milli <= room.gpu_milli;
  }
  Amount& operator+=(const Amount& other) {
    cpu += other.cpu;
    memory += other.memory;
    gpu_milli += other.gpu_milli;
    return *this;
  }
  Amount& operator-=(const Amount& other) {
    cpu -= other.cpu;
    memory -= other.memory;
    gpu_milli -= other.gpu_milli;
    return *this;
  }
  bool operator==(const Amount&) const = default;
};

// Runs once, from start to end, on `tasks` places at the same time (a gang, such as an MPI job; the
// places may be on one machine). `duration` is that at full speed.
struct Job {
  std::string name;
  Duration arrival{0}, duration{0};
  Amount need;                       // of each task
  std::int32_t tasks = 1;            // start together, end together
  Permille usage = percent(100);     // how much of need.cpu it keeps busy
  std::optional<Duration> deadline;  // to be done by then, since the simulation's start
  bool operator==(const Job&) const = default;
};

// Where jobs come from, one by one, so that a trace need not fit into memory. Not thread-safe.
class JobSource {
 public:
  virtual ~JobSource() = default;
  // The next job, by arrival; nullopt: there are no more. Errors: parse, with file and line.
  virtual Result<std::optional<Job>> next() = 0;
};

// Jobs that are at hand. Sorts them by arrival; those of one moment stay in their order.
class JobList final : public JobSource {
 public:
  explicit JobList(std::vector<Job> jobs);
  Result<std::optional<Job>> next() override;

 private:
  std::vector<Job> jobs_;
  std::size_t at_ = 0;
};

// Runs from `arrival` to `end`. Sample i of `use` holds from arrival + i·step on, the last one to
// the end: a share of need.cpu, which may be above 1000 ‰ where more is wanted than was asked for.
struct Service {
  std::string name;
  Duration arrival{0};
  std::optional<Duration> end;  // nullopt: to the end of the simulation
  Amount need;
  Duration step = std::chrono::minutes{5};
  std::vector<Permille> use;  // empty: always 1000 ‰
  // The machine it runs on at first, if it has room; nullopt: wherever the strategy puts it.
  std::optional<std::string> on;
};

}  // namespace kwatt::simulator
