#include "agent/dead_man.hpp"

namespace kwatt::agent {

void DeadMan::lease_seen(const std::string& renew_time, MonotonicPoint now) {
  if (renew_time_ && *renew_time_ != renew_time && !renew_time.empty()) sign_of_life(now);
  renew_time_ = renew_time;
}

bool DeadMan::expired(MonotonicPoint now) const {
  return restore_after_ > Duration{0} && now - last_sign_ >= restore_after_;
}

}  // namespace kwatt::agent
