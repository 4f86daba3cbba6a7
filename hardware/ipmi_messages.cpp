#include "hardware/ipmi_messages.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/format.h>

#include "hardware/excerpt.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware::ipmi {
namespace {

constexpr std::int64_t kUnknownWatts = 65535;  // 16 bits all set

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(at);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// "  Label:   value" → value; empty: there is no such line.
std::string_view value_of(std::string_view out, std::string_view label) {
  for (const std::string_view line : split(out, '\n')) {
    if (!line.starts_with(label)) continue;
    const std::string_view rest = line.substr(label.size());
    if (rest.starts_with(':')) return trimmed(rest.substr(1));
  }
  return {};
}

std::optional<std::int64_t> watts_in(std::string_view value) {
  const auto unit = value.find(" Watts");
  if (unit == std::string_view::npos) return std::nullopt;
  return parse_number(value.substr(0, unit));
}

Error not_understood(std::string_view what, const std::string& out) {
  return fail(ErrorCode::protocol, fmt::format("ipmitool's {} is not understood", what),
              excerpt(out));
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Names by which makers call the sensor of the whole machine.
constexpr std::array<std::string_view, 12> kWholeMachine = {
    "pwr consumption", "power consumption", "system level",   "power meter",
    "total power",     "total_power",       "system power",   "sys power",
    "sys_power",       "sys pwr",           "pw consumption", "avg power"};

// Electricity that goes into a power supply: "PSU1 Power In", "PS2 Input Power", "PSU1_PIN".
bool supply_input(const std::string& name) {
  const bool supply = name.starts_with("ps") || contains(name, "psu");
  const bool output = contains(name, "out");
  return supply && !output && (contains(name, "in") || contains(name, "pin"));
}

struct Sensor {
  std::string name;
  Milliwatts power;
};

// Positive decimal numbers as ipmitool writes them: "182", "182.400".
std::optional<Milliwatts> milliwatts(std::string_view text) {
  const auto point = text.find('.');
  const auto whole = parse_number(text.substr(0, point));
  if (!whole || *whole < 0 || *whole > 1'000'000) return std::nullopt;
  std::int64_t part = 0;
  if (point != std::string_view::npos) {
    std::string digits(text.substr(point + 1, 3));
    digits.resize(3, '0');
    const auto thousandths = parse_number(digits);
    if (!thousandths) return std::nullopt;
    part = *thousandths;
  }
  return Milliwatts{*whole * 1000 + part};
}

std::vector<Sensor> power_sensors(const std::string& csv) {
  std::vector<Sensor> sensors;
  for (const std::string_view line : split(csv, '\n')) {
    const auto fields = split(line, ',');
    if (fields.size() < 4 || fields[2] != "Watts" || fields[3] == "ns") continue;
    if (const auto power = milliwatts(fields[1])) sensors.push_back({lower(fields[0]), *power});
  }
  return sensors;
}

// With -v ipmitool also says what it tries; that is no part of an error.
std::string complaint(const Finished& finished) {
  std::string text;
  for (const std::string_view line : split(finished.err, '\n')) {
    const bool chatter =
        line.empty() || line.starts_with("Loading IANA") || line.starts_with("Running Get") ||
        line.starts_with("Invalid completion code received") || line.starts_with("Discovered IPMB");
    if (chatter) continue;
    if (!text.empty()) text += "; ";
    text += line;
  }
  return excerpt(text.empty() ? finished.out : text);
}

}  // namespace

Result<MachinePower> parse_power(const std::string& out) {
  const std::string text = lower(out);
  if (contains(text, "chassis power is on")) return MachinePower::on;
  if (contains(text, "chassis power is off")) return MachinePower::off;
  return not_understood("power state", out);
}

Result<std::optional<Milliwatts>> parse_reading(const std::string& out) {
  const auto reading = watts_in(value_of(out, "Instantaneous power reading"));
  if (!reading) return not_understood("power reading", out);
  if (value_of(out, "Power reading state is") == "deactivated") return std::optional<Milliwatts>{};
  if (*reading < 0 || *reading >= kUnknownWatts) {
    return fail(ErrorCode::protocol,
                fmt::format("the power meter says {} W, which no machine draws", *reading));
  }
  return std::optional{watts(*reading)};
}

Result<Limit> parse_limit(const std::string& out) {
  const auto power = watts_in(value_of(out, "Power Limit"));
  const std::string_view state = value_of(out, "Current Limit State");
  if (!power || state.empty()) return not_understood("power limit", out);
  Limit limit;
  limit.active = state == "Power Limit Active";
  limit.power = watts(*power);
  return limit;
}

std::optional<Milliwatts> sensor_reading(const std::string& csv) {
  const std::vector<Sensor> sensors = power_sensors(csv);
  for (const Sensor& sensor : sensors) {
    const auto& names = kWholeMachine;
    if (std::find(names.begin(), names.end(), sensor.name) != names.end()) return sensor.power;
  }
  Milliwatts sum{0};
  bool supplies = false;
  for (const Sensor& sensor : sensors) {
    if (!supply_input(sensor.name)) continue;
    sum += sensor.power;
    supplies = true;
  }
  if (supplies) return sum;
  if (sensors.size() == 1) return sensors.front().power;
  return std::nullopt;
}

Error error_of(const Finished& finished, std::string_view what) {
  const std::string said = complaint(finished);
  const std::string text = lower(said);
  const auto says = [&](std::string_view part) { return contains(text, part); };
  if (says("hmac is invalid") || says("unauthorized") || says("invalid user") ||
      says("insufficient privilege") || says("privilege level")) {
    return fail(ErrorCode::unauthorized,
                fmt::format("{}: the management controller refuses the user, the password or the "
                            "privilege",
                            what),
                said);
  }
  if (says("out of range") || says("(84)")) {
    return fail(ErrorCode::out_of_range, fmt::format("{}: outside what the machine offers", what),
                said);
  }
  if (says("not supported in present state") || says("(d5)")) {
    return fail(ErrorCode::conflict, fmt::format("{}: not possible in this state", what), said);
  }
  if (says("invalid command") || says("not supported") || says("(c1)") || says("unsupported")) {
    return fail(ErrorCode::unsupported, fmt::format("{}: the machine does not offer this", what),
                said);
  }
  if (says("unable to establish") || says("get auth capabilities") || says("node busy") ||
      says("no response") || says("timeout") || says("unable to get chassis power status")) {
    return fail(ErrorCode::unavailable,
                fmt::format("{}: the management controller does not answer", what), said);
  }
  return fail(ErrorCode::protocol,
              fmt::format("{}: ipmitool failed with exit code {}", what, finished.exit_code), said);
}

}  // namespace kwatt::hardware::ipmi
