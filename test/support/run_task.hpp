#pragma once
// Runs one coroutine to its end from a test body, with a limit so that a hang is a failure.
#include <exception>
#include <optional>
#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "net/client.hpp"

namespace kwatt::test {

namespace detail {

// `out` is shared: an abandoned task must not write into a dead frame.
template <class T>
net::Task<void> store(net::Task<T> task, std::shared_ptr<std::optional<T>> out) {
  out->emplace(co_await std::move(task));
}

}  // namespace detail

// Runs `io` until the task is done; other work on `io` (servers, peers) goes on meanwhile and may
// be left over. Rethrows what the task throws; std::runtime_error after `limit`, the task
// abandoned.
inline void run_task(boost::asio::io_context& io, net::Task<void> task,
                     Duration limit = Duration{10'000}) {
  struct State {
    bool done = false;
    std::exception_ptr error;
  };
  const auto state = std::make_shared<State>();
  boost::asio::co_spawn(io, std::move(task), [state](std::exception_ptr error) {
    state->done = true;
    state->error = error;
  });
  const auto deadline = std::chrono::steady_clock::now() + limit;
  io.restart();
  while (!state->done)
    if (io.run_one_until(deadline) == 0)
      throw std::runtime_error{"the task did not finish in time, or waits for nothing"};
  if (state->error) std::rethrow_exception(state->error);
}

template <class T>
T run_task(boost::asio::io_context& io, net::Task<T> task, Duration limit = Duration{10'000}) {
  const auto result = std::make_shared<std::optional<T>>();
  run_task(io, detail::store(std::move(task), result), limit);
  return std::move(**result);
}

}  // namespace kwatt::test
