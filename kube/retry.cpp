#include "kube/retry.hpp"

#include "kube/status_error.hpp"

namespace kwatt::kube {

std::optional<Duration> retry_pause(int attempt, std::string_view method, int status,
                                    std::string_view retry_after) {
  if (attempt >= kMostRetries || method == "POST") return std::nullopt;
  if (status != 429 && status < 500) return std::nullopt;
  const auto pause = parse_retry_after(retry_after);
  if (!pause || *pause > kLongestRetryPause) return std::nullopt;
  return pause;
}

}  // namespace kwatt::kube
