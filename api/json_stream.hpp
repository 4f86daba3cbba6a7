#pragma once
// Cuts a stream of JSON into whole values without parsing it: chunk boundaries of the network have
// nothing to do with those of objects. Only strings, escapes and nesting are followed; whether a
// value is well-formed is the decoder's business.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kwatt::api {

struct JsonLimits {
  std::size_t max_value = 3U << 20U;     // one item or frame; etcd refuses objects over 1.5 MiB
  std::size_t max_envelope = 1U << 20U;  // a list without its items
};

// Called with one whole value; may overwrite the text. An error ends the feeding.
using OnValue = std::function<Result<void>(std::string& value)>;

// Where a scan stands within nested JSON, from one chunk to the next.
class NestingScanner {
 public:
  // Reads from `at` until just after the bracket that closes the outermost object or list, or to
  // the end of `bytes`. The first byte of all must be '{' or '['.
  std::size_t scan(std::string_view bytes, std::size_t at);
  bool closed() const { return depth_ == 0; }
  void reset() { *this = {}; }

 private:
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

// A sequence of objects, as a watch sends them: one per line, but lines are not relied on.
class ValueSplitter {
 public:
  explicit ValueSplitter(JsonLimits limits = {}) : limits_(limits) {}
  Result<void> feed(std::string_view bytes, const OnValue& on_value);

 private:
  JsonLimits limits_;
  NestingScanner scanner_;
  bool inside_ = false;
  std::string value_;
};

// One list {"kind":…,"metadata":{…},"items":[…]}: items one by one, the rest as envelope().
class ListSplitter {
 public:
  explicit ListSplitter(JsonLimits limits = {}) : limits_(limits) {}
  Result<void> feed(std::string_view bytes, const OnValue& on_item);
  // An error unless exactly one whole document was fed.
  Result<void> finish() const;
  // The document with an empty list in place of the items; valid after finish().
  std::string& envelope() { return envelope_; }

 private:
  enum class Place { before, top, between_items, inside_item, after };
  Result<void> feed_top(std::string_view bytes, std::size_t& at);
  Result<void> feed_between(std::string_view bytes, std::size_t& at);
  Result<void> feed_item(std::string_view bytes, std::size_t& at, const OnValue& on_item);

  JsonLimits limits_;
  Place place_ = Place::before;
  // Of the envelope: nesting, and the last string seen in the outermost object, perhaps a key.
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  std::size_t string_start_ = 0;
  bool items_key_ = false;
  NestingScanner scanner_;
  std::string item_;
  std::string envelope_;
};

}  // namespace kwatt::api
