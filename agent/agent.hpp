#pragma once
// The heart of kwatt-agent: from the Node's annotations to the hardware and back to the report.
// Does no waiting of its own: service.cpp calls step() at every sample interval and when the Node
// changed.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/dead_man.hpp"
#include "agent/desired.hpp"
#include "agent/plan.hpp"
#include "agent/report.hpp"
#include "agent/sampler.hpp"
#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "kube/client.hpp"

namespace kwatt::agent {

struct AgentConfig {
  std::string node_name, boot_id, version;
  Duration restore_after = std::chrono::minutes{10};
  Duration sample_interval = std::chrono::seconds{1};
  // How often the hardware is compared with what it should be.
  Duration check_interval = std::chrono::seconds{2};
  // How often all that rarely changes is read with it: what the drivers offer, which CPUs share a
  // clock. A new wish, and CPUs that come or go, are reason enough too.
  Duration full_interval = std::chrono::seconds{30};
  ReportTiming report_timing;
  bool can_power_off = false;                                   // for the report
  std::function<std::vector<std::string>()> other_errors = {};  // more sentences for the report
};

// The rules it keeps:
// - nothing is written to the hardware before the Node was seen, and before the original settings
//   are in NodePower status.report together with what is about to be held;
// - no report is sent before it is known whether an earlier life of this boot left an original;
// - what is refused stays as it is, what failed is tried again with growing pauses;
// - once stop_hardware() was called, nothing is written any more.
// Single-threaded; everything passed in outlives it.
class Agent {
 public:
  Agent(AgentConfig config, kube::Client& client, hardware::HostFs& sys,
        const hardware::HostFs& proc, const Clock& clock, Metrics& metrics);

  // The Node as the watch shows it, from the first complete list on; nullopt: it does not exist,
  // which asks for nothing.
  void node_seen(const std::optional<api::StringMap>& annotations);
  // Every new sample, for the push.
  void on_sample(std::function<void(const telemetry::AgentSample&)> callback) {
    sample_callback_ = std::move(callback);
  }
  // The dead-man timer: fed by the service.
  DeadMan& dead_man() { return dead_man_; }

  // Does what is due: sample, compare and write, report. One at a time.
  kube::Task<void> step();

  // Gives the machine back its original settings, but for a cap that must outlive us, and writes
  // nothing from then on. Does not wait: the original is stored already. False: something could not
  // be restored (it is logged).
  bool stop_hardware();
  // The last report, after stop_hardware().
  kube::Task<void> last_report();
  // A report whatever was written before; false: it did not arrive.
  kube::Task<bool> report_now();

  // When step() last ended.
  MonotonicPoint last_step() const { return last_step_; }
  bool converged() const { return converged_; }
  // Whether an earlier life of this boot left something held.
  bool found_held() const { return found_held_; }
  // What may still differ from the original settings; nullopt: not known yet.
  std::optional<Held> held() const { return original_ ? std::optional(held_) : std::nullopt; }

 private:
  enum class Reading { settings, all };
  bool read_state(Reading what);
  void take_sample();
  kube::Task<void> apply();
  kube::Task<bool> load_original();
  kube::Task<bool> store(const Held& held);
  kube::Task<void> report();
  kube::Task<bool> write_report(const Held& held);
  Plan plan(const DesiredSettings& desired, bool cap_changed) const;
  bool write_hardware(const Plan& todo);
  api::AgentReport build(const Held& held) const;
  void new_wish();
  bool changed_by_others() const;
  void note_preference(const Plan& done);
  void does_not_stay(const Plan& todo);
  bool remembered(const Plan& todo) const;
  void note(std::vector<std::string>& where, std::vector<std::string> sentences, const char* what);

  AgentConfig config_;
  kube::Client& client_;
  hardware::HostFs& sys_;
  const Clock& clock_;
  Metrics& metrics_;
  Sampler sampler_;
  DeadMan dead_man_;
  std::function<void(const telemetry::AgentSample&)> sample_callback_;

  bool node_known_ = false;  // the watch has told something
  bool stopped_ = false;
  DesiredSettings annotated_;
  std::uint64_t node_version_ = 0;  // counts node_seen()
  MachineState state_;
  bool state_good_ = false;
  std::optional<Original> original_;  // known from load_original() on
  std::optional<Original> stored_;    // as NodePower has it: what a successor would restore
  Held held_;
  std::optional<Milliwatts> planned_cap_;
  bool found_held_ = false;
  bool given_up_ = false;  // the controller, by the dead-man timer
  bool converged_ = false;
  std::string applied_request_;
  std::optional<telemetry::AgentSample> sample_;
  std::vector<std::string> state_errors_, refusals_, write_errors_;

  std::optional<api::AgentReport> written_;  // the report that the API server has
  MonotonicPoint written_at_{}, sampled_at_{}, checked_at_{}, read_all_at_{}, last_step_{};
  MonotonicPoint next_write_{}, next_load_{}, next_report_{};
  bool check_now_ = true;
  bool retry_ = false;       // a store is due at next_write_
  MonotonicPoint set_at_{};  // when all stores of the present wish last succeeded; zero: never
  std::optional<Original> set_to_;  // the settings right after that
  std::string shown_preference_;    // what the kernel calls the preference that was stored
  bool does_not_stay_ = false;      // what was set was found undone
  int samples_taken_ = 0;
  Backoff write_backoff_, load_backoff_, report_backoff_;
};

}  // namespace kwatt::agent
