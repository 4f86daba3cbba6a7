#pragma once
// The host's attribute files (sysfs, procfs) below one root. The drivers here know only this
// interface, so tests substitute a fake that answers as a kernel would.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace kwatt::hardware {

// Paths are relative to the root, without a leading slash: "devices/system/cpu/online".
// Errors keep errno's meaning (see errno_error): what the kernel says about a write is an answer,
// not an accident. Not thread-safe; calls block as long as the kernel does.
class HostFs {
 public:
  virtual ~HostFs() = default;
  // What one read(2) of at most `limit` bytes (and never more than 4096) gives from the beginning:
  // all of an attribute, the first lines of a longer file.
  virtual Result<std::string> read(const std::string& path, std::size_t limit = 4096) const = 0;
  // One write(2) of the value and a newline: the kernel takes one write as one store.
  virtual Result<void> write(const std::string& path, std::string_view value) = 0;
  // Names in a directory, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& path) const = 0;
};

// The real files. A path is resolved by openat2(2) inside the root in one step: neither "..", nor
// an absolute or changed symbolic link, leads out of it, and there is nothing between check and
// use. Needs Linux 5.6; where the call is missing, every operation fails with `unsupported` and
// says so.
class RootedFs final : public HostFs {
 public:
  // Errors: as of opening the directory `root`.
  static Result<RootedFs> open(const std::string& root);
  RootedFs(RootedFs&& other) noexcept;
  RootedFs& operator=(RootedFs&& other) noexcept;
  ~RootedFs() override;

  Result<std::string> read(const std::string& path, std::size_t limit = 4096) const override;
  Result<void> write(const std::string& path, std::string_view value) override;
  Result<std::vector<std::string>> list(const std::string& path) const override;

 private:
  RootedFs(int descriptor, std::string root) : root_fd_(descriptor), root_(std::move(root)) {}
  Result<int> open_below(const std::string& path, int flags) const;
  int root_fd_ = -1;
  std::string root_;  // for messages
};

// errno as an Error: ENOENT, ENODEV → not_found; EACCES, EPERM, EROFS → forbidden; EINVAL, ERANGE →
// invalid_argument; EBUSY, EAGAIN → unavailable; ENODATA, ENOSYS, EOPNOTSUPP → unsupported; others
// → io. `what` comes first in the message, the kernel's words are the server_text.
Error errno_error(int error, std::string what);

// The first line without surrounding blanks: attributes end with a newline, some with a blank too.
Result<std::string> read_line(const HostFs& fs, const std::string& path);
// The first line as a whole non-negative number. Errors: also parse.
Result<std::int64_t> read_number(const HostFs& fs, const std::string& path);
// The first line, split at blanks.
Result<std::vector<std::string>> read_words(const HostFs& fs, const std::string& path);

// Digits only, below 10^18; nullopt otherwise.
std::optional<std::int64_t> parse_number(std::string_view text);

// One store into an attribute and what must be read back afterwards.
struct AttributeWrite {
  std::string path, value;
  std::string what;            // for messages: "governor of policy0"
  std::int64_t tolerance = 0;  // a number may be read back so far off (hardware rounding)
  bool any_word = false;       // the kernel answers with a word of its own choice ("default")
};

// Writes, reads back, compares. Errors: of the write or the read; conflict when something else is
// read back (the kernel clamped it, or a firmware lock undid it), with both values in the message.
Result<void> perform(HostFs& fs, const AttributeWrite& write);

}  // namespace kwatt::hardware
