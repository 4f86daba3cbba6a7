#pragma once
// The scheduler extender as part of the controller: the placement view on the controller's thread,
// the server on a thread of its own, so that no planning pass or watch event delays an answer.
//
// What goes across: tables of nodes, immutable, through one pointer behind a lock; and bindings,
// which are made on the controller's thread and answered on the server's.
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "controller/options.hpp"
#include "net/server.hpp"
#include "placement/node_table.hpp"
#include "servers/extender_wire.hpp"

namespace kwatt::controller {

class ExtenderService {
 public:
  // Binds a pod; runs on `home`, the controller's executor. Empty: bind is not served.
  using Bind = std::function<net::Task<Result<void>>(servers::BindingArgs)>;

  ExtenderService(ExtenderOptions options,
                  std::shared_ptr<const placement::NodeFramework> framework, Metrics& metrics,
                  const Clock& clock, boost::asio::any_io_executor home, Bind bind);
  // halt() must have been called, and `home` must run nothing any more: bindings under way end
  // here.
  ~ExtenderService();
  ExtenderService(const ExtenderService&) = delete;
  ExtenderService& operator=(const ExtenderService&) = delete;

  // Errors: those of net::Server::start(). `tls` is called on the server's thread.
  Result<void> start(std::function<net::TlsConfig()> tls);
  // From the controller's thread: the newest table, or null for "not ready".
  void publish(std::shared_ptr<const placement::NodeTable> table);
  // Lets requests under way finish for `grace`. On the controller's executor.
  net::Task<void> stop(Duration grace);
  // Ends the thread at once; nothing is answered any more. May be called twice.
  void halt();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
