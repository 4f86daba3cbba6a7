#include "simulator/traces/machines_csv.hpp"

#include <fmt/format.h>

#include "simulator/traces/units.hpp"

namespace kwatt::simulator::traces {
namespace {

const std::vector<std::string_view> kColumns = {
    "name",    "cpu",    "memory_mib", "count",      "gpu",       "zone",    "idle_w", "max_w",
    "curve_w", "boot_s", "boot_j",     "shutdown_s", "standby_w", "min_mhz", "max_mhz"};
constexpr std::size_t kRequired = 3;
constexpr double kMostWatts = 1e6, kMostMegahertz = 100'000;
constexpr std::size_t kCurvePoints = 11;

Result<std::vector<std::int64_t>> curve_of(std::string_view text) {
  std::vector<std::int64_t> curve;
  for (const std::string_view field : split_blanks(text)) {
    auto watts = number_in(field, "curve_w", 0, kMostWatts);
    if (!watts) return watts.error();
    curve.push_back(rounded(*watts * 1000));
  }
  if (curve.size() != kCurvePoints) {
    return fail(ErrorCode::parse, fmt::format("curve_w: expected 11 watts at 0, 10 … 100 % load, "
                                              "got {}",
                                              curve.size()));
  }
  return curve;
}

struct Row {
  MachineSpec machine;
  std::int64_t count = 1;
};

Result<Row> row_of(const Columns& columns, const std::vector<std::string_view>& row) {
  std::optional<Error> error;
  const auto value = [&](std::string_view column, double otherwise, double least, double most) {
    const auto text = columns.field(row, column);
    if (!text || error) return otherwise;
    auto number = number_in(*text, column, least, most);
    if (!number) error = number.error();
    return number ? *number : otherwise;
  };
  for (std::size_t i = 0; i < kRequired; ++i) {
    if (columns.field(row, kColumns[i])) continue;
    return fail(ErrorCode::parse, fmt::format("column \"{}\" is empty", kColumns[i]));
  }
  Row out;
  MachineSpec& machine = out.machine;
  machine.name = std::string(*columns.field(row, "name"));
  machine.zone = std::string(columns.field(row, "zone").value_or(""));
  machine.capacity =
      amount_of(value("cpu", 1, 0.001, kMostCores), value("memory_mib", 0, 0, kMostMebibytes),
                value("gpu", 0, 0, kMostGpus));
  out.count = rounded(value("count", 1, 1, static_cast<double>(kMostMachines)));
  machine.min_mhz = rounded(value("min_mhz", 1200, 1, kMostMegahertz));
  machine.max_mhz = rounded(value("max_mhz", 3200, 1, kMostMegahertz));
  api::PowerModelSpec model;
  model.idle_milliwatts = rounded(value("idle_w", 0, 0, kMostWatts) * 1000);
  model.max_milliwatts = rounded(value("max_w", 0, 0, kMostWatts) * 1000);
  model.standby_milliwatts = rounded(value("standby_w", 0, 0, kMostWatts) * 1000);
  model.boot_seconds = rounded(value("boot_s", 120, 0, 86'400));
  model.boot_joules = rounded(value("boot_j", 0, 0, 1e9));
  model.shutdown_seconds = rounded(value("shutdown_s", 30, 0, 86'400));
  if (error) return *error;
  if (const auto text = columns.field(row, "curve_w")) {
    auto curve = curve_of(*text);
    if (!curve) return curve.error();
    model.curve_milliwatts = std::move(*curve);
  } else if (model.max_milliwatts < model.idle_milliwatts) {
    return fail(ErrorCode::parse, "max_w: must not be below idle_w");
  }
  if (machine.max_mhz < machine.min_mhz) {
    return fail(ErrorCode::parse, "max_mhz: must not be below min_mhz");
  }
  machine.power = models::model_of(model, machine.capacity.cpu);
  return out;
}

void add_all(std::vector<MachineSpec>& machines, const MachineSpec& one, std::int64_t count) {
  for (std::int64_t i = 1; i <= count; ++i) {
    machines.push_back(one);
    if (count > 1) machines.back().name = fmt::format("{}-{}", one.name, i);
  }
}

}  // namespace

Result<std::vector<MachineSpec>> read_machines(std::istream& in, const std::string& name) {
  Lines lines(in, name);
  std::optional<Columns> columns;
  std::vector<std::string> unquoted;
  std::vector<MachineSpec> machines;
  while (true) {
    auto line = lines.next();
    if (!line) return line.error();
    if (!*line) break;
    if (!columns) {
      auto read = Columns::read(lines, **line, kColumns, kRequired);
      if (!read) return read.error();
      columns = std::move(*read);
      continue;
    }
    const auto row = split_csv(**line, unquoted);
    if (row.size() != columns->count()) {
      return fail(ErrorCode::parse, fmt::format("{}: expected {} fields, got {}", lines.where(),
                                                columns->count(), row.size()));
    }
    auto one = row_of(*columns, row);
    if (!one) return one.error().with_context(lines.where());
    if (machines.size() + static_cast<std::size_t>(one->count) > kMostMachines) {
      return fail(ErrorCode::parse,
                  fmt::format("{}: more than {} machines", lines.where(), kMostMachines));
    }
    add_all(machines, one->machine, one->count);
  }
  if (machines.empty()) {
    return fail(ErrorCode::parse,
                fmt::format("{}: there are no machines: expected a header such as "
                            "name,cpu,memory_mib and a row for each kind",
                            name));
  }
  return machines;
}

Result<std::vector<MachineSpec>> parse_machines(std::string_view text) {
  std::vector<MachineSpec> machines;
  std::vector<std::string> unquoted;
  std::size_t group = 0;
  for (const std::string_view word : split_csv(text, unquoted)) {
    ++group;
    const auto complain = [&](std::string_view why) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("machines \"{}\": {}; expected COUNTxCORESxGIB, with xGPUS and @ZONE "
                              "as wanted, such as 40x32x128@DE",
                              word, why));
    };
    const std::size_t at = word.find('@');
    std::string_view sizes = word.substr(0, at);
    std::vector<double> numbers;
    while (!sizes.empty()) {
      const std::size_t end = std::min(sizes.find('x'), sizes.size());
      auto number = number_in(sizes.substr(0, end), "size", 0, kMostMebibytes);
      if (!number) return complain(number.error().message);
      numbers.push_back(*number);
      sizes.remove_prefix(std::min(end + 1, sizes.size()));
    }
    if (numbers.size() < 3 || numbers.size() > 4) return complain("3 or 4 sizes are needed");
    if (numbers[0] < 1 || numbers[0] != std::floor(numbers[0]) || numbers[1] <= 0) {
      return complain("a count of at least 1 and cores above 0 are needed");
    }
    if (machines.size() + static_cast<std::size_t>(numbers[0]) > kMostMachines) {
      return complain(fmt::format("at most {} machines can be simulated", kMostMachines));
    }
    MachineSpec one;
    one.zone = at == std::string_view::npos ? "" : std::string(word.substr(at + 1));
    one.capacity = amount_of(numbers[1], numbers[2] * 1024, numbers.size() > 3 ? numbers[3] : 0);
    api::PowerModelSpec model;
    model.boot_seconds = 120;
    model.shutdown_seconds = 30;
    model.standby_milliwatts = 5000;
    one.power = models::model_of(model, one.capacity.cpu);
    one.name = fmt::format("{}{}", static_cast<char>('a' + (group - 1) % 26),
                           group > 26 ? std::to_string(group / 26) : "");
    const auto count = static_cast<std::int64_t>(numbers[0]);
    for (std::int64_t i = 1; i <= count; ++i) {
      machines.push_back(one);
      machines.back().name = fmt::format("{}-{}", one.name, i);
    }
  }
  if (machines.empty()) {
    return fail(ErrorCode::invalid_argument, "there are no machines to simulate");
  }
  return machines;
}

}  // namespace kwatt::simulator::traces
