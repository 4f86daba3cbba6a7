#include <doctest/doctest.h>

#include "hardware/allow_list.hpp"

namespace kwatt::hardware {
namespace {

TEST_SUITE_BEGIN("redfish");

AllowList list_of(std::vector<std::string> texts) {
  auto list = AllowList::parse(std::move(texts));
  REQUIRE(list.has_value());
  return *list;
}

TEST_CASE("allow-list: which addresses may be used") {
  struct Case {
    std::vector<std::string> allowed;
    std::string address;
    bool usable;
  };
  const std::string systems = "/redfish/v1/Systems/1";
  const std::vector<Case> cases = {
      {{}, "redfish+https://10.0.0.7" + systems, false},
      {{"10.0.0.7"}, "redfish+https://10.0.0.7" + systems, true},
      {{"10.0.0.7"}, "redfish+https://10.0.0.7:8443" + systems, true},
      {{"10.0.0.7"}, "redfish+https://10.0.0.8" + systems, false},
      {{"10.0.0.0/29"}, "redfish+https://10.0.0.7" + systems, true},
      {{"10.0.0.0/29"}, "redfish+https://10.0.0.8" + systems, false},
      {{"10.9.0.0/16,10.0.0.7"}, "redfish+https://10.0.0.7" + systems, true},
      {{"10.9.0.0/16", "10.0.0.7"}, "redfish+https://10.0.0.7" + systems, true},
      {{"0.0.0.0/0"}, "redfish+https://10.0.0.7" + systems, true},
      // Plain HTTP must be meant, and does not mean more.
      {{"10.0.0.7"}, "redfish+http://10.0.0.7" + systems, false},
      {{"http://10.0.0.7"}, "redfish+http://10.0.0.7" + systems, true},
      {{"http://10.0.0.0/8"}, "redfish+http://10.0.0.7" + systems, true},
      {{"http://10.0.0.7"}, "redfish+https://10.0.0.7" + systems, false},
      {{"https://10.0.0.7"}, "redfish+https://10.0.0.7" + systems, true},
      {{"127.0.0.1"}, "lab://127.0.0.1:8100/machines/n1", false},
      {{"http://127.0.0.1"}, "lab://127.0.0.1:8100/machines/n1", true},
      {{"10.0.0.7"}, "ipmi://10.0.0.7", true},
      {{"10.0.0.8"}, "ipmi://10.0.0.7", false},
      // Names, and names that are only known once they are resolved.
      {{"bmc1.example.com"}, "redfish+https://BMC1.example.com" + systems, true},
      {{"bmc1.example.com"}, "redfish+https://bmc1.example.com.evil.com" + systems, false},
      {{"bmc1.example.com"}, "redfish+https://10.0.0.7" + systems, false},
      {{"10.0.0.0/8"}, "redfish+https://bmc1.example.com" + systems, true},
      {{"http://10.0.0.0/8"}, "redfish+https://bmc1.example.com" + systems, false},
      // IPv6.
      {{"fd00::/8"}, "redfish+https://[fd12::7]" + systems, true},
      {{"fd00::/8"}, "redfish+https://[2001:db8::7]" + systems, false},
      {{"[fd12::7]"}, "redfish+https://[fd12::7]" + systems, true},
      {{"10.0.0.7"}, "redfish+https://[::ffff:10.0.0.7]" + systems, true},
      // Not for this list.
      {{}, "wol:00:11:22:33:44:55", true},
      {{}, "nonsense", true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.address);
    CAPTURE(c.allowed.size());
    CHECK(list_of(c.allowed).refusal(c.address).empty() == c.usable);
  }
}

TEST_CASE("allow-list: a refusal says which option to set") {
  CHECK(AllowList{}.refusal("redfish+https://10.0.0.7/redfish/v1/Systems/1") ==
        "BMC 10.0.0.7 is not allowed: start kwatt-controller with --bmc-allow 10.0.0.7");
  CHECK(AllowList{}.refusal("lab://127.0.0.1:81/machines/n1") ==
        "BMC 127.0.0.1 is not allowed: start kwatt-controller with --bmc-allow http://127.0.0.1");
}

TEST_CASE("allow-list: the resolved address is what counts") {
  const std::string by_name = "redfish+https://bmc1.example.com/redfish/v1/Systems/1";
  CHECK(list_of({"10.0.0.0/8"}).filter(by_name)("10.2.3.4"));
  CHECK_FALSE(list_of({"10.0.0.0/8"}).filter(by_name)("169.254.169.254"));
  CHECK_FALSE(list_of({"http://10.0.0.0/8"}).filter(by_name)("10.2.3.4"));
  CHECK(list_of({"bmc1.example.com"}).filter(by_name)("192.0.2.1"));
  CHECK_FALSE(list_of({"bmc2.example.com"}).filter(by_name)("192.0.2.1"));
  CHECK(list_of({"10.0.0.0/8"}).filter(by_name)("::ffff:10.2.3.4"));
  CHECK_FALSE(AllowList{}.filter(by_name)("10.2.3.4"));
  CHECK_FALSE(list_of({"10.0.0.0/8"}).filter("nonsense")("10.2.3.4"));
}

TEST_CASE("allow-list: what is no entry is refused with its text") {
  for (const char* text : {"10.0.0.0/33", "10.0.0.7:443", "ftp://10.0.0.7", "http://", "a b", "/8",
                           "fd00::/129", "-x", "https://10.0.0.7/redfish"}) {
    CAPTURE(text);
    const auto list = AllowList::parse({text});
    REQUIRE_FALSE(list.has_value());
    CHECK(list.error().code == ErrorCode::invalid_argument);
    CHECK(list.error().message.find(text) != std::string::npos);
  }
  CHECK(list_of({"", ","}).refusal("ipmi://10.0.0.7") != "");
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::hardware
