#include <algorithm>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kube/informer.hpp"

namespace kwatt::kube {

Task<Result<void>> wait_until_ready(std::vector<const StoreState*> stores, Duration timeout) {
  // Looking 50 times a second for the few seconds of a start is simpler than a signal per store,
  // and works across threads.
  constexpr Duration kLook{20};
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    std::erase_if(stores, [](const StoreState* store) { return store->ready(); });
    if (stores.empty()) co_return Result<void>{};
    if (std::chrono::steady_clock::now() >= deadline) break;
    timer.expires_after(kLook);
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
  std::vector<std::string> missing;
  missing.reserve(stores.size());
  for (const StoreState* store : stores) missing.push_back(store->name());
  co_return fail(ErrorCode::timeout,
                 fmt::format("no complete list of {} within {}", fmt::join(missing, ", "),
                             format_go_duration(timeout)));
}

}  // namespace kwatt::kube
