#pragma once
// Leader election over a coordination.k8s.io Lease as a pure state machine. Others are judged only
// by when we last saw their record change, on our own monotonic clock; the times written inside are
// never compared.
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace kwatt::kube {

struct LeaseOptions {
  std::string identity;  // unique per process
  Duration lease_duration = std::chrono::seconds{15};
  Duration renew_deadline = std::chrono::seconds{10};
  Duration retry_period = std::chrono::seconds{2};
  double jitter = 1.2;  // retries come after retry_period × (1 … 1 + jitter), as client-go's
};
// Errors: invalid_argument (lease > renew > retry × jitter does not hold, no identity).
Result<void> check(const LeaseOptions& options);

// The Lease as far as the election needs it.
struct LeaseRecord {
  std::string resource_version;
  std::string holder;  // "": released
  std::int64_t duration_seconds = 0;
  std::int64_t transitions = 0;
  std::string acquire_time, renew_time;  // MicroTime text
  bool operator==(const LeaseRecord&) const = default;
};

struct LeaseEvent {
  enum class Kind {
    start,
    record,    // the Lease was read from the server just now: record
    seen,      // the watch showed a change, perhaps an old one: record
    absent,    // there is no Lease
    written,   // our create or update succeeded: record as the server answered
    conflict,  // somebody else wrote first, or created it first
    failed,    // no answer, or another error
    timer,     // the pause is over
    release,   // orderly stop: give the lease up
  };
  Kind kind = Kind::start;
  MonotonicPoint now{};
  TimePoint wall{};       // only written into the record
  MonotonicPoint sent{};  // written: when the request was started
  LeaseRecord record{};
};

struct LeaseAction {
  enum class Kind {
    get,
    create,  // record
    update,  // record, with the resource version to be replaced
    wait,    // until `until`, or until the watch shows a change
    stop,    // the end: lost, or released
  };
  Kind kind = Kind::wait;
  LeaseRecord record{};
  MonotonicPoint until{};  // wait; for requests: give up then
};

class LeaseFsm {
 public:
  using Random = std::function<double()>;
  LeaseFsm(LeaseOptions options, Random random);

  LeaseAction next(const LeaseEvent& event);

  // Between acquiring and losing or releasing.
  bool holding() const { return holding_; }
  bool lost() const { return lost_; }
  // Fencing: others may take the lease from here on. Counted from the start of the last successful
  // write. Meaningful while holding.
  MonotonicPoint expires() const { return renewed_at_ + options_.lease_duration; }
  MonotonicPoint renew_deadline() const { return renewed_at_ + options_.renew_deadline; }
  // Who holds it now, as far as we know ("": nobody).
  const std::string& holder() const { return observed_.holder; }

 private:
  void observe(const LeaseRecord& record, MonotonicPoint now);
  LeaseAction as_holder(const LeaseEvent& event);
  LeaseAction as_candidate(const LeaseEvent& event);
  LeaseAction as_leaver(const LeaseEvent& event);
  LeaseAction try_to_take(const LeaseEvent& event);
  LeaseAction renew(const LeaseEvent& event);
  LeaseAction give_up(const LeaseEvent& event);
  LeaseAction wait(MonotonicPoint until) const;
  LeaseAction request(LeaseAction::Kind kind, const LeaseEvent& event,
                      LeaseRecord record = {}) const;
  LeaseAction lose();
  LeaseAction stop();
  LeaseRecord our_record(const LeaseEvent& event) const;
  MonotonicPoint others_expiry() const;
  MonotonicPoint retry_time(MonotonicPoint now);

  LeaseOptions options_;
  Random random_;
  LeaseRecord observed_;          // the newest record we know; "" resource version: none
  MonotonicPoint observed_at_{};  // when it last changed before our eyes
  bool holding_ = false, lost_ = false, leaving_ = false, stopped_ = false;
  MonotonicPoint renewed_at_{};
};

}  // namespace kwatt::kube
