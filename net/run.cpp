#include "net/run.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace kwatt::net {

namespace asio = boost::asio;

Task<void> sleep(Duration duration) {
  asio::steady_timer timer{co_await asio::this_coro::executor, duration};
  co_await timer.async_wait(asio::use_awaitable);
}

// Lives in the frame of the waiting coroutine, also when that is destroyed instead of resumed.
struct Signal::Waiter {
  Waiter(Signal& owner, const asio::any_io_executor& executor, Duration at_most)
      : signal(owner), timer(executor, at_most) {
    signal.waiters_.insert(this);
  }
  ~Waiter() { signal.waiters_.erase(this); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Signal& signal;
  asio::steady_timer timer;
  bool notified = false;
};

void Signal::notify_all() {
  for (Waiter* waiter : waiters_) {
    waiter->notified = true;
    waiter->timer.cancel();
  }
}

Task<bool> Signal::wait_for(Duration at_most) {
  Waiter waiter{*this, co_await asio::this_coro::executor, at_most};
  const auto [ec] = co_await waiter.timer.async_wait(asio::as_tuple(asio::use_awaitable));
  // Notifying ends the wait with the same code as a cancellation from outside.
  if (ec && !waiter.notified) throw boost::system::system_error{ec};
  co_return waiter.notified;
}

}  // namespace kwatt::net
