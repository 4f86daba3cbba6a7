#pragma once
// Where values begin and end in a JSON text, without parsing them: strings, escapes and nesting are
// followed, nothing else is looked at. For large documents of which little is needed and the rest
// is passed on as it came. What a value holds is checked by whoever decodes it.
//
// Offsets are bytes from the beginning of the text. Pure; no allocation.
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace kwatt::api {

// The first byte at or after `at` that is no white space; the text's size if there is none.
std::size_t skip_space(std::string_view text, std::size_t at);

// The offset just behind the string that begins at `at` (its first byte is a quote), or behind the
// object or list, or behind a number, true, false or null. nullopt: it does not end, or no value
// begins there.
std::optional<std::size_t> end_of_string(std::string_view text, std::size_t at);
std::optional<std::size_t> end_of_nested(std::string_view text, std::size_t at);
std::optional<std::size_t> end_of_value(std::string_view text, std::size_t at);
// The offset just behind the value in which `at` is `depth` brackets deep, outside of any string.
std::optional<std::size_t> end_of_open(std::string_view text, std::size_t at, int depth);
// The offset of the quote that ends the string that begins at `at` if it holds neither escapes nor
// control characters, as names do; nullopt otherwise.
std::optional<std::size_t> end_of_plain_string(std::string_view text, std::size_t at);

// One member of an object, or one element of a list (then `key` is empty).
struct JsonMember {
  std::string_view key;            // raw: escapes are not resolved
  std::size_t begin = 0, end = 0;  // of the value
};

// Steps through the members of the object, or the elements of the list, that begins at `at`:
//
//   JsonWalk walk(text, 0);
//   while (auto member = walk.next()) …;
//   if (!walk.good()) …  // walk.at(): where it is no JSON any more
//
// Members that were given out before a fault shows are as good as any. After a good end, at() is
// just behind the closing bracket.
//
// A large value is best read only once. enter() gives a member whose end is not looked for
// (end == begin): whoever reads the value says with resume() where it ended; if nobody does, the
// walk finds its end when it goes on.
class JsonWalk {
 public:
  // Neither an object nor a list there: not good from the start.
  JsonWalk(std::string_view text, std::size_t at);
  std::optional<JsonMember> next();
  std::optional<JsonMember> enter();
  // Just behind the value that enter() gave last.
  void resume(std::size_t end);
  // The same member with its end; nullopt, and not good: it does not end.
  std::optional<JsonMember> skip(JsonMember entered);
  bool good() const { return good_; }
  bool is_object() const { return close_ == '}'; }
  std::size_t at() const { return at_; }

 private:
  std::optional<JsonMember> stop(bool good);

  std::string_view text_;
  std::size_t at_;
  char close_ = '\0';
  bool first_ = true, good_ = true, done_ = false;
  bool within_ = false;  // at_ is at the beginning of a value that was entered
};

}  // namespace kwatt::api
