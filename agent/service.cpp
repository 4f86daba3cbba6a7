#include "agent/service.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <list>
#include <memory>
#include <random>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "agent/agent.hpp"
#include "agent/environment.hpp"
#include "agent/health.hpp"
#include "agent/power_requests.hpp"
#include "agent/pusher.hpp"
#include "api/decode.hpp"
#include "base/log.hpp"
#include "kube/informer.hpp"
#include "net/run.hpp"

namespace kwatt::agent {
namespace {

using net::Task;

// A last report must not hold up the end of the machine.
constexpr Duration kLastReport = std::chrono::milliseconds{1500};
constexpr Duration kEnd = std::chrono::milliseconds{1000};
constexpr Duration kStep = std::chrono::milliseconds{20};
constexpr Duration kPowerRetry = std::chrono::seconds{5};
constexpr Duration kLongestLeasePause = std::chrono::seconds{30};

Result<api::Node> decode_node(std::string_view json) {
  api::Node node;
  if (auto done = api::decode(json, node); !done) return done.error();
  return node;
}

class Service {
 public:
  Service(const Options& options, const kube::Config& kube_config, hardware::RootedFs sys,
          hardware::RootedFs proc, const std::string& boot_id)
      : options_(options),
        sys_(std::move(sys)),
        proc_(std::move(proc)),
        client_(kube::make_client(io_.get_executor(), kube_config,
                                  {.user_agent = std::string("kwatt-agent/") + KWATT_VERSION,
                                   .queries_per_second = 5,
                                   .burst = 10},
                                  clock_)),
        informer_(*client_,
                  {.resource = kube::resources::nodes(),
                   .namespace_name = {},
                   .field_selector = "metadata.name=" + options.node_name,
                   .label_selector = {}},
                  decode_node, clock_, metrics_),
        power_({.boot_id = boot_id, .power_off_command = options.power_off_command}, clock_,
               metrics_, hardware::send_magic_packet, hardware::run_program),
        agent_(
            {.node_name = options.node_name,
             .boot_id = boot_id,
             .version = KWATT_VERSION,
             .restore_after = options.restore_after,
             .sample_interval = options.sample_interval,
             .check_interval = std::max<Duration>(options.sample_interval, std::chrono::seconds{2}),
             .full_interval = std::chrono::seconds{30},
             .report_timing = {},
             .can_power_off = !options.power_off_command.empty(),
             .other_errors = [this] { return power_.errors(); }},
            *client_, sys_, proc_, clock_, metrics_),
        signals_(io_, SIGTERM, SIGINT) {
    informer_.store().subscribe([this](const kube::Delta<api::Node>&) { node_changed(); });
    if (!options.controller_url.empty()) {
      pusher_ = std::make_unique<Pusher>(
          io_.get_executor(), PusherOptions{.url = *net::parse_url(options.controller_url),
                                            .ca_file = options.controller_ca_file,
                                            .token_file = options.controller_token_file,
                                            .node = options.node_name,
                                            .boot_id = boot_id});
      agent_.on_sample([this](const telemetry::AgentSample& sample) { pusher_->add(sample); });
    }
  }

  int run() {
    if (!options_.health_address.empty() && !start_health()) return 1;
    spawn(informer_.run(), "watch of the Node");
    spawn(step_loop(), "main loop");
    spawn(lease_loop(), "lease");
    spawn(power_loop(), "power requests");
    if (pusher_) spawn(push_loop(), "push");
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      log::info("stopping: original settings come back", {{"signal", signal}});
      stop();
    });
    io_.run();
    if (running_ > 0) {
      // Destroying what they use would be worse; the hardware is as it should be.
      log::warn("not everything has ended in time", {{"parts", running_}});
      std::_Exit(exit_code_);
    }
    return exit_code_;
  }

 private:
  // One coroutine that runs until it is cancelled.
  struct Part {
    const char* name;
    boost::asio::cancellation_signal cancel;
  };

  // A part that ends by an exception is a bug: better a restart than half an agent.
  void spawn(Task<void> task, const char* name) {
    Part& part = parts_.emplace_back();
    part.name = name;
    ++running_;
    const auto ended = [this, name](const std::exception_ptr& failure) {
      --running_;
      part_ended_.notify_all();
      if (!failure || stopping_) return;
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        log::error("ended unexpectedly", {{"part", name}, {"error", error.what()}});
      }
      exit_code_ = 1;
      stop();
    };
    boost::asio::co_spawn(io_, std::move(task),
                          boost::asio::bind_cancellation_slot(part.cancel.slot(), ended));
  }

  void node_changed() {
    if (!informer_.store().ready()) return;
    const auto node = informer_.store().get(options_.node_name);
    agent_.node_seen(node ? std::optional(node->meta.annotations) : std::nullopt);
    power_.node_seen(node ? node->meta.annotations : api::StringMap{});
    wake_.notify_all();
    power_wake_.notify_all();
  }

  Task<void> step_loop() {
    while (!stopping_) {
      co_await agent_.step();
      co_await wake_.wait_for(options_.sample_interval);
    }
  }

  Task<void> power_loop() {
    while (!stopping_) {
      co_await power_.step(agent_.dead_man().expired(clock_.monotonic()));
      co_await power_wake_.wait_for(kPowerRetry);
    }
  }

  Task<void> push_loop() {
    // Agents that were started together should not push together.
    std::minstd_rand engine(std::random_device{}());
    std::uniform_int_distribution<Duration::rep> start(0, options_.push_interval.count());
    co_await push_now_.wait_for(Duration{start(engine)});
    std::string last_error;
    while (!stopping_) {
      auto pushed = co_await pusher_->push();
      metrics_.add("kwatt_agent_pushes_total", "Pushes of samples to the controller.",
                   {{"result", pushed ? "ok" : std::string(to_string(pushed.error().code))}});
      const std::string error = pushed ? std::string{} : pushed.error().text();
      // A controller that only follows does not act.
      if (pushed && *pushed) agent_.dead_man().sign_of_life(clock_.monotonic());
      if (error != last_error) {
        if (pushed) {
          log::info("samples reach the controller", {});
        } else {
          log::warn("samples do not reach the controller", {{"error", error}});
        }
        last_error = error;
      }
      co_await push_now_.wait_for(options_.push_interval);
    }
  }

  // The second sign of life, asked for only while the first one is missing.
  Task<void> lease_loop() {
    Duration pause = kLongestLeasePause;
    if (options_.restore_after > Duration{0}) {
      pause = std::clamp<Duration>(options_.restore_after / 4, std::chrono::seconds{1}, pause);
    }
    // What the Lease holds is only of use if it was seen before.
    bool first = true;
    while (!stopping_) {
      if (first || agent_.dead_man().silent_for(pause, clock_.monotonic())) {
        auto body = co_await client_->get(kube::resources::leases(),
                                          {options_.lease_namespace, options_.lease_name});
        api::Lease lease;
        if (body && api::decode(*body, lease)) {
          agent_.dead_man().lease_seen(lease.renew_time, clock_.monotonic());
          first = false;
        }
      }
      co_await net::sleep(pause);
    }
  }

  bool start_health() {
    auto started =
        start_health_server(io_.get_executor(), options_.health_address,
                            {.healthy =
                                 [this] {
                                   const Duration limit = std::max<Duration>(
                                       options_.sample_interval * 5, std::chrono::minutes{2});
                                   return clock_.monotonic() - agent_.last_step() < limit;
                                 },
                             .metrics = [this] { return metrics_.render(); },
                             .push_now = [this] { push_now_.notify_all(); }});
    if (!started) {
      log::error("cannot serve the health address", {{"error", started.error()}});
      return false;
    }
    health_ = std::move(*started);
    return true;
  }

  // The hardware first and at once: whatever hangs on the network does not matter to it.
  void stop() {
    if (stopping_) return;
    stopping_ = true;
    if (!agent_.stop_hardware()) exit_code_ = 1;
    const auto end = [this](const std::exception_ptr&) { io_.stop(); };
    boost::asio::co_spawn(io_, shut_down(), end);
  }

  Task<void> last_report() {
    co_await agent_.last_report();
    reported_ = true;
  }

  // The parts must have ended before what they use is destroyed.
  Task<void> shut_down() {
    spawn(last_report(), "last report");
    for (auto left = kLastReport; !reported_ && left > Duration{0}; left -= kStep) {
      co_await part_ended_.wait_for(kStep);
    }
    for (Part& part : parts_) part.cancel.emit(boost::asio::cancellation_type::terminal);
    if (health_) co_await health_->stop(Duration{0});
    for (auto left = kEnd; running_ > 0 && left > Duration{0}; left -= kStep) {
      co_await part_ended_.wait_for(kStep);
    }
  }

  const Options& options_;
  SystemClock clock_;
  Metrics metrics_;
  net::Signal wake_, push_now_, power_wake_,
      part_ended_;  // before io_, whose end destroys the coroutines that wait for them
  boost::asio::io_context io_{1};
  hardware::RootedFs sys_, proc_;
  std::unique_ptr<kube::Client> client_;
  kube::Informer<api::Node> informer_;
  PowerRequestRunner power_;
  Agent agent_;
  std::unique_ptr<Pusher> pusher_;
  std::unique_ptr<net::Server> health_;
  boost::asio::signal_set signals_;
  std::list<Part> parts_;
  int running_ = 0;
  bool stopping_ = false, reported_ = false;
  int exit_code_ = 0;
};

}  // namespace

int run_agent(const Options& options) {
  auto environment = open_environment(options);
  if (!environment) {
    log::error("cannot start", {{"error", environment.error()}});
    return 1;
  }
  log::info("starting", {{"node", options.node_name},
                         {"version", KWATT_VERSION},
                         {"bootID", environment->boot_id},
                         {"restoreAfter", format_go_duration(options.restore_after)}});
  Service service(options, environment->kube, std::move(environment->sys),
                  std::move(environment->proc), environment->boot_id);
  return service.run();
}

}  // namespace kwatt::agent
