#pragma once
// Measures the machine: CPU time, frequency and power, at every sample interval.
#include <optional>
#include <string>
#include <vector>

#include "agent/original.hpp"
#include "hardware/powercap.hpp"
#include "hardware/procstat.hpp"
#include "hardware/sysfs_files.hpp"
#include "telemetry/ingest_format.hpp"

namespace kwatt::agent {

// Both file systems outlive it. Not thread-safe.
class Sampler {
 public:
  Sampler(const hardware::HostFs& sys, const hardware::HostFs& proc) : sys_(sys), proc_(proc) {}

  // The averages since the call before; nullopt at the first call, and when no CPU time has passed.
  // Power comes from the machine's meter, else RAPL's psys zone, else packages plus memory; what
  // cannot be read is left out and named by errors(). `known` tells policies and zones.
  std::optional<telemetry::AgentSample> sample(const MachineState& known, TimePoint now,
                                               MonotonicPoint monotonic);

  // Whole machine minus CPU packages; nullopt: not both measured (yet). A steady value: it follows
  // the smoothed measurement only when that has moved by more than noise, because every change of
  // it changes the limits that a cap stands for.
  std::optional<Milliwatts> non_package() const { return steady_outside_; }
  // Whether non_package() is still to come: it takes some samples where both are measured.
  bool measuring_outside() const;
  // Sentences about what could not be read at the last sample.
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  struct Power {
    std::optional<Milliwatts> watts;
    telemetry::PowerSource source = telemetry::PowerSource::none;
  };
  Power measure_power(const MachineState& known, MonotonicPoint now);
  std::optional<Milliwatts> read_meter(MonotonicPoint now);
  std::optional<std::int64_t> read_temperature(MonotonicPoint now);
  void note_outside(Milliwatts machine, Milliwatts packages);

  const hardware::HostFs& sys_;
  const hardware::HostFs& proc_;
  hardware::EnergyMeter energy_;
  std::optional<hardware::CpuTimes> cpu_;
  std::optional<std::string> meter_path_;
  std::optional<MonotonicPoint> meter_searched_, temperature_searched_;
  std::vector<std::string> temperature_paths_;
  Milliwatts smoothed_outside_;
  std::optional<Milliwatts> steady_outside_;
  int samples_ = 0, outside_samples_ = 0;
  std::vector<std::string> errors_;
};

}  // namespace kwatt::agent
