#include <doctest/doctest.h>

#include "agent/dead_man.hpp"

namespace kwatt::agent {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const MonotonicPoint kStart{std::chrono::hours{5}};

TEST_CASE("the controller is given up after restore_after without a sign, not before") {
  DeadMan timer(minutes{10}, kStart);
  CHECK_FALSE(timer.expired(kStart + minutes{10} - seconds{1}));
  CHECK(timer.expired(kStart + minutes{10}));
}

TEST_CASE("a sign of life brings it back") {
  DeadMan timer(minutes{10}, kStart);
  const auto later = kStart + minutes{30};
  REQUIRE(timer.expired(later));
  timer.sign_of_life(later);
  CHECK_FALSE(timer.expired(later));
  CHECK(timer.expired(later + minutes{10}));
}

TEST_CASE("only a Lease that changes is a sign of life") {
  DeadMan timer(minutes{10}, kStart);
  auto now = kStart + minutes{9};
  timer.lease_seen("2026-11-20T21:44:03.000000Z", now);  // may be years old
  CHECK(timer.expired(kStart + minutes{10}));
  timer.lease_seen("2026-11-20T21:44:03.000000Z", now + minutes{1});
  CHECK(timer.expired(now + minutes{1}));
  timer.lease_seen("2026-11-20T21:44:05.000000Z", now + minutes{2});
  CHECK_FALSE(timer.expired(now + minutes{2}));
  timer.lease_seen("", now + minutes{12});  // released: nobody renews it
  CHECK(timer.expired(now + minutes{12}));
}

TEST_CASE("restore_after 0 never gives up") {
  DeadMan timer(seconds{0}, kStart);
  CHECK_FALSE(timer.expired(kStart + std::chrono::hours{1000}));
}

TEST_CASE("silence is counted from the last sign") {
  DeadMan timer(minutes{10}, kStart);
  CHECK_FALSE(timer.silent_for(seconds{30}, kStart + seconds{29}));
  CHECK(timer.silent_for(seconds{30}, kStart + seconds{30}));
}

}  // namespace
}  // namespace kwatt::agent
