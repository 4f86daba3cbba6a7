#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include "net/run.hpp"
#include "test/support/run_task.hpp"

using namespace kwatt;
using namespace std::chrono_literals;

namespace {

net::Task<void> wait_and_note(net::Signal& signal, Duration at_most, std::optional<bool>* out) {
  *out = co_await signal.wait_for(at_most);
}

net::Task<void> sleep_and_note(Duration duration, std::optional<bool>* out) {
  co_await net::sleep(duration);
  *out = true;
}

}  // namespace

TEST_CASE("a signal wakes everyone who waits, and nobody who comes later") {
  boost::asio::io_context io;
  net::Signal signal;
  std::optional<bool> first, second, late;
  const auto ignore = [](std::exception_ptr) {};
  boost::asio::co_spawn(io, wait_and_note(signal, 5s, &first), ignore);
  boost::asio::co_spawn(io, wait_and_note(signal, 5s, &second), ignore);
  test::run_task(io, net::sleep(5ms));
  CHECK_FALSE(first.has_value());
  signal.notify_all();
  test::run_task(io, net::sleep(5ms));
  CHECK(first == true);
  CHECK(second == true);
  test::run_task(io, wait_and_note(signal, 10ms, &late));
  CHECK(late == false);
}

TEST_CASE("a cancelled wait throws, so that nothing behind it runs") {
  boost::asio::io_context io;
  net::Signal signal;
  boost::asio::cancellation_signal cancel;
  std::optional<bool> waited;
  std::exception_ptr thrown;
  const auto keep = [&](std::exception_ptr error) { thrown = error; };

  SUBCASE("signal") {
    boost::asio::co_spawn(io, wait_and_note(signal, 5s, &waited),
                          boost::asio::bind_cancellation_slot(cancel.slot(), keep));
  }
  SUBCASE("sleep") {
    boost::asio::co_spawn(io, sleep_and_note(5s, &waited),
                          boost::asio::bind_cancellation_slot(cancel.slot(), keep));
  }
  test::run_task(io, net::sleep(5ms));
  cancel.emit(boost::asio::cancellation_type::terminal);
  test::run_task(io, net::sleep(5ms));
  CHECK_FALSE(waited.has_value());
  REQUIRE(thrown);
  CHECK_THROWS_AS(std::rethrow_exception(thrown), boost::system::system_error);
  signal.notify_all();  // nobody is left to be woken
}
