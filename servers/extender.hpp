#pragma once
// The scheduler extender: POST /scheduler/filter, /scheduler/prioritize and /scheduler/bind (also
// /filter, /prioritize, /bind) for kube-scheduler; see extender_wire.hpp for the formats.
//
// filter and prioritize answer from a table of nodes alone: no API call, no wait. What stands in
// the way of advice never stands in the way of a pod: not ready, or a failing plugin, means no
// opinion (filter lets every node pass, prioritize gives each 0), and a node that is not known
// passes with 0.
//
// The handler may run on a thread of its own; what it is given must allow that.
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "net/server.hpp"
#include "placement/node_table.hpp"
#include "servers/extender_wire.hpp"

namespace kwatt::servers {

// 1,000 whole nodes of 10 KB are 10 MB; names of 5,000 are 0.2 MB.
inline constexpr std::size_t kExtenderBodyBytes = 64U << 20U;

struct ExtenderDependencies {
  // The nodes as they are now; null: not ready. Called once for each request.
  std::function<std::shared_ptr<const placement::NodeTable>()> table;
  std::shared_ptr<const placement::NodeFramework> framework;  // never null
  Metrics& metrics;
  const Clock& clock;
  // Binds the pod, at full speed if that can be had. Empty: /bind is not served.
  std::function<net::Task<Result<void>>(BindingArgs)> bind = nullptr;
};

// 200 with the result. A request that is none: filter and bind answer 200 with Error, which
// kube-scheduler logs and, with ignorable: true, passes over; prioritize has no such field and
// answers 400. 404, 405 for what is not here.
net::Handler extender_handler(ExtenderDependencies dependencies);

}  // namespace kwatt::servers
