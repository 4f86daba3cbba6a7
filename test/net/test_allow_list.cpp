#include <doctest/doctest.h>

#include "net/allow_list.hpp"

namespace kwatt::net {
namespace {

using Bare = AllowList::Bare;

TEST_CASE("allow-list of hosts: what an entry without a protocol means is the caller's word") {
  struct Case {
    const char* entry;
    Bare bare;
    bool plain, encrypted;  // may 10.0.0.7 be connected to
  };
  const Case cases[] = {
      {"10.0.0.7", Bare::encrypted, false, true},
      {"10.0.0.7", Bare::both, true, true},
      {"http://10.0.0.0/8", Bare::both, true, false},
      {"https://10.0.0.0/8", Bare::both, false, true},
      {"http://10.0.0.7", Bare::encrypted, true, false},
      {"10.0.0.8", Bare::both, false, false},
      {"", Bare::both, false, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.entry);
    const auto list = AllowList::parse({c.entry}, c.bare);
    REQUIRE(list.has_value());
    CHECK(list->may("10.0.0.7", false) == c.plain);
    CHECK(list->may("10.0.0.7", true) == c.encrypted);
    CHECK(list->filter("10.0.0.7", false)("10.0.0.7") == c.plain);
  }
}

TEST_CASE("allow-list of hosts: a name is judged once it is resolved, unless it is on the list") {
  const auto networks = AllowList::parse({"10.0.0.0/8"}, Bare::both);
  CHECK(networks->may("models.example.com", false));
  CHECK(networks->filter("models.example.com", false)("10.1.2.3"));
  CHECK_FALSE(networks->filter("models.example.com", false)("169.254.169.254"));
  const auto names = AllowList::parse({"models.example.com"}, Bare::both);
  CHECK(names->may("MODELS.example.com", true));
  CHECK(names->filter("models.EXAMPLE.com", true)("192.0.2.1"));
  CHECK_FALSE(names->may("other.example.com", true));
  CHECK_FALSE(AllowList{}.may("10.0.0.7", true));
  CHECK_FALSE(AllowList{}.filter("10.0.0.7", true)("10.0.0.7"));
}

}  // namespace
}  // namespace kwatt::net
