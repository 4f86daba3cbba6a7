#pragma once
// Waiting in coroutines. Boost 1.81 has no cancel_after.
#include <set>

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

}  // namespace kwatt::net
