#pragma once
// What the agents of an Estimator tell of a machine: how busy it is, and the air around it. The
// wire formats of those that are asked over HTTP, and WAO's labels for tests.
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "api/meta.hpp"
#include "net/allow_list.hpp"
#include "net/client.hpp"
#include "telemetry/predictor.hpp"

namespace kwatt::telemetry {

struct NodeState {
  std::optional<double> cpu_usage;  // 0 … 1, of all logical processors
  std::optional<double> ambient_celsius, cpu1_celsius, cpu2_celsius;
  std::optional<double> static_pressure_pascal;  // between front and back
  bool operator==(const NodeState&) const = default;
};
// What `later` tells counts.
void lay_over(NodeState& state, const NodeState& later);

// The labels with which WAO-Estimator's fake monitor is told what to see:
// waofed.bitmedia.co.jp/node-status.{cpuusage,ambienttemp,staticpressurediff}; one that is not
// there is 0. Errors: parse, naming the label.
Result<NodeState> fake_state(const api::StringMap& labels);
// …/fakepcp.{basewatts,wpc}, whole watts; not there: 0. Errors: parse, naming the label.
Result<FakePower> fake_power(const api::StringMap& labels);
// The ranges that WAO-Scheduler's users give: labels ambient/max, ambient/min, cpu1/max, … ; both
// ends are needed. Errors: parse, naming the label.
Result<void> read_ranges(const api::StringMap& labels, PredictionPoint& point);

// Answer of WAO's differential pressure API, GET http://host:5000/api/sensor/ID.
// Errors: parse, not_found (no sensor in it).
Result<NodeState> read_pressure_answer(std::string_view json);
// ipmi_exporter's metrics: ipmi_temperature_celsius, of the sensors that say ambient, else inlet or
// intake (the coldest of them: others stand in warmed air), and of CPU1 and CPU2.
// Errors: not_found (no temperature of the air), parse (a value that is no number).
Result<NodeState> read_ipmi_metrics(std::string_view text);
// A Redfish Thermal resource: the coldest sensor whose PhysicalContext is Intake, and those of CPUs
// in their order. Errors: parse, not_found.
Result<NodeState> read_redfish_thermal(std::string_view json);

// Asks the agents that speak HTTP. No credentials are sent. `executor` outlives it.
class StateAgents {
 public:
  StateAgents(boost::asio::any_io_executor executor, net::AllowList allowed)
      : executor_(std::move(executor)), allowed_(std::move(allowed)) {}

  // `type`: DifferentialPressureAPI, IPMIExporter or Redfish. Bounded in time (5 s) and size.
  // Errors: forbidden (not on the allow-list), what net::Client says, protocol (another status than
  // 200), and those of the readers above, all naming the endpoint; invalid_argument: no such type.
  net::Task<Result<NodeState>> ask(std::string type, std::string endpoint);

 private:
  net::Task<Result<std::string>> get(net::Client& client, std::string path);
  net::Task<Result<NodeState>> ask_redfish(net::Client& client, std::string root);

  boost::asio::any_io_executor executor_;
  net::AllowList allowed_;
};

}  // namespace kwatt::telemetry
