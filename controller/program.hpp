#pragma once
// The wiring of kwatt-controller: the only place that constructs everything.
#include <memory>

#include "controller/options.hpp"

namespace kwatt::controller {

class Program {
 public:
  explicit Program(Options options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Runs on the calling thread until stop(), SIGTERM or SIGINT (0), a lost lease or a failed start
  // (1). Once.
  int run();
  // As SIGTERM does: ends what runs in order, then run() returns. From any thread.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
