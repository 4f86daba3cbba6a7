#pragma once
// Other people's programs, run without blocking: ipmitool, the scripts of people, a power-off
// command.
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "net/client.hpp"

namespace kwatt::hardware {

template <class T>
using Task = net::Task<T>;

struct Program {
  Program() = default;
  explicit Program(std::string file, std::vector<std::string> args = {})
      : path(std::move(file)), arguments(std::move(args)) {}

  std::string path;                    // without a slash it is looked for in our own $PATH
  std::vector<std::string> arguments;  // everybody on the machine can read these: no passwords
  // NAME and value. The program gets these, our PATH and LANG=C, and nothing else of ours.
  std::vector<std::pair<std::string, std::string>> environment;
  Duration timeout = std::chrono::seconds{60};
  std::size_t output_limit = 64 * 1024;  // of standard output, and of standard error
};

struct Finished {
  int exit_code = 0;  // 128 + signal if a signal ended it, as a shell says
  std::string out, err;
};

// Runs the program in a process group of its own, with nothing on standard input and none of our
// other descriptors, and waits for its end on the caller's executor. When it ends, fails or takes
// too long, everything left of the group is killed (what must go on needs setsid), and it is always
// waited for: no zombies. Any exit code is a result.
// Errors: io (it could not be started), invalid_argument (a word with a zero byte), timeout,
// protocol (more output than the limit), cancelled (terminal cancellation; the group is killed).
Task<Result<Finished>> run_program(Program program);

}  // namespace kwatt::hardware
