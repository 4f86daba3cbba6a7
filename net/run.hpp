#pragma once
// Waiting in coroutines. Boost 1.81 has no cancel_after.
#include <set>

#include "net/client.hpp"

namespace kwatt::net {

// Suspends for so long. Cancellation (terminal) ends the pause early, and then throws
// boost::system::system_error(operation_aborted) at the next co_await, as Asio always does.
Task<void> sleep(Duration duration);

// Wakes coroutines of one executor or strand: a condition variable without a lock. Whoever waits
// checks its condition in a loop; a notification that nobody waits for is forgotten. Must outlive
// the waits.
class Signal {
 public:
  void notify_all();
  // False: nobody notified for so long (or the wait was cancelled, as with sleep()).
  Task<bool> wait_for(Duration at_most);

 private:
  struct Waiter;
  std::set<Waiter*> waiters_;
};

}  // namespace kwatt::net
