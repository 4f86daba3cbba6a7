// Has the cache seen what we wrote?
#include <doctest/doctest.h>

#include "kube/own_writes.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

TEST_CASE("own writes: pending until the store delivers that very version") {
  const MonotonicPoint now{1h};
  OwnWrites writes;
  CHECK_FALSE(writes.pending(now));
  writes.wrote("a", "7", now);
  CHECK(writes.pending(now));
  CHECK(writes.pending("a", now));
  CHECK_FALSE(writes.pending("b", now));
  writes.observed("a", "6");
  writes.observed("b", "7");
  CHECK(writes.pending("a", now));
  writes.observed("a", "7");
  CHECK_FALSE(writes.pending(now));
}

TEST_CASE("own writes: the watch may be faster than the answer") {
  const MonotonicPoint now{1h};
  OwnWrites writes;
  writes.observed("a", "7");
  writes.observed("a", "8");
  writes.wrote("a", "7", now);
  CHECK_FALSE(writes.pending(now));
}

TEST_CASE("own writes: only the newest write of an object counts") {
  const MonotonicPoint now{1h};
  OwnWrites writes;
  writes.wrote("a", "7", now);
  writes.wrote("a", "9", now);
  writes.observed("a", "7");
  CHECK(writes.pending(now));
  writes.observed("a", "9");
  CHECK_FALSE(writes.pending(now));
}

TEST_CASE("own writes: a deleted object is waited for no longer, nor a version skipped over") {
  const MonotonicPoint now{1h};
  OwnWrites writes(10s);
  writes.wrote("a", "7", now);
  writes.deleted("a");
  CHECK_FALSE(writes.pending(now));
  writes.wrote("b", "8", now);
  CHECK(writes.pending(now + 9s));
  CHECK_FALSE(writes.pending("b", now + 10s));
  CHECK_FALSE(writes.pending(now + 10s));
}
