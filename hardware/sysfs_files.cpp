#include "hardware/sysfs_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

// Closes a descriptor at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

ErrorCode code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENODEV:
    case ENOTDIR:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::forbidden;
    case EINVAL:
    case ERANGE:
      return ErrorCode::invalid_argument;
    case EBUSY:
    case EAGAIN:
      return ErrorCode::unavailable;
    case ENODATA:
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::io;
  }
}

}  // namespace

Error errno_error(int error, std::string what) {
  std::array<char, 128> buffer{};
  return fail(code_of(error), std::move(what), ::strerror_r(error, buffer.data(), buffer.size()));
}

Result<RootedFs> RootedFs::open(const std::string& root) {
  const int fd = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, "open " + root);
  return RootedFs(fd, root);
}

RootedFs::RootedFs(RootedFs&& other) noexcept
    : root_fd_(std::exchange(other.root_fd_, -1)), root_(std::move(other.root_)) {}

RootedFs& RootedFs::operator=(RootedFs&& other) noexcept {
  std::swap(root_fd_, other.root_fd_);
  std::swap(root_, other.root_);
  return *this;
}

RootedFs::~RootedFs() {
  if (root_fd_ >= 0) ::close(root_fd_);
}

Result<int> RootedFs::open_below(const std::string& path, int flags) const {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOCTTY);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: a rename raced with the resolution (openat2(2)); a few tries settle it.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root_fd_, path.c_str(), &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    if (errno != EAGAIN && errno != EINTR) break;
  }
  if (errno == ENOSYS) {
    return fail(ErrorCode::unsupported, "openat2 is missing: Linux 5.6 or later is needed");
  }
  return errno_error(errno, fmt::format("open {}/{}", root_, path));
}

Result<std::string> RootedFs::read(const std::string& path, std::size_t limit) const {
  auto opened = open_below(path, O_RDONLY);
  if (!opened) return opened.error();
  const Descriptor fd(*opened);
  // Attributes give all they have to the first read; a second one, only to hear that there is no
  // more, would be a third of the cost.
  std::array<char, 4096> buffer;
  ssize_t got = -1;
  do {
    got = ::read(fd.get(), buffer.data(), std::min(limit, buffer.size()));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno_error(errno, fmt::format("read {}/{}", root_, path));
  return std::string(buffer.data(), static_cast<std::size_t>(got));
}

Result<void> RootedFs::write(const std::string& path, std::string_view value) {
  // O_TRUNC means nothing to sysfs; on a plain directory it keeps the tail of a longer old value
  // out.
  auto opened = open_below(path, O_WRONLY | O_TRUNC);
  if (!opened) return opened.error();
  const Descriptor fd(*opened);
  std::string line(value);
  line += '\n';
  ssize_t written = -1;
  do {
    written = ::write(fd.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno_error(errno, fmt::format("write {}/{}", root_, path));
  if (static_cast<std::size_t>(written) != line.size()) {
    return fail(ErrorCode::io, fmt::format("write {}/{}: only {} of {} bytes were taken", root_,
                                           path, written, line.size()));
  }
  return {};
}

Result<std::vector<std::string>> RootedFs::list(const std::string& path) const {
  auto opened = open_below(path, O_RDONLY | O_DIRECTORY);
  if (!opened) return opened.error();
  Descriptor fd(*opened);
  DIR* directory = ::fdopendir(fd.get());
  if (directory == nullptr) return errno_error(errno, fmt::format("list {}/{}", root_, path));
  fd.release();  // closed by closedir
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  if (text.empty() || text.size() > 18) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Result<std::string> read_line(const HostFs& fs, const std::string& path) {
  auto text = fs.read(path);
  if (!text) return text.error();
  return std::string(first_line(*text));
}

Result<std::int64_t> read_number(const HostFs& fs, const std::string& path) {
  auto line = read_line(fs, path);
  if (!line) return line.error();
  if (const auto number = parse_number(*line)) return *number;
  return fail(ErrorCode::parse, path + ": not a number", *line);
}

Result<std::vector<std::string>> read_words(const HostFs& fs, const std::string& path) {
  auto line = read_line(fs, path);
  if (!line) return line.error();
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line->size();) {
    const std::size_t begin = line->find_first_not_of(kBlanks, at);
    if (begin == std::string::npos) break;
    const std::size_t end = std::min(line->find_first_of(kBlanks, begin), line->size());
    words.push_back(line->substr(begin, end - begin));
    at = end;
  }
  return words;
}

Result<void> perform(HostFs& fs, const AttributeWrite& write) {
  if (auto done = fs.write(write.path, write.value); !done) {
    return done.error().with_context(fmt::format("{} to {}", write.what, write.value));
  }
  auto back = read_line(fs, write.path);
  if (!back) return back.error().with_context(write.what);
  if (*back == write.value || (write.any_word && !back->empty())) return {};
  const auto wanted = parse_number(write.value), got = parse_number(*back);
  if (wanted && got && std::max(*wanted, *got) - std::min(*wanted, *got) <= write.tolerance) {
    return {};
  }
  return fail(ErrorCode::conflict, fmt::format("{}: wrote {} but {} is in force", write.what,
                                               write.value, back->empty() ? "nothing" : *back));
}

}  // namespace kwatt::hardware
