#include "controller/extender_service.hpp"

#include <mutex>
#include <optional>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "net/run.hpp"
#include "servers/extender.hpp"

namespace kwatt::controller {
namespace {

namespace asio = boost::asio;

// kube-scheduler has one connection for each call under way; binds come in numbers.
constexpr std::size_t kMaxConnections = 256;

}  // namespace

struct ExtenderService::Impl {
  net::Context context;  // first: the server's sockets are gone before it
  ExtenderOptions options;
  asio::any_io_executor home;
  Bind bind;
  std::mutex mutex;
  std::shared_ptr<const placement::NodeTable> table;  // behind the mutex
  net::Handler handler;
  std::optional<net::Server> server;
  std::optional<asio::executor_work_guard<net::Context::executor_type>> work;
  std::thread thread;

  // On the server's thread. What is cancelled here must not reach over to the other one, so nothing
  // is; the binding itself is bounded.
  net::Task<Result<void>> bind_at_home(servers::BindingArgs args) {
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_return co_await asio::co_spawn(home, bind(std::move(args)), asio::use_awaitable);
  }
};

ExtenderService::ExtenderService(ExtenderOptions options,
                                 std::shared_ptr<const placement::NodeFramework> framework,
                                 Metrics& metrics, const Clock& clock, asio::any_io_executor home,
                                 Bind bind)
    : impl_(std::make_unique<Impl>()) {
  Impl& self = *impl_;
  self.options = std::move(options);
  self.home = std::move(home);
  self.bind = std::move(bind);
  servers::ExtenderDependencies dependencies{.table =
                                                 [&self] {
                                                   const std::lock_guard lock(self.mutex);
                                                   return self.table;
                                                 },
                                             .framework = std::move(framework),
                                             .metrics = metrics,
                                             .clock = clock};
  if (self.bind) {
    dependencies.bind = [&self](servers::BindingArgs args) {
      return self.bind_at_home(std::move(args));
    };
  }
  self.handler = servers::extender_handler(std::move(dependencies));
}

ExtenderService::~ExtenderService() {
  halt();
  impl_->server.reset();
  impl_->context.end();
}

Result<void> ExtenderService::start(std::function<net::TlsConfig()> tls) {
  Impl& self = *impl_;
  net::ServerOptions options;
  options.address = self.options.address->host;
  options.port = self.options.address->port;
  options.tls = self.options.tls;
  options.max_connections = kMaxConnections;
  options.limits.body_bytes = servers::kExtenderBodyBytes;
  self.server.emplace(self.context.get_executor(), options, self.handler, std::move(tls));
  if (auto started = self.server->start(); !started) return started;
  self.work.emplace(self.context.get_executor());
  self.thread = std::thread([&self] {
    for (;;) {
      try {
        self.context.run();
        return;
      } catch (const std::exception& error) {
        log::error("the extender's thread goes on after a failure", {{"error", error.what()}});
      }
    }
  });
  return {};
}

void ExtenderService::publish(std::shared_ptr<const placement::NodeTable> table) {
  const std::lock_guard lock(impl_->mutex);
  impl_->table.swap(table);  // the old one is released behind the lock
}

net::Task<void> ExtenderService::stop(Duration grace) {
  Impl& self = *impl_;
  if (!self.thread.joinable()) co_return;
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await asio::co_spawn(self.context.get_executor(), self.server->stop(grace),
                          asio::use_awaitable);
  halt();
}

void ExtenderService::halt() {
  Impl& self = *impl_;
  if (!self.thread.joinable()) return;
  self.work.reset();
  self.context.stop();
  self.thread.join();
}

}  // namespace kwatt::controller
