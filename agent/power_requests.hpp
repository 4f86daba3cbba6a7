#pragma once
// The two requests of a Node's annotations that are about machines as a whole: wake another one
// (kwatt.dev/wake-lan) and switch this one off (kwatt.dev/power-state).
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "api/meta.hpp"
#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "hardware/process.hpp"
#include "hardware/wake_lan.hpp"
#include "hardware/wake_sender.hpp"

namespace kwatt::agent {

// What the annotations ask for. PURE.
struct PowerRequests {
  std::vector<hardware::WakeNote> wakes;
  bool off = false;                 // for this boot, by the controller
  std::vector<std::string> errors;  // sentences
  bool operator==(const PowerRequests&) const = default;
};
// kwatt.dev/power-state=off counts only together with this boot's id in kwatt.dev/power-off-boot,
// which the controller writes after it has drained the node: a note left over from an earlier boot,
// or set by hand over running pods, switches nothing off.
PowerRequests parse_power_requests(const api::StringMap& annotations, const std::string& boot_id);

struct PowerRequestsConfig {
  std::string boot_id;
  std::vector<std::string> power_off_command;  // program and arguments; empty: not offered
};

// Carries the requests out, each id and each switching-off once; what failed is tried again.
// Single-threaded; what is passed in outlives it.
class PowerRequestRunner {
 public:
  using Send = std::function<Result<hardware::Sent>(const hardware::MacAddress&)>;
  using Run = std::function<hardware::Task<Result<hardware::Finished>>(hardware::Program)>;
  PowerRequestRunner(PowerRequestsConfig config, const Clock& clock, Metrics& metrics, Send send,
                     Run run);

  // The Node's annotations as the watch shows them.
  void node_seen(const api::StringMap& annotations);
  // Does what is due. `controller_lost`: no sign of life; then nothing is switched off. One at a
  // time.
  hardware::Task<void> step(bool controller_lost);
  // For the report.
  std::vector<std::string> errors() const;

 private:
  void wake();
  hardware::Task<void> switch_off();

  PowerRequestsConfig config_;
  const Clock& clock_;
  Metrics& metrics_;
  Send send_;
  Run run_;
  PowerRequests requests_;
  std::set<std::string> sent_;  // ids of notes that are still there
  std::vector<std::string> wake_errors_;
  std::string off_error_;
  bool off_done_ = false;
  MonotonicPoint next_off_{};
};

}  // namespace kwatt::agent
