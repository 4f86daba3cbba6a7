#pragma once
// Waiting in coroutines. Boost 1.81 has no cancel_after.
#include <set>

#include <boost/asio/io_context.hpp>

#include "net/client.hpp"

namespace kwatt::net {

// Suspends for so long. Cancellation (terminal) throws boost::system::system_error with
// operation_aborted, so that nothing after the pause runs.
Task<void> sleep(Duration duration);

// Wakes coroutines of one executor or strand: a condition variable without a lock. Whoever waits
// checks its condition in a loop; a notification that nobody waits for is forgotten. Must outlive
// the waits.
class Signal {
 public:
  void notify_all();
  // False: nobody notified for so long. Cancelled like sleep().
  Task<bool> wait_for(Duration at_most);

 private:
  struct Waiter;
  std::set<Waiter*> waiters_;
};

// An io_context for one thread whose coroutines can be ended while what they refer to still lives.
// A frame that waits is destroyed with the io_context it waits in, and its destructors use what it
// was given: stores, clients, counters, Signals. On the other hand timers and sockets must be gone
// before their io_context is. So the owner of both declares the Context first, and calls end() in
// its destructor, before any member is destroyed.
class Context final : public boost::asio::io_context {
 public:
  Context() : io_context(1) {}
  // After run() has returned: destroys all coroutines and handlers. Nothing runs here any more;
  // what is posted later is destroyed with the Context, unrun, so threads that still post (pools)
  // are ended before. Timers and sockets may be destroyed afterwards, but no new ones made.
  void end() {
    stop();
    shutdown();
  }
};

}  // namespace kwatt::net
