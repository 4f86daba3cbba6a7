#pragma once
// Finds whole JSON objects in a stream of bytes whose pieces have nothing to do with their
// boundaries. It only counts brackets and skips strings: whoever decodes an object checks it.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kwatt::kube {

struct StreamLimits {
  std::size_t object_bytes = 8 * 1024 * 1024;  // one object; etcd's own limit is 1.5 MiB
  std::size_t envelope_bytes = 64 * 1024;      // what surrounds the items of a list
  int depth = 64;
};

// Finds the end of one JSON object, fed in pieces.
class ObjectScanner {
 public:
  explicit ObjectScanner(int max_depth) : max_depth_(max_depth) {}
  // Consumes up to and including the closing brace of the object; the first byte must be its '{'.
  // Returns the number of bytes consumed. Stops early at an error.
  std::size_t feed(std::string_view bytes);
  bool complete() const { return started_ && depth_ == 0 && !too_deep_; }
  bool too_deep() const { return too_deep_; }
  void reset();

 private:
  int max_depth_;
  int depth_ = 0;
  bool started_ = false, in_string_ = false, escaped_ = false, too_deep_ = false;
};

// One JSON object after the other, separated by white space: the frames of a watch.
// push(piece), then next() until it gives nullopt; views live until the following push() or next().
class FrameStream {
 public:
  explicit FrameStream(StreamLimits limits = {}) : limits_(limits), scanner_(limits.depth) {}
  void push(std::string_view piece);
  // Errors: parse (not an object, too deep, too large). After an error the stream is dead.
  Result<std::optional<std::string_view>> next();
  // True between two frames: the stream may end here without having lost anything.
  bool at_boundary() const { return buffer_.empty() && piece_.empty(); }

 private:
  StreamLimits limits_;
  ObjectScanner scanner_;
  std::string_view piece_;
  std::string buffer_;       // the beginning of a frame that started in earlier pieces
  bool handed_out_ = false;  // buffer_ holds the frame returned last
};

// The elements of "items" of a Kubernetes list, one by one, and at the end what surrounds them.
class ListStream {
 public:
  explicit ListStream(StreamLimits limits = {}) : limits_(limits), scanner_(limits.depth) {}
  void push(std::string_view piece);
  // The next item, as with FrameStream. Errors: parse.
  Result<std::optional<std::string_view>> next();
  // After the last piece: the list's metadata. Errors: parse (cut short, or not a list).
  struct Metadata {
    std::string resource_version, continue_token;
  };
  Result<Metadata> finish() const;

 private:
  Result<void> envelope_byte(char byte);
  Result<std::optional<std::string_view>> item_piece();

  StreamLimits limits_;
  ObjectScanner scanner_;
  std::string_view piece_;
  std::string envelope_;  // the whole document without the contents of "items"
  std::string item_;      // the beginning of an item that started in earlier pieces
  bool handed_out_ = false;
  bool in_item_ = false, in_items_ = false, seen_items_ = false;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
  std::size_t string_start_ = 0;
  std::string last_key_;  // the last string directly inside the outermost object
};

}  // namespace kwatt::kube
