#include "agent/power_requests.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.hpp"
#include "hardware/excerpt.hpp"

namespace kwatt::agent {
namespace {

using hardware::WakeNote;

// An old note was dealt with by an earlier life of this agent, or is nobody's any more; the clocks
// of two machines may differ a little.
constexpr Duration kStale = std::chrono::minutes{5};
constexpr Duration kPowerOffTimeout = std::chrono::seconds{60};
constexpr Duration kPowerOffRetry = std::chrono::seconds{30};

}  // namespace

PowerRequests parse_power_requests(const api::StringMap& annotations, const std::string& boot_id) {
  PowerRequests requests;
  if (const auto value = annotations.get(hardware::kWakeAnnotation); !value.empty()) {
    if (auto notes = hardware::parse_wake_notes(value)) {
      requests.wakes = std::move(*notes);
    } else {
      requests.errors.push_back(notes.error().text());
    }
  }
  const auto state = annotations.get(hardware::kPowerStateAnnotation);
  const auto boot = annotations.get(hardware::kPowerOffBootAnnotation);
  if (state == "off" && boot.empty()) {
    requests.errors.push_back(
        fmt::format("{}: off without the controller's {} switches nothing off; hold a node off "
                    "with kwatt.dev/override",
                    hardware::kPowerStateAnnotation, hardware::kPowerOffBootAnnotation));
  } else if (state == "off") {
    requests.off = !boot_id.empty() && boot == boot_id;
  } else if (!state.empty() && state != "on") {
    requests.errors.push_back(fmt::format("{}: \"{}\" is neither on nor off",
                                          hardware::kPowerStateAnnotation,
                                          hardware::excerpt(state, 60)));
  }
  return requests;
}

PowerRequestRunner::PowerRequestRunner(PowerRequestsConfig config, const Clock& clock,
                                       Metrics& metrics, Send send, Run run)
    : config_(std::move(config)),
      clock_(clock),
      metrics_(metrics),
      send_(std::move(send)),
      run_(std::move(run)) {}

void PowerRequestRunner::node_seen(const api::StringMap& annotations) {
  PowerRequests requests = parse_power_requests(annotations, config_.boot_id);
  if (requests == requests_) return;
  requests_ = std::move(requests);
  for (const std::string& error : requests_.errors) {
    log::warn("annotation not understood", {{"error", error}});
  }
  std::set<std::string> still;
  for (const WakeNote& note : requests_.wakes) {
    if (sent_.contains(note.id)) still.insert(note.id);
  }
  sent_ = std::move(still);
  if (!requests_.off) {
    off_done_ = false;
    off_error_.clear();
    next_off_ = {};
  }
}

hardware::Task<void> PowerRequestRunner::step(bool controller_lost) {
  wake();
  if (requests_.off && !off_done_ && !controller_lost && clock_.monotonic() >= next_off_) {
    co_await switch_off();
  }
}

void PowerRequestRunner::wake() {
  wake_errors_.clear();
  for (const WakeNote& note : requests_.wakes) {
    if (sent_.contains(note.id)) continue;
    if (std::chrono::abs(clock_.now() - note.time) > kStale) continue;
    const auto sent = send_(note.mac);
    metrics_.add("kwatt_agent_magic_packets_total", "Wake-on-LAN packets sent for other machines.",
                 {{"result", sent ? "ok" : std::string(to_string(sent.error().code))}});
    if (!sent) {
      wake_errors_.push_back(sent.error().with_context(fmt::format("waking {}", note.node)).text());
      log::warn("magic packet not sent", {{"node", note.node}, {"error", sent.error()}});
      continue;
    }
    sent_.insert(note.id);
    log::info("magic packet sent", {{"node", note.node},
                                    {"mac", hardware::to_string(note.mac)},
                                    {"id", note.id},
                                    {"through", fmt::format("{}", fmt::join(*sent, ", "))}});
  }
}

hardware::Task<void> PowerRequestRunner::switch_off() {
  if (config_.power_off_command.empty()) {
    off_error_ =
        fmt::format("{}: this agent has no --power-off-command", hardware::kPowerStateAnnotation);
    co_return;
  }
  hardware::Program program(config_.power_off_command.front());
  program.arguments.assign(config_.power_off_command.begin() + 1, config_.power_off_command.end());
  program.timeout = kPowerOffTimeout;
  log::info("switching this machine off, as the controller asks",
            {{"command", fmt::format("{}", fmt::join(config_.power_off_command, " "))}});
  auto done = co_await run_(std::move(program));
  std::string error;
  if (!done) {
    error = done.error().text();
  } else if (done->exit_code != 0) {
    error = fmt::format("exit code {}: {}", done->exit_code, hardware::excerpt(done->err));
  }
  metrics_.add("kwatt_agent_power_offs_total", "Runs of --power-off-command.",
               {{"result", error.empty() ? "ok" : "failed"}});
  off_done_ = error.empty();
  next_off_ = clock_.monotonic() + kPowerOffRetry;
  if (!error.empty()) {
    error = "--power-off-command: " + error;
    log::warn("this machine could not be switched off", {{"error", error}});
  }
  off_error_ = std::move(error);
}

std::vector<std::string> PowerRequestRunner::errors() const {
  std::vector<std::string> all = requests_.errors;
  all.insert(all.end(), wake_errors_.begin(), wake_errors_.end());
  if (!off_error_.empty()) all.push_back(off_error_);
  return all;
}

}  // namespace kwatt::agent
