#include "hardware/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

// A killed process that does not end (it waits for a dead disk) is left to be reaped later.
constexpr auto kKillPatience = std::chrono::seconds{2};

Error no_start(const std::string& path, int number) {
  return fail(ErrorCode::io, fmt::format("cannot start {}: {}", path, std::strerror(number)));
}

// One pipe: what the program writes, collected up to a limit.
struct Stream {
  explicit Stream(const asio::any_io_executor& executor) : reader(executor) {}
  Descriptor reader;
  std::string text;
  std::array<char, 4096> piece{};
};

// A zero byte would cut the word off where the program reads it.
Result<void> check_words(const Program& program) {
  const auto bad = [](const std::string& word) { return word.find('\0') != std::string::npos; };
  bool found = bad(program.path);
  for (const std::string& word : program.arguments) found = found || bad(word);
  for (const auto& [name, value] : program.environment) found = found || bad(name) || bad(value);
  if (!found) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("an argument or variable for {} has a zero byte in it", program.path));
}

struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

// Shared by the coroutine and its callbacks, so that a child outlives neither without being killed
// and reaped.
class Child : public std::enable_shared_from_this<Child> {
 public:
  Child(const asio::any_io_executor& executor, std::size_t limit)
      : out(executor), err(executor), changed(executor), ended_(executor), limit_(limit) {}
  ~Child() {
    if (pid_ <= 0) return;
    kill();
    reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Result<void> start(const Program& program) {
    std::array<int, 2> out_pipe{-1, -1}, err_pipe{-1, -1};
    if (::pipe2(out_pipe.data(), O_CLOEXEC) != 0) return no_start(program.path, errno);
    out.reader.assign(out_pipe[0]);
    if (::pipe2(err_pipe.data(), O_CLOEXEC) != 0) {
      const int number = errno;
      ::close(out_pipe[1]);
      return no_start(program.path, number);
    }
    err.reader.assign(err_pipe[0]);
    const int failed = spawn(program, out_pipe[1], err_pipe[1]);
    ::close(out_pipe[1]);
    ::close(err_pipe[1]);
    if (failed != 0) return no_start(program.path, failed);
    const long handle = ::syscall(SYS_pidfd_open, pid_, 0);
    if (handle < 0) return no_start(program.path, errno);
    ended_.assign(static_cast<int>(handle));
    out.reader.native_non_blocking(true);
    err.reader.native_non_blocking(true);
    read(out);
    read(err);
    ended_.async_wait(Descriptor::wait_read, [self = shared_from_this()](error_code) {
      if (self->pid_ > 0) self->finish();
    });
    return {};
  }

  // The whole group: what a script has started goes with it.
  void kill() const {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
  }
  void stop_reading() {
    out.reader.close();
    err.reader.close();
  }
  bool ended() const { return pid_ == 0; }
  bool too_much() const { return too_much_; }
  int exit_code() const { return exit_code_; }

  Stream out, err;
  asio::steady_timer changed;  // cancelled when the program has ended or said too much

 private:
  int spawn(const Program& program, int out_end, int err_end) {
    SpawnSettings settings;
    posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&settings.actions, out_end, 1);
    posix_spawn_file_actions_adddup2(&settings.actions, err_end, 2);
    posix_spawn_file_actions_addclosefrom_np(&settings.actions, 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&settings.attributes, &none);
    posix_spawnattr_setsigdefault(&settings.attributes, &all);
    posix_spawnattr_setpgroup(&settings.attributes, 0);
    posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                       POSIX_SPAWN_SETPGROUP);

    std::vector<std::string> words{program.path};
    words.insert(words.end(), program.arguments.begin(), program.arguments.end());
    const char* path = std::getenv("PATH");
    std::vector<std::string> variables{
        fmt::format("PATH={}", path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin"), "LANG=C"};
    for (const auto& [name, value] : program.environment)
      variables.push_back(fmt::format("{}={}", name, value));
    std::vector<char*> argv, envp;
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& variable : variables) envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    pid_t pid = 0;
    const int failed = ::posix_spawnp(&pid, program.path.c_str(), &settings.actions,
                                      &settings.attributes, argv.data(), envp.data());
    if (failed == 0) pid_ = pid;
    return failed;
  }

  // Takes in a piece; false: that was too much.
  bool take(Stream& stream, std::size_t size) {
    const std::size_t room = limit_ - stream.text.size();
    stream.text.append(stream.piece.data(), std::min(size, room));
    too_much_ = too_much_ || size > room;
    return !too_much_;
  }

  // Waits and then reads, rather than reads asynchronously: a piece read already whose handler runs
  // after finish() would be lost.
  void read(Stream& stream) {
    stream.reader.async_wait(Descriptor::wait_read,
                             [self = shared_from_this(), &stream](error_code error) {
                               if (error || self->ended()) return;
                               if (self->take_piece(stream)) return self->read(stream);
                               if (self->too_much_) self->changed.cancel();
                             });
  }

  // One piece of what is in the pipe; false: its end, or that was too much.
  bool take_piece(Stream& stream) {
    const ssize_t size =
        ::read(stream.reader.native_handle(), stream.piece.data(), stream.piece.size());
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    return size > 0 && take(stream, static_cast<std::size_t>(size));
  }

  // What is still in the pipe; a descendant that escaped may hold it open for ever.
  void drain(Stream& stream) {
    while (stream.reader.is_open()) {
      const std::size_t before = stream.text.size();
      if (!take_piece(stream) || stream.text.size() == before) return;
    }
  }

  void finish() {
    kill();  // before reaping: as long as the leader is a zombie, the group's number is taken
    drain(out);
    drain(err);
    reap();
    stop_reading();
    changed.cancel();
  }

  void reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    pid_ = 0;
  }

  Descriptor ended_;  // a pidfd, readable when the program has ended
  std::size_t limit_;
  pid_t pid_ = -1;  // -1: not started, 0: reaped
  int exit_code_ = 0;
  bool too_much_ = false;
};

// However the coroutine ends, the program does not go on.
struct KillAtEnd {
  explicit KillAtEnd(Child& running) : child(running) {}
  ~KillAtEnd() { child.kill(); }
  KillAtEnd(const KillAtEnd&) = delete;
  KillAtEnd& operator=(const KillAtEnd&) = delete;
  Child& child;
};

}  // namespace

Task<Result<Finished>> run_program(Program program) {
  constexpr auto token = asio::as_tuple(asio::use_awaitable);
  if (auto good = check_words(program); !good) co_return good.error();
  const auto executor = co_await asio::this_coro::executor;
  const auto child = std::make_shared<Child>(executor, program.output_limit);
  if (auto started = child->start(program); !started) co_return started.error();
  const KillAtEnd guard(*child);

  child->changed.expires_after(program.timeout);
  auto [waited] = co_await child->changed.async_wait(token);
  if (child->ended() && !child->too_much()) {
    Finished finished;
    finished.exit_code = child->exit_code();
    finished.out = std::move(child->out.text);
    finished.err = std::move(child->err.text);
    co_return finished;
  }
  child->kill();
  child->stop_reading();
  if (child->too_much()) {
    co_return fail(ErrorCode::protocol,
                   fmt::format("{} wrote more than {} bytes", program.path, program.output_limit));
  }
  if (waited) co_return fail(ErrorCode::cancelled, program.path + " was stopped");
  child->changed.expires_after(kKillPatience);
  co_await child->changed.async_wait(token);
  co_return fail(ErrorCode::timeout, fmt::format("{} did not end within {}", program.path,
                                                 format_go_duration(program.timeout)));
}

}  // namespace kwatt::hardware
