#include "agent/restore.hpp"

#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/agent.hpp"
#include "agent/environment.hpp"
#include "base/log.hpp"
#include "net/run.hpp"

namespace kwatt::agent {
namespace {

constexpr Duration kLongest = std::chrono::seconds{30};
constexpr Duration kPause = std::chrono::milliseconds{200};

// Steps until nothing is held. What is owed to CPUs that are offline cannot be given back now.
net::Task<bool> restore(Agent& agent, const Clock& clock) {
  agent.node_seen(std::nullopt);
  for (const MonotonicPoint start = clock.monotonic(); clock.monotonic() - start < kLongest;) {
    co_await agent.step();
    const auto held = agent.held();
    if (held && !held->levers()) {
      if (held->owed.any()) {
        log::warn("some CPUs are offline: they come back as they went, until the next boot", {});
      }
      if (agent.found_held() && !co_await agent.report_now()) {
        log::warn("the report still says that something is held", {});
      }
      log::info(agent.found_held() ? "original settings restored" : "nothing is held in this boot",
                {});
      co_return true;
    }
    co_await net::sleep(kPause);
  }
  log::error(agent.held() ? "not all original settings could be restored"
                          : "the original settings could not be read",
             {});
  co_return false;
}

}  // namespace

int run_restore(const Options& options) {
  auto environment = open_environment(options);
  if (!environment) {
    log::error("cannot start", {{"error", environment.error()}});
    return 1;
  }
  SystemClock clock;
  Metrics metrics;
  boost::asio::io_context io{1};
  const auto client = kube::make_client(io.get_executor(), environment->kube,
                                        {.user_agent = std::string("kwatt-agent/") + KWATT_VERSION,
                                         .queries_per_second = 5,
                                         .burst = 10},
                                        clock);
  AgentConfig config;
  config.node_name = options.node_name;
  config.boot_id = environment->boot_id;
  config.version = KWATT_VERSION;
  config.restore_after = Duration{0};
  Agent agent(config, *client, environment->sys, environment->proc, clock, metrics);
  bool good = false;
  boost::asio::co_spawn(io, restore(agent, clock),
                        [&](const std::exception_ptr& failure, bool restored) {
                          if (failure) std::rethrow_exception(failure);
                          good = restored;
                          io.stop();
                        });
  io.run();
  return good ? 0 : 1;
}

}  // namespace kwatt::agent
