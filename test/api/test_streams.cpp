// Lists and watches as they come from the network: in pieces that have nothing to do with objects,
// and not always well-formed.
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "api/decode.hpp"
#include "test/api/samples.hpp"

namespace kwatt::api {
namespace {

struct ListResult {
  std::vector<std::string> names;
  ListMeta meta;
  std::string error;
};

// Feeds the text in pieces of at most `piece` bytes.
template <class T>
ListResult feed_list(std::string_view text, std::size_t first, std::size_t piece,
                     JsonLimits limits = {}) {
  ListResult out;
  ListDecoder<T> decoder(
      nullptr,
      [&](T&& item) {
        if constexpr (std::is_same_v<T, Pod>) {
          out.names.push_back(item.name);
        } else {
          out.names.push_back(item.meta.name);
        }
      },
      limits);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = std::min(at == 0 ? first : piece, text.size() - at);
    if (auto done = decoder.feed(text.substr(at, size)); !done) {
      out.error = done.error().message;
      return out;
    }
    at += size;
  }
  auto meta = decoder.finish();
  if (meta) {
    out.meta = *meta;
  } else {
    out.error = meta.error().message;
  }
  return out;
}

std::string pod_list() {
  return R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12345",)"
         R"("continue":"eyJ2Ijoi\"[{","remainingItemCount":7},"items":[)" +
         std::string{test::kPod} +
         R"(, {"metadata":{"name":"b]}\\","labels":{"items":"[\"{"}}}  ,)"
         R"({"metadata":{"name":"c"},"items":[{"metadata":{"name":"inner"}}]}]})" +
         "\n";
}

TEST_CASE("a list gives the same items whatever the pieces it comes in") {
  const std::string text = pod_list();
  const std::vector<std::string> want{"web-7d9c-x2x4q", "b]}\\", "c"};
  const auto check = [&](std::size_t first, std::size_t piece) {
    CAPTURE(first);
    CAPTURE(piece);
    const ListResult result = feed_list<Pod>(text, first, piece);
    REQUIRE(result.error == "");
    REQUIRE(result.names == want);
    REQUIRE(result.meta.kind == "PodList");
    REQUIRE(result.meta.resource_version == "12345");
    REQUIRE(result.meta.continue_token == "eyJ2Ijoi\"[{");
    REQUIRE(result.meta.remaining_item_count == 7);
  };
  for (std::size_t cut = 1; cut < text.size(); ++cut) check(cut, text.size());
  for (const std::size_t piece : {1, 2, 3, 7, 64, 1000}) check(piece, piece);
}

TEST_CASE("metadata may come after the items, and items may be none") {
  const std::pair<const char*, std::size_t> cases[] = {
      {R"({"items":[{"metadata":{"name":"a"}}],"kind":"NodeList","metadata":{"resourceVersion":"9"}})",
       1},
      {R"({"kind":"NodeList","metadata":{"resourceVersion":"9"},"items":[]})", 0},
      {R"({"kind":"NodeList","metadata":{"resourceVersion":"9"},"items":null})", 0},
      {R"({"kind":"NodeList","metadata":{"resourceVersion":"9"}})", 0},
      {R"({"kind":"NodeList","x":"items","y":[{}],"metadata":{"items":[{}],"resourceVersion":"9"}})",
       0},
      {" \n{ \"metadata\" : {\"resourceVersion\":\"9\"} , \"kind\" : \"NodeList\" , \"items\" : [ "
       "{ } ] "
       "} \n",
       1},
  };
  for (const auto& c : cases) {
    const std::string_view text = c.first;
    CAPTURE(c.first);
    for (const std::size_t piece : {std::size_t{1}, text.size()}) {
      const ListResult result = feed_list<Node>(text, piece, piece);
      CHECK(result.error == "");
      CHECK(result.names.size() == c.second);
      CHECK(result.meta.kind == "NodeList");
      CHECK(result.meta.resource_version == "9");
    }
  }
}

TEST_CASE("a Status in place of a list is told as such") {
  const ListResult result = feed_list<Node>(
      R"({"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"})",
      5, 5);
  CHECK(result.error == "");
  CHECK(result.meta.kind == "Status");
  CHECK(result.meta.status.code == 410);
  CHECK(result.meta.status.reason == "Expired");
}

TEST_CASE("a list that is broken or too large is an error") {
  struct Case {
    const char* text;
    const char* want;
  };
  const Case cases[] = {
      {"", "the list ended in the middle"},
      {"{", "the list ended in the middle"},
      {R"({"items":[{"metadata":{"name":"a"}})", "the list ended in the middle"},
      {R"({"items":[]}{)", "bytes after the end of a list"},
      {"[]", "a list must be an object"},
      {"not found", "a list must be an object"},
      {R"({"items":[1]})", "items: expected a list of objects"},
      {R"({"items":["a"]})", "items: expected a list of objects"},
      {R"({"items":[null]})", "items: expected a list of objects"},
      {R"({"items":[{"metadata":{"name":3}}]})", "metadata.name: expected string, got number"},
      {R"({"items":[{"metadata":[}]]})", "metadata: expected object, got list"},
      {R"({"items":[{"metadata":{]}]})", "malformed JSON"},
      {R"({"items":[{"a":1}],"kind":})", "malformed JSON"},
      {R"({"items":[{"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]})",
       "an item of a list is larger than 50 bytes"},
      {R"({"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"})",
       "a list without its items is larger than 60 bytes"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    for (const std::size_t piece : {1, 3, 1000}) {
      CHECK(feed_list<Node>(c.text, piece, piece, {50, 60}).error.find(c.want) == 0);
    }
  }
}

struct WatchResult {
  std::vector<WatchEvent<Node>> events;
  std::string error;
};

WatchResult feed_watch(std::string_view text, std::size_t piece, JsonLimits limits = {}) {
  WatchResult out;
  WatchDecoder<Node> decoder(
      nullptr, [&](WatchEvent<Node>&& event) { out.events.push_back(std::move(event)); }, limits);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    if (auto done = decoder.feed(text.substr(at, piece)); !done) {
      out.error = done.error().message;
      break;
    }
  }
  return out;
}

TEST_CASE("a watch gives the same events whatever the pieces it comes in") {
  const std::string text =
      R"({"type":"ADDED","object":)" + std::string{test::kNode} + "}\n" +
      R"({"object":{"metadata":{"name":"b","resourceVersion":"78"}},"type":"MODIFIED"})" +  // no \n
      R"({"type":"DELETED","object":{"metadata":{"name":"c","resourceVersion":"79"}}})" + "\n\n" +
      R"({"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"80",)"
      R"("annotations":{"k8s.io/initial-events-end":"true"}}}})" +
      "\n" + R"({"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"81"}}})" +
      R"({"type":"MOVED","object":{"metadata":{"resourceVersion":"82"}}})" +
      R"({"type":"ERROR","object":{"kind":"Status","reason":"Expired","code":410}})" +
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError"})" +
      "\n" + R"({"type":"ADDED","object":{"metad)";  // the connection breaks
  for (std::size_t piece = 1; piece <= text.size(); piece += piece < 100 ? 1 : 97) {
    CAPTURE(piece);
    const WatchResult result = feed_watch(text, piece);
    REQUIRE(result.error == "");
    REQUIRE(result.events.size() == 8);
    const auto& e = result.events;
    REQUIRE(e[0].type == WatchType::added);
    REQUIRE(e[0].object.meta.name == "node14");
    REQUIRE(e[0].resource_version == "77");
    REQUIRE(e[1].type == WatchType::modified);
    REQUIRE(e[1].object.meta.name == "b");
    REQUIRE(e[2].type == WatchType::deleted);
    REQUIRE(e[2].resource_version == "79");
    REQUIRE(e[3].type == WatchType::bookmark);
    REQUIRE(e[3].resource_version == "80");
    REQUIRE(e[3].initial_events_end);
    REQUIRE_FALSE(e[4].initial_events_end);
    REQUIRE(e[5].type == WatchType::unknown);
    REQUIRE(e[5].type_text == "MOVED");
    REQUIRE(e[5].resource_version == "82");
    REQUIRE(e[6].type == WatchType::error);
    REQUIRE(e[6].status.code == 410);
    REQUIRE(e[7].type == WatchType::error);
    REQUIRE(e[7].status.code == 500);
  }
}

TEST_CASE("a watch frame that is broken or too large is an error, never an object") {
  struct Case {
    const char* text;
    const char* want;
  };
  const Case cases[] = {
      {"not json", "expected an object, got byte 0x6e"},
      {"[]", "expected an object, got byte 0x5b"},
      {R"({"type":"ADDED"})", "a watch frame without type or object"},
      {R"({"object":{}})", "a watch frame without type or object"},
      {"{}", "a watch frame without type or object"},
      {R"({"type":"ADDED","object":[]})", "expected object, got list"},
      {R"({"type":"ADDED","object":"x"})", "expected object, got string"},
      {R"({"type":"ADDED","object":{"metadata":7}})", "metadata: expected object, got number"},
      {R"({"type":"ERROR","object":3})", "expected object, got number"},
      {R"({"type":"ADDED","object":{"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}})",
       "a watch frame is larger than 60 bytes"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    for (const std::size_t piece : {1, 1000}) {
      const WatchResult result = feed_watch(c.text, piece, {60, 60});
      CHECK(result.error.find(c.want) == 0);
      CHECK(result.events.empty());
    }
  }
}

// Damages a text in a few places, the same way for the same seed.
std::string damaged(std::string text, std::mt19937& random) {
  static constexpr std::string_view kBytes = "{}[]\",:\\0129-.eEtfnu \x01\xFF";
  const auto pick = [&](std::size_t size) {
    return std::uniform_int_distribution<std::size_t>{0, size - 1}(random);
  };
  for (std::size_t n = 1 + pick(4); n > 0 && !text.empty(); --n) {
    const std::size_t at = pick(text.size());
    switch (pick(4)) {
      case 0:
        text[at] = kBytes[pick(kBytes.size())];
        break;
      case 1:
        text.insert(at, 1, kBytes[pick(kBytes.size())]);
        break;
      case 2:
        text.erase(at, 1 + pick(8));
        break;
      default:
        text.insert(at, text.substr(pick(text.size()), 1 + pick(32)));
        break;
    }
  }
  return text;
}

TEST_CASE("damaged input is an error or a value, never more, in any pieces") {
  std::mt19937 random(20261120);
  const std::string list = pod_list();
  const std::string frame = R"({"type":"ADDED","object":)" + std::string{test::kNode} + "}\n";
  int errors = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string bad_list = damaged(list, random);
    const std::size_t piece = 1 + random() % 200;
    const ListResult pieces = feed_list<Pod>(bad_list, piece, piece);
    const ListResult whole = feed_list<Pod>(bad_list, bad_list.size() + 1, bad_list.size() + 1);
    // Where the network cut the bytes must not matter.
    REQUIRE(pieces.names == whole.names);
    REQUIRE(pieces.error == whole.error);
    errors += whole.error.empty() ? 0 : 1;
    const std::string bad_frame = damaged(frame, random);
    REQUIRE(feed_watch(bad_frame, piece).error ==
            feed_watch(bad_frame, bad_frame.size() + 1).error);
    Pod pod;
    static_cast<void>(decode(damaged(std::string{test::kPod}, random), pod));
    Node node;
    static_cast<void>(decode(damaged(std::string{test::kNode}, random), node));
  }
  CHECK(errors > 1000);
}

}  // namespace
}  // namespace kwatt::api
