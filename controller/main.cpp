#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/log.hpp"
#include "controller/program.hpp"

int main(int argc, char** argv) {
  int status = 0;
  const auto options = kwatt::controller::parse_options(argc, argv, status);
  if (!options) return status;
  kwatt::log::setup("kwatt-controller", options->log_level, options->log_format);

  boost::asio::io_context context(1);
  kwatt::controller::Program program(context, *options);
  boost::asio::co_spawn(context, program.run(), [&](const std::exception_ptr& error, int code) {
    status = code;
    if (error) {
      status = 1;
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& what) {
        kwatt::log::error("the controller failed", {{"error", what.what()}});
      }
    }
    // Whatever still waits (watches, timers) ends here.
    context.stop();
  });
  context.run();
  return status;
}
