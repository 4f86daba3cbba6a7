#include "kube/lease_election.hpp"

#include <atomic>
#include <mutex>
#include <optional>
#include <random>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "base/log.hpp"
#include "kube/reflector.hpp"
#include "net/run.hpp"

namespace kwatt::kube {
namespace {

namespace asio = boost::asio;
using Kind = LeaseEvent::Kind;

LeaseRecord record_of(const api::Lease& lease) {
  return {.resource_version = lease.meta.resource_version,
          .holder = lease.holder_identity,
          .duration_seconds = lease.lease_duration_seconds,
          .transitions = lease.lease_transitions,
          .acquire_time = lease.acquire_time,
          .renew_time = lease.renew_time};
}

LeaseFsm::Random make_random() {
  return [engine = std::mt19937_64{std::random_device{}()}]() mutable {
    return std::uniform_real_distribution<double>{0.0, 1.0}(engine);
  };
}

// Hands every version of the Lease that the watch shows to the election.
class LeaseSink final : public ReflectorSink {
 public:
  explicit LeaseSink(std::function<void(LeaseRecord)> seen) : seen_(std::move(seen)) {}
  void list_started() override { pending_.reset(); }
  Result<void> list_item(std::string_view json) override { return keep(json); }
  void list_complete() override { apply(); }
  Result<std::string> change(Change change, std::string_view json) override {
    if (auto kept = keep(json); !kept) return kept.error();
    std::string version = pending_->resource_version;
    // A deleted Lease is found out by the next write.
    if (change == Change::remove) pending_.reset();
    return version;
  }
  void apply() override {
    if (pending_) seen_(std::move(*pending_));
    pending_.reset();
  }
  void contact(MonotonicPoint) override {}
  std::size_t size() const override { return 1; }

 private:
  Result<void> keep(std::string_view json) {
    api::Lease lease;
    if (auto done = api::decode(json, lease); !done) return done.error();
    pending_ = record_of(lease);
    return {};
  }

  std::function<void(LeaseRecord)> seen_;
  std::optional<LeaseRecord> pending_;
};

}  // namespace

std::string make_identity() {
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
    host[0] = 'x';
    host[1] = '\0';
  }
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}{:08x}{:08x}", host, random(), random(), random(), random());
}

struct LeaseElection::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::any_io_executor on, Client& api, Name lease, LeaseOptions given, const Clock& time,
       Metrics& registry)
      : executor(std::move(on)),
        client(api),
        name(std::move(lease)),
        options(std::move(given)),
        clock(time),
        metrics(registry),
        fsm(options, make_random()),
        sink([this](LeaseRecord record) {
          seen = std::move(record);
          changed.notify_all();
        }),
        reflector(
            client,
            WatchTarget{resources::leases(), name.namespace_name, "metadata.name=" + name.name, ""},
            ReflectorOptions{}, sink, clock, metrics) {
    publish();
  }

  LeaseEvent event(Kind kind) const {
    return {.kind = kind, .now = clock.monotonic(), .wall = clock.now()};
  }

  std::string body(const LeaseRecord& record) const {
    api::Lease lease;
    lease.meta.name = name.name;
    lease.meta.namespace_name = name.namespace_name;
    lease.meta.resource_version = record.resource_version;
    lease.holder_identity = record.holder;
    lease.lease_duration_seconds = record.duration_seconds;
    lease.lease_transitions = record.transitions;
    lease.acquire_time = record.acquire_time;
    lease.renew_time = record.renew_time;
    return api::encode(lease);
  }

  // An answer of the API server as an event; `ok` is what success means.
  LeaseEvent answer(Kind ok, const Result<std::string>& reply, MonotonicPoint sent) {
    LeaseEvent made = event(ok);
    made.sent = sent;
    api::Lease lease;
    if (reply) {
      if (auto done = api::decode(*reply, lease); !done) return failed(done.error());
      made.record = record_of(lease);
      return made;
    }
    const ErrorCode code = reply.error().code;
    if (code == ErrorCode::not_found) {
      made.kind = Kind::absent;
    } else if (code == ErrorCode::conflict || code == ErrorCode::already_exists) {
      made.kind = Kind::conflict;
    } else {
      return failed(reply.error());
    }
    return made;
  }

  LeaseEvent failed(const Error& error) {
    log::warn("lease request failed", {{"lease", name.name}, {"error", error}});
    return event(Kind::failed);
  }

  Task<Result<std::string>> send(LeaseAction action) {
    switch (action.kind) {
      case LeaseAction::Kind::create:
        co_return co_await client.create(resources::leases(), name.namespace_name,
                                         body(action.record));
      case LeaseAction::Kind::update:
        co_return co_await client.replace(resources::leases(), name, body(action.record));
      default:
        co_return co_await client.get(resources::leases(), name);
    }
  }

  Task<LeaseEvent> request(LeaseAction action) {
    using namespace asio::experimental::awaitable_operators;
    const MonotonicPoint sent = clock.monotonic();
    const auto left = std::chrono::ceil<Duration>(action.until - sent);
    if (left <= Duration{0}) co_return event(Kind::failed);
    const Kind ok = action.kind == LeaseAction::Kind::get ? Kind::record : Kind::written;
    auto reply = co_await (send(std::move(action)) || net::sleep(left));
    if (reply.index() == 1) co_return failed(fail(ErrorCode::timeout, "no answer in time"));
    co_return answer(ok, std::get<0>(reply), sent);
  }

  Task<LeaseEvent> wait(MonotonicPoint until) {
    const auto left = std::chrono::ceil<Duration>(until - clock.monotonic());
    if (!seen && !releasing && left > Duration{0}) co_await changed.wait_for(left);
    if (releasing) co_return event(Kind::release);
    LeaseEvent made = event(seen ? Kind::seen : Kind::timer);
    if (seen) made.record = std::move(*seen);
    seen.reset();
    co_return made;
  }

  // What other threads may read.
  void publish() {
    expires.store(fsm.holding() ? fsm.expires().time_since_epoch() : std::chrono::nanoseconds{0});
    holding.store(fsm.holding());
    {
      const std::lock_guard lock(mutex);
      holder = fsm.holder();
    }
    metrics.set("leader_election_master_status", "1: this process leads", {{"name", name.name}},
                fsm.holding() ? 1 : 0);
  }

  Task<void> compete(std::function<void()> on_started, std::function<void()> on_lost) {
    bool started = false;
    LeaseEvent happened = event(Kind::start);
    for (;;) {
      LeaseAction action = fsm.next(happened);
      publish();
      if (fsm.holding() && !started) {
        started = true;
        log::info("leading", {{"lease", name.name}, {"identity", options.identity}});
        on_started();
      }
      if (action.kind == LeaseAction::Kind::stop) break;
      if (action.kind == LeaseAction::Kind::wait) {
        happened = co_await wait(action.until);
      } else {
        happened = co_await request(std::move(action));
      }
    }
    if (fsm.lost()) {
      log::error("leader election lost", {{"lease", name.name}, {"holder", fsm.holder()}});
      on_lost();
    }
  }

  asio::any_io_executor executor;
  Client& client;
  Name name;
  LeaseOptions options;
  const Clock& clock;
  Metrics& metrics;
  LeaseFsm fsm;
  std::optional<LeaseRecord> seen;  // by the watch, not yet told to the machine
  bool releasing = false, running = false;
  net::Signal changed;
  LeaseSink sink;
  Reflector reflector;
  asio::cancellation_signal watch_end;

  std::atomic<bool> holding{false};
  std::atomic<std::chrono::nanoseconds> expires{};
  mutable std::mutex mutex;
  std::string holder;
};

LeaseElection::LeaseElection(boost::asio::any_io_executor executor, Client& client, Name lease,
                             LeaseOptions options, const Clock& clock, Metrics& metrics)
    : impl_(std::make_shared<Impl>(std::move(executor), client, std::move(lease),
                                   std::move(options), clock, metrics)) {}

LeaseElection::~LeaseElection() = default;

Task<void> LeaseElection::run(std::function<void()> on_started, std::function<void()> on_lost) {
  const std::shared_ptr<Impl> self = impl_;
  self->running = true;
  Task<void> watch = [](std::shared_ptr<Impl> impl) -> Task<void> {
    co_await impl->reflector.run();
  }(self);
  auto watch_ended = [self](const std::exception_ptr&) {};
  asio::co_spawn(self->executor, std::move(watch),
                 asio::bind_cancellation_slot(self->watch_end.slot(), std::move(watch_ended)));
  std::exception_ptr error;
  try {
    co_await self->compete(std::move(on_started), std::move(on_lost));
  } catch (...) {
    error = std::current_exception();
  }
  self->watch_end.emit(asio::cancellation_type::terminal);
  self->holding.store(false);
  self->running = false;
  self->changed.notify_all();
  if (error) std::rethrow_exception(error);
}

Task<void> LeaseElection::release() {
  const std::shared_ptr<Impl> self = impl_;
  self->releasing = true;
  self->changed.notify_all();
  // Bounded: a renewal in flight and the release each end by the renew deadline.
  while (self->running) co_await self->changed.wait_for(self->options.renew_deadline);
}

bool LeaseElection::leading() const {
  return impl_->holding.load() && impl_->clock.monotonic() < lease_expires();
}

MonotonicPoint LeaseElection::lease_expires() const {
  return MonotonicPoint{impl_->expires.load()};
}

std::string LeaseElection::leader() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->holder;
}

}  // namespace kwatt::kube
