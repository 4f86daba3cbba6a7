#pragma once
// The wiring of kwatt-controller: the only place that constructs everything.
#include <memory>

#include <boost/asio/io_context.hpp>

#include "controller/options.hpp"
#include "net/client.hpp"

namespace kwatt::controller {

class Program {
 public:
  Program(boost::asio::io_context& context, Options options);
  ~Program();

  // Runs until SIGTERM or SIGINT (0), a lost lease or a failed start (1).
  net::Task<int> run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
