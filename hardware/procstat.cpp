#include "hardware/procstat.hpp"

#include <algorithm>

namespace kwatt::hardware {

Result<CpuTimes> read_cpu_times(const HostFs& proc) {
  auto words = read_words(proc, "stat");
  if (!words) return words.error();
  // cpu user nice system idle iowait irq softirq steal guest guest_nice
  constexpr std::size_t kIdle = 4, kIowait = 5, kSteal = 8;
  if (words->size() <= kIdle || words->front() != "cpu") {
    return fail(ErrorCode::parse, "stat: the first line is not the sum of all CPUs");
  }
  CpuTimes times;
  for (std::size_t i = 1; i < words->size() && i <= kSteal; ++i) {
    const auto ticks = parse_number((*words)[i]);
    if (!ticks) return fail(ErrorCode::parse, "stat: not a number", (*words)[i]);
    times.total += *ticks;
    if (i != kIdle && i != kIowait) times.busy += *ticks;
  }
  return times;
}

std::optional<Permille> busy_between(const CpuTimes& before, const CpuTimes& after) {
  const std::int64_t total = after.total - before.total;
  const std::int64_t busy = after.busy - before.busy;
  if (total <= 0 || busy < 0) return std::nullopt;
  // iowait may fall by a few ticks (proc(5)), which would make busy the larger one.
  return Permille{std::min<std::int64_t>(1000, busy * 1000 / total)};
}

Permille frequency_invariant(Permille busy, Megahertz average, Megahertz maximum) {
  if (average.count() <= 0 || maximum.count() <= 0) return busy;
  return Permille{std::min<std::int64_t>(1000, busy.count() * average.count() / maximum.count())};
}

Result<std::string> read_boot_id(const HostFs& proc) {
  constexpr std::size_t kLongest = 64;
  auto id = read_line(proc, "sys/kernel/random/boot_id");
  if (!id) return id.error();
  if (id->empty() || id->size() > kLongest) {
    return fail(ErrorCode::parse, "boot_id is empty or too long");
  }
  return *id;
}

}  // namespace kwatt::hardware
