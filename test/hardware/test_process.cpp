#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include "hardware/process.hpp"
#include "test/hardware/print_result.hpp"
#include "test/support/folder.hpp"
#include "test/support/run_task.hpp"

TEST_SUITE_BEGIN("command");

namespace kwatt::hardware {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

Program shell(const std::string& script, Duration timeout = seconds{10}) {
  Program program("/bin/sh", {"-c", script});
  program.timeout = timeout;
  return program;
}

Result<Finished> run(Program program) {
  boost::asio::io_context io{1};
  return test::run_task(io, run_program(std::move(program)));
}

// No child of ours is left, neither running nor waiting to be reaped.
bool no_children() {
  return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool alive(const std::string& pid) {
  // A killed process may be a zombie of somebody else for a moment.
  const std::string stat = first_line("/proc/" + pid + "/stat");
  return !pid.empty() && !stat.empty() && stat.find(") Z") == std::string::npos;
}

bool ends_soon(const std::string& pid) {
  for (int i = 0; i < 200 && alive(pid); ++i) ::usleep(10'000);
  return !alive(pid);
}

TEST_CASE("process: output, errors and exit code come back") {
  const auto done = run(shell("echo out; echo err >&2; exit 7"));
  REQUIRE(done);
  CHECK(done->out == "out\n");
  CHECK(done->err == "err\n");
  CHECK(done->exit_code == 7);
  CHECK(no_children());
}

TEST_CASE("process: more than a pipe holds arrives whole, on both sides") {
  Program program = shell("head -c 300000 /dev/zero | tr '\\0' a; head -c 300000 /dev/zero >&2");
  program.output_limit = 300'000;
  const auto done = run(std::move(program));
  REQUIRE(done);
  CHECK(done->out.size() == 300'000);
  CHECK(done->err.size() == 300'000);
}

TEST_CASE("process: a program that says too much is stopped") {
  Program program = shell("while :; do echo more and more and more; done");
  program.output_limit = 10'000;
  const auto done = run(std::move(program));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::protocol);
  CHECK(done.error().message.find("more than 10000 bytes") != std::string::npos);
  CHECK(no_children());
}

TEST_CASE("process: one that takes too long is killed with all that it has started") {
  const test::Folder folder;
  const auto started = steady_clock::now();
  const auto done =
      run(shell("sleep 60 & echo $! > " + folder.path("pid") + "; trap '' TERM; wait; sleep 60",
                milliseconds{300}));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::timeout);
  CHECK(done.error().message == "/bin/sh did not end within 300ms");
  CHECK(steady_clock::now() - started < seconds{3});
  CHECK(no_children());
  CHECK(ends_soon(first_line(folder.path("pid"))));
}

TEST_CASE("process: what a program leaves behind does not hold up its end, and is killed") {
  const test::Folder folder;
  const auto started = steady_clock::now();
  const auto done = run(shell("sleep 60 & echo $! > " + folder.path("pid") + "; echo done"));
  REQUIRE(done);
  CHECK(done->out == "done\n");
  CHECK(steady_clock::now() - started < seconds{5});
  CHECK(ends_soon(first_line(folder.path("pid"))));
}

TEST_CASE("process: it gets its own environment, no input and no descriptor of ours") {
  ::setenv("KWATT_TEST_SECRET", "ours", 1);
  const int ours = ::dup(1);
  Program program = shell("env; cat; ls /proc/self/fd");
  program.environment.emplace_back("GIVEN", "a=b c");
  const auto done = run(std::move(program));
  ::close(ours);
  ::unsetenv("KWATT_TEST_SECRET");
  REQUIRE(done);
  CHECK(done->out.find("GIVEN=a=b c\n") != std::string::npos);
  CHECK(done->out.find("LANG=C\n") != std::string::npos);
  CHECK(done->out.find("PATH=") != std::string::npos);
  CHECK(done->out.find("ours") == std::string::npos);
  // 3 is the directory that ls itself reads.
  CHECK(done->out.ends_with("0\n1\n2\n3\n"));
}

TEST_CASE("process: signals that we ignore or block are as usual for it") {
  const auto ignored = std::signal(SIGPIPE, SIG_IGN);
  const auto done = run(shell("kill -PIPE $$; echo survived"));
  std::signal(SIGPIPE, ignored);
  REQUIRE(done);
  CHECK(done->out.empty());
  CHECK(done->exit_code == 128 + SIGPIPE);
}

TEST_CASE("process: what cannot be started is a sentence") {
  const auto missing = run(Program("/no/such/program"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::io);
  CHECK(missing.error().message == "cannot start /no/such/program: No such file or directory");
  const auto unnamed = run(Program("kwatt-no-such-program-in-path"));
  REQUIRE_FALSE(unnamed);
  CHECK(unnamed.error().code == ErrorCode::io);
  const auto cut = run(Program("/bin/echo", {std::string("a\0b", 3)}));
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == ErrorCode::invalid_argument);
  CHECK(no_children());
}

TEST_CASE("process: the strand goes on while a program runs") {
  boost::asio::io_context io{1};
  int ticks = 0;
  boost::asio::steady_timer timer(io);
  std::function<void()> tick = [&] {
    timer.expires_after(milliseconds{10});
    timer.async_wait([&](boost::system::error_code error) {
      if (!error && ++ticks < 1000) tick();
    });
  };
  tick();
  const auto done = test::run_task(io, run_program(shell("sleep 0.3")));
  CHECK(done);
  CHECK(ticks >= 5);
}

TEST_CASE("process: cancelled or abandoned, the program does not go on") {
  const test::Folder folder;
  const std::string script = "echo $$ > " + folder.path("pid") + "; exec sleep 60";
  SUBCASE("cancelled") {
    boost::asio::io_context io{1};
    boost::asio::cancellation_signal cancel;
    std::optional<Result<Finished>> result;
    boost::asio::co_spawn(io, run_program(shell(script)),
                          boost::asio::bind_cancellation_slot(
                              cancel.slot(), [&](std::exception_ptr, Result<Finished> answer) {
                                result.emplace(std::move(answer));
                              }));
    while (first_line(folder.path("pid")).empty()) io.run_one_for(milliseconds{10});
    cancel.emit(boost::asio::cancellation_type::terminal);
    io.run_for(seconds{5});
    REQUIRE(result);
    REQUIRE_FALSE(*result);
    CHECK(result->error().code == ErrorCode::cancelled);
  }
  SUBCASE("the executor ends") {
    boost::asio::io_context io{1};
    boost::asio::co_spawn(io, run_program(shell(script)), boost::asio::detached);
    while (first_line(folder.path("pid")).empty()) io.run_one_for(milliseconds{10});
  }
  CHECK(no_children());
  CHECK(ends_soon(first_line(folder.path("pid"))));
}

}  // namespace
}  // namespace kwatt::hardware

TEST_SUITE_END();
