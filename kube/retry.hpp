#pragma once
// When the client itself repeats a request: only when the server says so.
#include <optional>
#include <string_view>

#include "base/time.hpp"

namespace kwatt::kube {

inline constexpr int kMostRetries = 10;
// A longer wait is for the caller to decide about: it finds it in Error::retry_after.
inline constexpr Duration kLongestRetryPause{30'000};

// `attempt` counts from 0. The pause before the next attempt, if there is to be one: 429 or 5xx
// with a Retry-After, not a POST, fewer than kMostRetries retries so far.
std::optional<Duration> retry_pause(int attempt, std::string_view method, int status,
                                    std::string_view retry_after);

}  // namespace kwatt::kube
