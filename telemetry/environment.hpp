#pragma once
// The air around machines and the heat in them, as ipmi_exporter and an operator's own query have
// it in Prometheus. Power models want it, and so do limits of temperature.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/prometheus_client.hpp"
#include "telemetry/source.hpp"

namespace kwatt::telemetry {

struct Environment {
  std::optional<Millicelsius> ambient;     // the air that goes in
  std::optional<Millicelsius> cpu1, cpu2;  // packages
  std::optional<double> static_pressure_pascal;
  TimePoint at;  // when Prometheus was asked; its own values may be five minutes older
};

// Which of a machine's sensors `name` is, by what vendors call them: "Ambient", "Inlet Temp",
// "CPU1 Temp", "CPU 2". Everything else (exhaust, DIMMs, drives) is other.
enum class Sensor { ambient, cpu1, cpu2, other };
Sensor sensor_of(std::string_view name);

struct Environments {
  std::map<std::string, Environment, std::less<>> by_node;
  std::map<Rejection, std::size_t> rejected;
  std::string example;  // a sentence on the first rejected reading; "": none
  void reject(Rejection why, std::string sentence);
};

// ipmi_temperature_celsius{name=…}. Of several ambient sensors the one that WAO reads, "Ambient",
// counts, else the coolest. Pure.
void read_temperatures(Environments& out, const std::vector<Series>& series,
                       const std::vector<std::string>& labels, const NodeDirectory& nodes,
                       TimePoint now);
// One series for each node, in pascals. Pure.
void read_pressures(Environments& out, const std::vector<Series>& series,
                    const std::vector<std::string>& labels, const NodeDirectory& nodes,
                    TimePoint now);

class EnvironmentSource {
 public:
  // `pressure_query`: PromQL; "": none is asked for.
  EnvironmentSource(boost::asio::any_io_executor executor, PrometheusServer server,
                    bool temperatures, std::string pressure_query);
  // Errors: those of PollSource::fetch(), but an answer without any series is empty, not an error.
  net::Task<Result<Environments>> fetch(std::shared_ptr<const NodeDirectory> nodes, TimePoint now);

 private:
  std::vector<std::string> labels_;
  bool temperatures_;
  std::string pressure_query_;
  PrometheusClient client_;
};

// The newest of each node. Not thread-safe.
class EnvironmentStore {
 public:
  static constexpr Duration kBelieved = std::chrono::minutes{5};
  void take(const Environments& environments);
  // nullptr: nothing is known, or it is too old.
  const Environment* find(std::string_view node, TimePoint now) const;

 private:
  std::map<std::string, Environment, std::less<>> by_node_;
};

}  // namespace kwatt::telemetry
