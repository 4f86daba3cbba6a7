#pragma once
// What reads bytes that others have written: each takes any bytes, must neither crash nor hang, and
// keep what it promises about its results (fuzz_must).
#include <span>
#include <string_view>

namespace kwatt::fuzz {

struct Target {
  const char* name;  // of the program fuzz_<name> and of the folder in test/fuzz/corpus/
  void (*run)(std::string_view bytes);
};

std::span<const Target> targets();

}  // namespace kwatt::fuzz
