// The program fuzz_<name>: libFuzzer drives one target.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "test/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const kwatt::fuzz::Target target = [] {
    for (const auto& known : kwatt::fuzz::targets()) {
      if (std::strcmp(known.name, KWATT_FUZZ_TARGET) == 0) return known;
    }
    std::abort();
  }();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
