#include "agent/desired.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::agent {
namespace {

constexpr std::string_view kGovernor = "kwatt.dev/governor";
constexpr std::string_view kFrequency = "kwatt.dev/max-frequency-mhz";
constexpr std::string_view kPreference = "kwatt.dev/epp";
constexpr std::string_view kCap = "kwatt.dev/power-cap-watts";
constexpr std::string_view kUncore = "kwatt.dev/max-uncore-mhz";
constexpr std::string_view kRequest = "kwatt.dev/request";

constexpr std::int64_t kMostMegahertz = 100'000;
constexpr std::int64_t kMostWatts = 100'000;
constexpr std::size_t kLongestWord = 32;
constexpr std::size_t kLongestRequest = 16 * 1024;

bool absent(std::string_view value) {
  return value.empty() || value == "0";
}

// Words of the kernel: "powersave", "balance_performance", "192".
bool is_word(std::string_view text) {
  return text.size() <= kLongestWord && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

class Reader {
 public:
  Reader(const api::StringMap& annotations, DesiredSettings& settings)
      : annotations_(annotations), settings_(settings) {}

  std::optional<std::string> word(std::string_view key, Lever lever) {
    const std::string_view value = annotations_.get(key);
    if (value.empty()) return std::nullopt;
    if (is_word(value)) return std::string(value);
    unreadable(lever, fmt::format("{}: \"{}\" is not a word of the kernel, such as powersave", key,
                                  hardware::excerpt(value, 60)));
    return std::nullopt;
  }

  std::optional<std::int64_t> number(std::string_view key, Lever lever, std::int64_t most) {
    const std::string_view value = annotations_.get(key);
    if (absent(value)) return std::nullopt;
    const auto number = hardware::parse_number(value);
    if (number && *number >= 1 && *number <= most) return number;
    unreadable(lever, fmt::format("{}: \"{}\" is not a whole number from 1 to {}", key,
                                  hardware::excerpt(value, 60), most));
    return std::nullopt;
  }

  void request() {
    const std::string_view value = annotations_.get(kRequest);
    if (value.empty()) return;
    const auto document =
        value.size() <= kLongestRequest
            ? hardware::parse_json(value)
            : Result<rapidjson::Document>(fail(ErrorCode::parse, "longer than 16 KiB"));
    if (!document) {
      error(fmt::format("{}: {}", kRequest, document.error().message));
      return;
    }
    settings_.request_id = std::string(hardware::text_at(*document, {"id"}));
    if (settings_.request_id.empty()) error(fmt::format("{}: has no id", kRequest));
    const auto* keep = hardware::find(*document, {"keepCap"});
    settings_.keep_cap = keep != nullptr && keep->IsTrue();
  }

 private:
  void error(std::string sentence) { settings_.errors.push_back(std::move(sentence)); }
  void unreadable(Lever lever, std::string sentence) {
    settings_.unreadable.push_back(lever);
    error(std::move(sentence));
  }

  const api::StringMap& annotations_;
  DesiredSettings& settings_;
};

}  // namespace

DesiredSettings parse_desired(const api::StringMap& annotations) {
  DesiredSettings settings;
  Reader reader(annotations, settings);
  settings.governor = reader.word(kGovernor, Lever::governor);
  if (const auto mhz = reader.number(kFrequency, Lever::frequency, kMostMegahertz)) {
    settings.max_frequency = Megahertz{*mhz};
  }
  settings.preference = reader.word(kPreference, Lever::preference);
  if (const auto cap = reader.number(kCap, Lever::cap, kMostWatts))
    settings.power_cap = watts(*cap);
  if (const auto mhz = reader.number(kUncore, Lever::uncore, kMostMegahertz)) {
    settings.max_uncore = Megahertz{*mhz};
  }
  reader.request();
  return settings;
}

DesiredSettings without_controller(const DesiredSettings& desired) {
  DesiredSettings settings;
  if (desired.keep_cap) {
    settings.power_cap = desired.power_cap;
    settings.keep_cap = true;
  }
  return settings;
}

}  // namespace kwatt::agent
