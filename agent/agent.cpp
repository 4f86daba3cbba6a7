#include "agent/agent.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agent/explain.hpp"
#include "api/decode.hpp"
#include "api/encode.hpp"
#include "base/log.hpp"

namespace kwatt::agent {
namespace {

constexpr const char* kFieldManager = "kwatt-agent";
// Who undoes a setting sooner than this after it was set would undo it again.
constexpr Duration kUndoneWithin = std::chrono::minutes{1};
// The first report waits for so many samples, so that it has readings.
constexpr int kFirstReport = 4;

Backoff::Random random_source() {
  return [engine = std::minstd_rand(std::random_device{}())]() mutable {
    return std::uniform_real_distribution<double>(0, 1)(engine);
  };
}

BackoffOptions pauses(Duration maximum) {
  BackoffOptions options;
  options.initial = std::chrono::milliseconds{500};
  options.maximum = maximum;
  options.jitter = 0.3;
  return options;
}

std::string folder_of(const PolicySettings& settings) {
  return hardware::policy_folder(settings.index);
}
std::string folder_of(const ZoneSettings& settings) {
  return hardware::zone_folder(settings.id);
}
std::string folder_of(const UncoreSettings& settings) {
  return hardware::uncore_folder(settings.id);
}

std::string joined(const std::vector<std::string>& sentences) {
  return fmt::format("{}", fmt::join(sentences, "; "));
}

}  // namespace

Agent::Agent(AgentConfig config, kube::Client& client, hardware::HostFs& sys,
             const hardware::HostFs& proc, const Clock& clock, Metrics& metrics)
    : config_(std::move(config)),
      client_(client),
      sys_(sys),
      clock_(clock),
      metrics_(metrics),
      sampler_(sys, proc),
      dead_man_(config_.restore_after, clock.monotonic()),
      write_backoff_(pauses(std::chrono::seconds{60}), random_source()),
      load_backoff_(pauses(std::chrono::seconds{15}), random_source()),
      report_backoff_(pauses(std::chrono::seconds{15}), random_source()) {
  state_.measuring_outside = sampler_.measuring_outside();  // the first comparison precedes samples
}

void Agent::node_seen(const std::optional<api::StringMap>& annotations) {
  DesiredSettings desired = parse_desired(annotations.value_or(api::StringMap{}));
  if (node_known_ && desired == annotated_) return;
  node_known_ = true;
  annotated_ = std::move(desired);
  ++node_version_;
  new_wish();
  for (const std::string& error : annotated_.errors) {
    log::warn("annotation not understood", {{"error", error}});
  }
}

// Another wish deserves another try at once.
void Agent::new_wish() {
  check_now_ = true;
  next_write_ = set_at_ = read_all_at_ = {};
  set_to_.reset();
  shown_preference_.clear();
  does_not_stay_ = false;
  write_backoff_.reset();
}

kube::Task<void> Agent::step() {
  const MonotonicPoint now = clock_.monotonic();
  const bool expired = dead_man_.expired(now);
  if (expired != given_up_) {
    given_up_ = expired;
    new_wish();
    if (expired) {
      log::warn("no sign of life of the controller: original settings come back",
                {{"after", format_go_duration(config_.restore_after)}});
    } else {
      log::info("the controller gives signs of life again", {});
    }
  }
  const bool retry = retry_ && now >= next_write_;
  if (check_now_ || retry || now - checked_at_ >= config_.check_interval) {
    checked_at_ = now;
    check_now_ = false;
    state_good_ = read_state(Reading::settings);
    co_await apply();
  }
  // A little early is on time: the caller's timer and this clock are not the same.
  if (sampled_at_ == MonotonicPoint{} || now - sampled_at_ >= config_.sample_interval * 9 / 10) {
    sampled_at_ = now;
    take_sample();
  }
  co_await report();
  last_step_ = clock_.monotonic();
}

// What the settings need, or all; all too when that was too long ago.
bool Agent::read_state(Reading what) {
  const MonotonicPoint now = clock_.monotonic();
  std::vector<std::string> errors;
  const bool all = what == Reading::all || read_all_at_ == MonotonicPoint{} ||
                   now - read_all_at_ >= config_.full_interval;
  if (all || !hardware::refresh_settings(sys_, state_.cpu)) {
    read_all_at_ = now;
    if (auto cpu = hardware::read_cpufreq(sys_)) {
      state_.cpu = std::move(*cpu);
    } else {
      errors.push_back(cpu.error().with_context("CPU frequency settings").text());
    }
  }
  if (auto zones = hardware::read_zones(sys_)) {
    state_.zones = std::move(*zones);
  } else {
    errors.push_back(zones.error().with_context("power limits").text());
  }
  if (auto uncore = hardware::read_uncore(sys_)) {
    state_.uncore = std::move(*uncore);
  } else {
    errors.push_back(uncore.error().with_context("uncore frequency limits").text());
  }
  const bool good = errors.empty();
  // Policies that cannot be read are left alone; the others need not wait for them.
  for (std::string& sentence : grouped(state_.cpu.problems)) errors.push_back(std::move(sentence));
  note(state_errors_, std::move(errors), "hardware not readable");
  return good;
}

void Agent::take_sample() {
  const auto before =
      std::exchange(sample_, sampler_.sample(state_, clock_.now(), clock_.monotonic()));
  state_.non_package = sampler_.non_package();
  const bool measuring = sampler_.measuring_outside();
  if (std::exchange(state_.measuring_outside, measuring) && !measuring) {
    check_now_ = true;  // caps wait for it
  }
  ++samples_taken_;
  if (!sample_) return;
  if (before && before->source != sample_->source) {
    metrics_.remove_gauge("kwatt_agent_power_watts",
                          {{"source", std::string(telemetry::to_string(before->source))}});
  }
  if (sample_->power) {
    metrics_.set("kwatt_agent_power_watts", "Power drawn now, by source.",
                 {{"source", std::string(telemetry::to_string(sample_->source))}},
                 static_cast<double>(sample_->power->count()) / 1000);
  }
  if (sample_->milli_celsius) {
    metrics_.set("kwatt_agent_cpu_celsius", "The hottest CPU package.", {},
                 static_cast<double>(*sample_->milli_celsius) / 1000);
  }
  if (sample_callback_) sample_callback_(*sample_);
}

kube::Task<void> Agent::apply() {
  if (!original_ && !co_await load_original()) co_return;
  if (stopped_ || !node_known_ || !state_good_) {
    converged_ = false;
    co_return;
  }
  refresh_original(*original_, state_, held_);
  const std::uint64_t version = node_version_;
  const DesiredSettings desired = given_up_ ? without_controller(annotated_) : annotated_;
  Plan todo = plan(desired, desired.power_cap != planned_cap_);
  if (!todo.writes.empty() && changed_by_others()) {
    metrics_.add("kwatt_agent_drift_total", "Times a setting was found changed by somebody else.",
                 {});
    if (clock_.monotonic() - set_at_ < kUndoneWithin) {
      does_not_stay(todo);
    } else {
      log::warn("changed by somebody else, set again", {{"what", todo.writes.front().what}});
    }
    set_at_ = {};
  }
  bool wrote = false;
  if (!todo.writes.empty() && clock_.monotonic() >= next_write_) {
    // What is about to be held must be known to a successor first. Going on with what is held, or
    // giving it back, needs nobody: also when the API server is gone together with the controller.
    const bool known = held_.covers(todo.held) && (desired.empty() || remembered(todo));
    if (!known && !co_await store(todo.held)) {
      converged_ = false;
      co_return;
    }
    if (stopped_ || version != node_version_) {
      check_now_ = true;  // the wish has changed while we waited
      co_return;
    }
    held_ = todo.held;
    wrote = write_hardware(todo);
    if (wrote) planned_cap_ = desired.power_cap;
    state_good_ = read_state(Reading::settings);
    if (!state_good_) co_return;
    if (wrote) note_preference(todo);
    todo = plan(desired, desired.power_cap != planned_cap_);
    if (wrote && todo.writes.empty()) set_to_ = capture(state_, config_.boot_id);
    if (wrote && !todo.writes.empty()) does_not_stay(todo);
  }
  retry_ = !todo.writes.empty();
  if (todo.writes.empty()) {
    planned_cap_ = desired.power_cap;
    // What was undone before has to last until the next look.
    if (!does_not_stay_ || !wrote) {
      does_not_stay_ = false;
      note(write_errors_, {}, "");
    }
  }
  // A wish that needed no store holds nothing yet: its lever was not stored as held either.
  held_ = held_.both(todo.held);
  note(refusals_, std::move(todo.refusals), "refused");
  const bool as_annotated = !given_up_ || annotated_.empty() || desired == annotated_;
  const bool cap_unknown = desired.power_cap && state_.measuring_outside;
  converged_ = todo.writes.empty() && refusals_.empty() && write_errors_.empty() &&
               state_errors_.empty() && annotated_.errors.empty() && as_annotated && !cap_unknown;
  if (converged_) applied_request_ = annotated_.request_id;
  metrics_.set("kwatt_agent_converged", "1 while the hardware is as the annotations ask.", {},
               converged_ ? 1 : 0);
}

Plan Agent::plan(const DesiredSettings& desired, bool cap_changed) const {
  return make_plan({desired, state_, *original_, held_, cap_changed, shown_preference_});
}

// The kernel may call a preference that was stored as a number by a name of its own.
void Agent::note_preference(const Plan& done) {
  for (const hardware::CpuPolicy& policy : state_.cpu.policies) {
    const std::string path =
        hardware::policy_folder(policy.index) + "energy_performance_preference";
    if (std::any_of(done.writes.begin(), done.writes.end(),
                    [&](const auto& write) { return write.any_word && write.path == path; })) {
      shown_preference_ = policy.epp;
      return;
    }
  }
}

// Who undoes what was set is not fought at full speed.
void Agent::does_not_stay(const Plan& todo) {
  const MonotonicPoint now = clock_.monotonic();
  does_not_stay_ = true;
  set_at_ = {};
  next_write_ = now + write_backoff_.next(now);
  note(write_errors_,
       {todo.writes.front().what + " does not stay as it was set: something else sets it"},
       "undone");
}

// Whether a setting is another than right after our last store. A plan alone does not tell: the
// limits of a cap follow the draw outside the packages, and CPUs come with settings of their own.
bool Agent::changed_by_others() const {
  if (set_at_ == MonotonicPoint{} || !set_to_) return false;
  const Original present = capture(state_, config_.boot_id);
  const auto any_differs = [&](const auto& all) {
    return std::any_of(all.begin(), all.end(), [&](const auto& settings) {
      const auto* was = set_to_->find(settings);
      return was != nullptr && !(*was == settings);
    });
  };
  return any_differs(present.policies) || any_differs(present.zones) || any_differs(present.uncore);
}

// Whether a successor would know the original settings of all that the plan writes to: a policy
// that has only just come online is not in what was stored before.
bool Agent::remembered(const Plan& todo) const {
  const auto writes_below = [&](const std::string& folder) {
    return std::any_of(todo.writes.begin(), todo.writes.end(),
                       [&](const auto& write) { return write.path.starts_with(folder); });
  };
  const auto all_known = [&](const auto& all) {
    return std::all_of(all.begin(), all.end(), [&](const auto& settings) {
      return (stored_ && stored_->find(settings) != nullptr) || !writes_below(folder_of(settings));
    });
  };
  return all_known(original_->policies) && all_known(original_->zones) &&
         all_known(original_->uncore);
}

bool Agent::write_hardware(const Plan& todo) {
  std::vector<FailedStore> failed;
  std::set<std::string> settings;  // a line for each of hundreds of CPUs helps nobody
  for (const hardware::AttributeWrite& write : todo.writes) {
    auto done = hardware::perform(sys_, write);
    metrics_.add("kwatt_agent_writes_total", "Stores into attributes of the hardware.",
                 {{"result", done ? "ok" : std::string(to_string(done.error().code))}});
    if (done) {
      log::debug("stored", {{"what", write.what}, {"value", write.value}});
      settings.insert(
          fmt::format("{}={}", write.what.substr(0, write.what.find(" of ")), write.value));
    } else {
      failed.push_back({write, done.error()});
    }
  }
  if (!settings.empty()) {
    log::info("hardware set", {{"settings", fmt::format("{}", fmt::join(settings, ", "))},
                               {"stores", todo.writes.size() - failed.size()}});
  }
  const MonotonicPoint now = clock_.monotonic();
  const bool good = failed.empty();
  if (good) {
    set_at_ = now;
    // Firmware may take back what it accepted: look again soon.
    checked_at_ = now - config_.check_interval + config_.sample_interval;
    if (does_not_stay_) return true;  // the complaint stays until that look
  } else {
    set_at_ = {};
    next_write_ = now + write_backoff_.next(now);
  }
  note(write_errors_, explain(failed, state_, *original_), "hardware not set");
  return good;
}

kube::Task<bool> Agent::load_original() {
  const MonotonicPoint now = clock_.monotonic();
  if (now < next_load_) co_return false;
  auto body = co_await client_.get(kube::resources::node_powers(), {"", config_.node_name});
  api::NodePower power;
  if (body) {
    if (auto decoded = api::decode(*body, power); !decoded) body = decoded.error();
  }
  if (!body && body.error().code != ErrorCode::not_found) {
    next_load_ = now + load_backoff_.next(now);
    log::warn("cannot read the NodePower, so nothing is applied yet", {{"error", body.error()}});
    co_return false;
  }
  if (original_) co_return true;
  const api::OriginalSettings& stored = power.status.report.original;
  if (!stored.boot_id.empty() && stored.boot_id == config_.boot_id) {
    StoredOriginal found = from_report(stored, state_);
    held_ = found.held ? *found.held : difference(state_, found.original);
    found_held_ = held_.any();
    original_ = std::move(found.original);
    stored_ = original_;
    log::info("original settings of an earlier run of this boot found",
              {{"original", stored.exact}, {"held", held_.any()}});
  } else {
    original_ = capture(state_, config_.boot_id);
  }
  co_return true;
}

kube::Task<bool> Agent::store(const Held& held) {
  const api::OriginalSettings wanted = to_report(*original_, held);
  if (written_ && written_->original == wanted) co_return true;
  if (clock_.monotonic() < next_report_) co_return false;
  co_return co_await write_report(held);
}

api::AgentReport Agent::build(const Held& held) const {
  std::vector<std::string> errors = annotated_.errors;
  for (const auto* more : {&refusals_, &write_errors_, &state_errors_, &sampler_.errors()}) {
    errors.insert(errors.end(), more->begin(), more->end());
  }
  if (given_up_) {
    errors.push_back(fmt::format("no sign of life of the controller for {}: original settings",
                                 format_go_duration(config_.restore_after)));
  }
  if (config_.other_errors) {
    for (std::string& error : config_.other_errors()) errors.push_back(std::move(error));
  }
  api::AgentReport report = build_report({.boot_id = config_.boot_id,
                                          .agent_version = config_.version,
                                          .now = clock_.now(),
                                          .state = state_,
                                          .desired = annotated_,
                                          .original = *original_,
                                          .held = held,
                                          .applied_request = applied_request_,
                                          .converged = converged_,
                                          .errors = std::move(errors),
                                          .sample = sample_});
  report.can_power_off = config_.can_power_off;
  return report;
}

kube::Task<void> Agent::report() {
  if (!original_ || !node_known_ || stopped_) co_return;
  const MonotonicPoint now = clock_.monotonic();
  if (now < next_report_) co_return;
  if (written_) {
    const Duration since = std::chrono::duration_cast<Duration>(now - written_at_);
    const Difference difference = compare(*written_, build(held_));
    if (!worth_writing(difference, since, config_.report_timing)) co_return;
  } else if (samples_taken_ < kFirstReport) {
    co_return;
  }
  co_await write_report(held_);
}

kube::Task<bool> Agent::write_report(const Held& held) {
  api::AgentReport next = build(held);
  Original sent = *original_;
  std::string body = api::apply_report(config_.node_name, next);
  auto done = co_await client_.patch(kube::resources::node_powers(), {"", config_.node_name},
                                     kube::Client::PatchType::apply, kFieldManager, "status",
                                     std::move(body));
  const MonotonicPoint now = clock_.monotonic();
  metrics_.add("kwatt_agent_report_writes_total", "Writes of NodePower status.report.",
               {{"result", done ? "ok" : std::string(to_string(done.error().code))}});
  if (!done) {
    next_report_ = now + report_backoff_.next(now);
    written_.reset();  // deleted, or not known to have arrived: send the whole again
    log::warn(done.error().code == ErrorCode::not_found
                  ? "there is no NodePower of this node yet, so nothing is applied"
                  : "the report could not be written",
              {{"error", done.error()}});
    co_return false;
  }
  report_backoff_.reset();
  written_ = std::move(next);
  stored_ = std::move(sent);
  written_at_ = now;
  co_return true;
}

bool Agent::stop_hardware() {
  stopped_ = true;
  if (!original_ || !held_.any()) return true;
  state_good_ = read_state(Reading::all);
  DesiredSettings left = without_controller(annotated_);
  // The Node was not seen yet, so whether a cap of a budget must stay is unknown: a successor
  // knows.
  if (!node_known_) left.unreadable.push_back(Lever::cap);
  const Plan todo = plan(left, false);
  note(write_errors_, {}, "");
  write_hardware(todo);
  state_good_ = read_state(Reading::settings) && state_good_;
  held_ = held_.both(plan(left, false).held);
  converged_ = annotated_.empty() && write_errors_.empty() && !held_.any();
  return write_errors_.empty() && state_good_;
}

kube::Task<void> Agent::last_report() {
  if (!original_ || !written_) co_return;
  co_await write_report(held_);
}

kube::Task<bool> Agent::report_now() {
  co_return original_&& co_await write_report(held_);
}

// Keeps `where` and logs it when it says something else than before.
void Agent::note(std::vector<std::string>& where, std::vector<std::string> sentences,
                 const char* what) {
  const std::string text = joined(sentences);
  if (!sentences.empty() && without_numbers(text) != without_numbers(joined(where))) {
    log::warn(what, {{"errors", text}});
  }
  where = std::move(sentences);
}

}  // namespace kwatt::agent
