#include "hardware/driver.hpp"

namespace kwatt::hardware {

Task<Result<PowerLimit>> PowerDriver::power_limit() {
  co_return fail(ErrorCode::unsupported, "this kind of driver offers no power limit");
}

Task<void> PowerDriver::close() {
  co_return;
}

}  // namespace kwatt::hardware
