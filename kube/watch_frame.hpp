#pragma once
// One frame of a watch: {"type": "...", "object": {...}}, taken apart without decoding the object.
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "kube/status_error.hpp"

namespace kwatt::kube {

struct WatchFrame {
  enum class Type { added, modified, deleted, bookmark, error, unknown };
  Type type = Type::unknown;
  std::string_view type_text;  // as sent
  std::string_view object;     // raw JSON inside the frame; for error a Status
};

// `json` is one whole object. A bare Status instead of an event is an error, never an object.
// Errors: parse.
Result<WatchFrame> parse_watch_frame(std::string_view json);

// metadata.resourceVersion of a raw object; "": absent.
std::string metadata_resource_version(std::string_view object);

// The raw value of a member of a raw JSON object ("": absent, or not an object). Counts brackets
// and skips strings; does not check the rest.
std::string_view raw_member(std::string_view object, std::string_view key);

}  // namespace kwatt::kube
