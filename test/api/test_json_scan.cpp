// Ends of values in JSON: against RapidJSON on texts of all lengths, since 64 bytes are looked at
// at a time.
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include "api/json_scan.hpp"

using namespace kwatt;
using namespace kwatt::api;

namespace {

// A nested value with everything that could confuse: quotes, backslashes and brackets in strings.
std::string tricky(std::size_t filler) {
  return R"({"a":")" + std::string(filler, 'x') +
         R"(\\","b":["}]\"",{"c\"":"\\\\"},[[]],{}],"d":-1.5e3,"e":null})";
}

}  // namespace

TEST_CASE("json scan: a nested value ends where it ends, at every offset within a block") {
  for (std::size_t filler = 0; filler < 200; ++filler) {
    const std::string value = tricky(filler);
    REQUIRE_FALSE(rapidjson::Document{}.Parse(value.c_str()).HasParseError());
    for (const std::string behind : {"", ",", "]}", "\"{[", "\\\"}"}) {
      CAPTURE(filler);
      CHECK(end_of_nested(value + behind, 0) == value.size());
    }
    CHECK_FALSE(end_of_nested(std::string_view(value).substr(0, value.size() - 1), 0));
  }
}

TEST_CASE("json scan: a run of backslashes across the end of a block") {
  for (std::size_t before = 40; before < 80; ++before) {
    for (std::size_t slashes = 0; slashes < 9; ++slashes) {
      // An odd number escapes the quote: then the string goes on over the brace.
      const std::string text =
          "[\"" + std::string(before, 'x') + std::string(slashes, '\\') + "\"]\"]";
      const std::size_t short_end = text.size() - 2, long_end = text.size();
      CAPTURE(before);
      CAPTURE(slashes);
      CHECK(end_of_nested(text, 0) == (slashes % 2 == 0 ? short_end : long_end));
    }
  }
}

TEST_CASE("json scan: strings and plain values") {
  CHECK(end_of_value(R"("a\"b" x)", 0) == 6);
  CHECK(end_of_value("12,", 0) == 2);
  CHECK(end_of_value("true}", 0) == 4);
  CHECK_FALSE(end_of_value("", 0));
  CHECK_FALSE(end_of_value(",", 0));
  CHECK_FALSE(end_of_string(R"("open)", 0));
}

TEST_CASE("json scan: a walk gives the members, and says where the text is none any more") {
  const std::string text = R"( { "a" : 1, "b":{"c":[]} , "d":"x" } tail)";
  JsonWalk walk{text, 0};
  std::string seen;
  while (const auto member = walk.next()) {
    seen += std::string(member->key) + "=" +
            text.substr(member->begin, member->end - member->begin) + ";";
  }
  CHECK(walk.good());
  CHECK(seen == R"(a=1;b={"c":[]};d="x";)");
  CHECK(text.substr(walk.at()) == " tail");
  for (const char* bad :
       {"", "x", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "[1 2]", "[1,]", "{,}"}) {
    CAPTURE(bad);
    JsonWalk broken{bad, 0};
    while (broken.next()) {
    }
    CHECK_FALSE(broken.good());
  }
}

TEST_CASE("json scan: what was entered is skipped, or the walk goes on where its reader ended") {
  const std::string text = R"({"a":{"name":"n","big":[{},{}]},"b":[1],"c":2})";
  JsonWalk walk{text, 0};
  const auto a = walk.enter();
  REQUIRE(a.has_value());
  CHECK(a->begin == a->end);
  JsonWalk within{text, a->begin};
  const auto name = within.enter();
  REQUIRE(name.has_value());
  const auto quote = end_of_plain_string(text, name->begin);
  REQUIRE(quote.has_value());
  // From within "a", one bracket deep below the walk's object.
  walk.resume(end_of_open(text, *quote + 1, 1).value());
  const auto b = walk.enter();
  REQUIRE(b.has_value());
  CHECK(b->key == "b");
  const auto c = walk.next();  // "b" was not read
  REQUIRE(c.has_value());
  CHECK(text.substr(c->begin, c->end - c->begin) == "2");
  CHECK_FALSE(walk.enter().has_value());
  CHECK(walk.good());

  JsonWalk open{R"({"a":[1)", 0};
  REQUIRE(open.enter().has_value());
  CHECK_FALSE(open.enter().has_value());
  CHECK_FALSE(open.good());
}

TEST_CASE("json scan: a plain string ends at its quote, and holds neither escape nor control") {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string plain = "\"" + std::string(size, 'n') + "\"";
    CHECK(end_of_plain_string(plain, 0) == size + 1);
    CHECK(end_of_plain_string(plain + std::string(40, ' '), 0) == size + 1);
    CHECK_FALSE(end_of_plain_string(plain.substr(0, size + 1), 0).has_value());
    for (const char bad : {'\\', '\n', '\x1f', '\0'}) {
      for (std::size_t at = 1; at <= size; ++at) {
        std::string text = plain + std::string(40, ' ');
        text[at] = bad;
        CHECK_FALSE(end_of_plain_string(text, 0).has_value());
      }
    }
  }
  CHECK(end_of_plain_string("\"é\"", 0) == 3);
}
