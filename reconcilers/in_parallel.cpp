#include "reconcilers/in_parallel.hpp"

#include <algorithm>
#include <memory>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/log.hpp"
#include "net/run.hpp"

namespace kwatt::reconcilers {
namespace {

struct Shared {
  std::size_t next = 0, count = 0, running = 0;
  std::function<net::Task<void>(std::size_t)> job;
  net::Signal ended;
};

net::Task<void> work(std::shared_ptr<Shared> shared) {
  while (shared->next < shared->count) {
    const std::size_t index = shared->next++;
    try {
      co_await shared->job(index);
    } catch (const std::exception& error) {
      log::error("a job failed", {{"error", error.what()}});
    }
  }
  --shared->running;
  shared->ended.notify_all();
}

}  // namespace

net::Task<void> in_parallel(std::size_t count, std::size_t width,
                            std::function<net::Task<void>(std::size_t)> job) {
  const auto shared = std::make_shared<Shared>();
  shared->count = count;
  shared->job = std::move(job);
  shared->running = std::min(width, count);
  const auto executor = co_await boost::asio::this_coro::executor;
  for (std::size_t i = 0; i < std::min(width, count); ++i) {
    boost::asio::co_spawn(executor, work(shared), boost::asio::detached);
  }
  while (shared->running > 0) co_await shared->ended.wait_for(std::chrono::seconds{1});
}

}  // namespace kwatt::reconcilers
