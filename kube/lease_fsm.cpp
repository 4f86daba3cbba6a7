#include "kube/lease_fsm.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::kube {

using Kind = LeaseEvent::Kind;

Result<void> check(const LeaseOptions& options) {
  if (options.identity.empty()) {
    return fail(ErrorCode::invalid_argument, "leader election needs an identity");
  }
  const Duration jittered{static_cast<std::int64_t>(
      static_cast<double>(options.retry_period.count()) * options.jitter)};
  if (options.retry_period <= Duration{0} || options.renew_deadline <= jittered ||
      options.lease_duration <= options.renew_deadline) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("leader election: lease duration {} must be greater than renew deadline "
                    "{}, and that greater than {} × the retry period {}",
                    format_go_duration(options.lease_duration),
                    format_go_duration(options.renew_deadline), options.jitter,
                    format_go_duration(options.retry_period)));
  }
  return {};
}

LeaseFsm::LeaseFsm(LeaseOptions options, Random random)
    : options_(std::move(options)), random_(std::move(random)) {}

LeaseAction LeaseFsm::next(const LeaseEvent& event) {
  if (stopped_) return stop();
  if (event.kind == Kind::release) return give_up(event);
  if (leaving_) return as_leaver(event);
  return holding_ ? as_holder(event) : as_candidate(event);
}

void LeaseFsm::observe(const LeaseRecord& record, MonotonicPoint now) {
  if (record == observed_) return;
  observed_ = record;
  observed_at_ = now;
}

LeaseAction LeaseFsm::as_candidate(const LeaseEvent& event) {
  switch (event.kind) {
    case Kind::start:
    case Kind::conflict:
      return request(LeaseAction::Kind::get, event);
    case Kind::absent:
      observed_ = {};
      return request(LeaseAction::Kind::create, event, our_record(event));
    case Kind::record:
    case Kind::seen:
      observe(event.record, event.now);
      return try_to_take(event);
    case Kind::timer:
      // At the very instant the other's lease expires, no reading before: that would only lose
      // time, and the optimistic write tells as much.
      if (!observed_.resource_version.empty() && event.now >= others_expiry()) {
        return try_to_take(event);
      }
      return request(LeaseAction::Kind::get, event);
    case Kind::written:
      observe(event.record, event.now);
      renewed_at_ = event.sent;
      // An answer so late that we would have to step down at once is no start.
      if (event.now >= renew_deadline()) return request(LeaseAction::Kind::get, event);
      holding_ = true;
      return wait(renewed_at_ + options_.retry_period);
    case Kind::failed:
      return wait(retry_time(event.now));
    case Kind::release:
      break;
  }
  return wait(retry_time(event.now));
}

LeaseAction LeaseFsm::try_to_take(const LeaseEvent& event) {
  const bool free = observed_.holder.empty() || observed_.holder == options_.identity;
  const MonotonicPoint expiry = others_expiry();
  if (free || event.now >= expiry) {
    return request(LeaseAction::Kind::update, event, our_record(event));
  }
  return wait(std::min(expiry, retry_time(event.now)));
}

LeaseAction LeaseFsm::as_holder(const LeaseEvent& event) {
  if (event.kind == Kind::written && event.now < event.sent + options_.renew_deadline) {
    observe(event.record, event.now);
    renewed_at_ = event.sent;
    return wait(renewed_at_ + options_.retry_period);
  }
  if (event.now >= renew_deadline()) return lose();
  // Late in the lease a full pause would leave no time for another attempt.
  const Duration left = std::chrono::floor<Duration>(renew_deadline() - event.now);
  const Duration pause = std::min(options_.retry_period, left / 2);
  const bool worth_it = pause >= options_.retry_period / 4;
  const MonotonicPoint retry = worth_it ? event.now + pause : renew_deadline();
  switch (event.kind) {
    case Kind::timer:
      return renew(event);
    case Kind::absent:
      return request(LeaseAction::Kind::create, event, our_record(event));
    case Kind::conflict:
      return request(LeaseAction::Kind::get, event);
    case Kind::seen:
      // The watch may lag behind and show the time before we took over: ask the server.
      if (event.record.holder != options_.identity) return request(LeaseAction::Kind::get, event);
      return wait(std::min(renewed_at_ + options_.retry_period, renew_deadline()));
    case Kind::record:
      if (event.record.holder != options_.identity) return lose();
      observe(event.record, event.now);
      return renew(event);
    case Kind::failed:
    case Kind::start:
    case Kind::written:
    case Kind::release:
      break;
  }
  return wait(retry);
}

LeaseAction LeaseFsm::renew(const LeaseEvent& event) {
  return request(LeaseAction::Kind::update, event, our_record(event));
}

LeaseAction LeaseFsm::give_up(const LeaseEvent& event) {
  if (!holding_) return stop();
  holding_ = false;
  leaving_ = true;
  LeaseRecord record = observed_;
  record.holder.clear();
  record.duration_seconds = 1;
  record.acquire_time = record.renew_time = format_micro_time(event.wall);
  return request(LeaseAction::Kind::update, event, std::move(record));
}

LeaseAction LeaseFsm::as_leaver(const LeaseEvent& event) {
  switch (event.kind) {
    case Kind::conflict:
      return request(LeaseAction::Kind::get, event);
    case Kind::record:
      if (event.record.holder != options_.identity) return stop();
      observe(event.record, event.now);
      holding_ = true;
      return give_up(event);
    default:
      // Written, or it cannot be written: then it runs out by itself.
      return stop();
  }
}

LeaseAction LeaseFsm::wait(MonotonicPoint until) const {
  return {.kind = LeaseAction::Kind::wait, .until = until};
}

LeaseAction LeaseFsm::request(LeaseAction::Kind kind, const LeaseEvent& event,
                              LeaseRecord record) const {
  // As holder an attempt gets half of the time: one connection that died without a word must not
  // cost the lease.
  MonotonicPoint until = event.now + options_.renew_deadline;
  if (leaving_) until = renew_deadline();
  if (holding_) until = std::min(renew_deadline(), event.now + options_.renew_deadline / 2);
  return {.kind = kind, .record = std::move(record), .until = until};
}

LeaseAction LeaseFsm::lose() {
  holding_ = false;
  lost_ = true;
  return stop();
}

LeaseAction LeaseFsm::stop() {
  stopped_ = true;
  return {.kind = LeaseAction::Kind::stop};
}

LeaseRecord LeaseFsm::our_record(const LeaseEvent& event) const {
  LeaseRecord record = observed_;
  const std::string now = format_micro_time(event.wall);
  if (record.holder != options_.identity) {
    record.acquire_time = now;
    // The very first holder is not a transition.
    if (!record.resource_version.empty()) ++record.transitions;
  }
  record.holder = options_.identity;
  record.duration_seconds =
      std::chrono::ceil<std::chrono::seconds>(options_.lease_duration).count();
  record.renew_time = now;
  return record;
}

MonotonicPoint LeaseFsm::others_expiry() const {
  const Duration theirs = std::chrono::seconds{std::clamp<std::int64_t>(
      observed_.duration_seconds, 0, std::chrono::seconds{std::chrono::hours{1}}.count())};
  return observed_at_ + (theirs > Duration{0} ? theirs : options_.lease_duration);
}

MonotonicPoint LeaseFsm::retry_time(MonotonicPoint now) {
  const auto period = static_cast<double>(options_.retry_period.count());
  return now + Duration{static_cast<std::int64_t>(period * (1.0 + options_.jitter * random_()))};
}

}  // namespace kwatt::kube
