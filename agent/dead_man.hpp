#pragma once
// The timer that gives the machine back its original settings when nobody is in charge. PURE: time
// is passed in.
#include <optional>
#include <string>

#include "base/time.hpp"

namespace kwatt::agent {

// Signs of life of the controller: a reply to a push, or, while pushes fail, a Lease that somebody
// keeps renewing.
class DeadMan {
 public:
  // The start counts as a sign, so that a fresh agent applies what it finds. `restore_after` 0: the
  // controller is never given up.
  DeadMan(Duration restore_after, MonotonicPoint start)
      : restore_after_(restore_after), last_sign_(start) {}

  void sign_of_life(MonotonicPoint now) { last_sign_ = now; }
  // The Lease as it was read. Only a change is a sign: what it held when first seen may be old, and
  // its clock is not ours.
  void lease_seen(const std::string& renew_time, MonotonicPoint now);
  // True when nothing was heard for restore_after. A later sign makes it false again.
  bool expired(MonotonicPoint now) const;
  // Whether a push was answered within the last `within`; if not, the Lease is worth a look.
  bool silent_for(Duration within, MonotonicPoint now) const { return now - last_sign_ >= within; }

 private:
  Duration restore_after_;
  MonotonicPoint last_sign_;
  std::optional<std::string> renew_time_;
};

}  // namespace kwatt::agent
