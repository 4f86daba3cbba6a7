#pragma once
// Many small waits at once.
#include <cstddef>
#include <functional>

#include "net/client.hpp"

namespace kwatt::reconcilers {

// Runs job(0) … job(count - 1), at most `width` at once, and returns when all have ended. Jobs
// report in what they own; an exception ends the job alone and is logged. If this is cancelled,
// the jobs under way go on by themselves, so they own what they use.
net::Task<void> in_parallel(std::size_t count, std::size_t width,
                            std::function<net::Task<void>(std::size_t)> job);

}  // namespace kwatt::reconcilers
