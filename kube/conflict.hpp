#pragma once
// When somebody else wrote first: read again and decide again, never send the same body again.
#include <functional>

#include "kube/client.hpp"
#include "net/run.hpp"

namespace kwatt::kube {

inline constexpr int kConflictAttempts = 5;
inline constexpr Duration kConflictPause{10};

// `attempt` reads the object, decides and writes. It is repeated while it ends in a conflict, five
// times in all, 10 ms apart; then the conflict is returned.
template <class T>
Task<Result<T>> retry_on_conflict(std::function<Task<Result<T>>()> attempt) {
  for (int tries = 1;; ++tries) {
    Result<T> outcome = co_await attempt();
    if (outcome.has_value() || outcome.error().code != ErrorCode::conflict ||
        tries == kConflictAttempts) {
      co_return outcome;
    }
    co_await net::sleep(kConflictPause);
  }
}

}  // namespace kwatt::kube
