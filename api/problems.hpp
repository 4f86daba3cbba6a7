#pragma once
// Collects what is wrong with a spec. For the validate_*.cpp files of api/ only.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/time.hpp"

namespace kwatt::api {

class Problems {
 public:
  // "<path>: <sentence>"
  template <class... Args>
  void add(std::string_view path, fmt::format_string<Args...> sentence, Args&&... args) {
    list_.push_back(
        fmt::format("{}: {}", path, fmt::format(sentence, std::forward<Args>(args)...)));
  }
  void within(std::string_view path, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high) add(path, "{} must be within {} and {}", value, low, high);
  }
  void at_least(std::string_view path, Duration value, Duration low) {
    if (value < low) {
      add(path, "{} must be at least {}", format_go_duration(value), format_go_duration(low));
    }
  }
  void at_most(std::string_view path, Duration value, Duration high) {
    if (value > high) {
      add(path, "{} must be at most {}", format_go_duration(value), format_go_duration(high));
    }
  }
  void size(std::string_view path, std::size_t value, std::size_t limit) {
    if (value > limit) add(path, "{} entries must be at most {}", value, limit);
  }
  void length(std::string_view path, std::string_view value, std::size_t limit) {
    // As the API server counts: characters, not bytes.
    const auto characters =
        static_cast<std::size_t>(std::count_if(value.begin(), value.end(), [](char c) {
          return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
        }));
    if (characters > limit) add(path, "{} characters must be at most {}", characters, limit);
  }
  void one_of(std::string_view path, std::string_view value,
              std::span<const std::string_view> words) {
    if (std::find(words.begin(), words.end(), value) == words.end()) {
      add(path, "\"{}\" must be one of {}", value, fmt::join(words, ", "));
    }
  }

  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

}  // namespace kwatt::api
