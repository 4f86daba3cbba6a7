#include "reconcilers/wake_on_lan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/decode.hpp"
#include "reconcilers/effects.hpp"
#include "reconcilers/relay.hpp"

namespace kwatt::reconcilers {
namespace {

using hardware::MachinePower;
using hardware::WakeNote;

constexpr std::string_view kZone = "topology.kubernetes.io/zone";

class WakeOnLanDriver final : public hardware::PowerDriver {
 public:
  WakeOnLanDriver(kube::Client& client, const Stores& stores, const Clock& clock, std::string node,
                  hardware::MacAddress mac, WakeOnLanTiming timing)
      : client_(client),
        stores_(stores),
        clock_(clock),
        node_(std::move(node)),
        mac_(mac),
        timing_(timing) {}

  kube::Task<Result<MachinePower>> state() override {
    auto body = co_await client_.get(kube::resources::leases(), {"kube-node-lease", node_});
    if (!body && body.error().code != ErrorCode::not_found) co_return body.error();
    api::Lease lease;
    if (body) {
      if (auto decoded = api::decode(*body, lease); !decoded) co_return decoded.error();
    }
    watch(lease.renew_time);
    const MonotonicPoint now = clock_.monotonic();
    if (changed_ && now - *changed_ < timing_.fresh) co_return MachinePower::on;
    const auto node = stores_.nodes.get(node_);
    if (node == nullptr) co_return MachinePower::unknown;
    const api::Condition* ready = api::find_condition(node->conditions, "Ready");
    const bool is_ready = ready != nullptr && ready->status == "True";
    const bool ordered = node->meta.annotations.get(hardware::kPowerStateAnnotation) == "off" &&
                         node->meta.annotations.contains(hardware::kPowerOffBootAnnotation);
    const bool silent = now - changed_.value_or(watched_since_) >= timing_.silent;
    co_return ordered&& silent && !is_ready ? MachinePower::off : MachinePower::unknown;
  }

  kube::Task<Result<void>> reset(hardware::Reset reset, std::string operation_id) override {
    switch (reset) {
      case hardware::Reset::on:
        co_return co_await wake(std::move(operation_id));
      case hardware::Reset::graceful_shutdown:
        co_return co_await ask_agent_off();
      case hardware::Reset::force_off:
        break;
    }
    co_return fail(ErrorCode::unsupported,
                   "a machine that only knows wake-on-LAN cannot be forced off");
  }

  kube::Task<Result<std::optional<Milliwatts>>> power_reading() override {
    co_return std::optional<Milliwatts>{};
  }

  kube::Task<Result<void>> set_power_limit(std::optional<Milliwatts>, std::string) override {
    co_return fail(ErrorCode::unsupported,
                   "a machine that only knows wake-on-LAN has no power limit");
  }

 private:
  // Renewal times are compared for change only: nobody's clock has to be right.
  void watch(const std::string& renewed) {
    if (!watching_) {
      watching_ = true;
      watched_since_ = clock_.monotonic();
    } else if (renewed != renewed_ && !renewed.empty()) {
      changed_ = clock_.monotonic();
    }
    renewed_ = renewed;
  }

  struct Candidates {
    std::vector<Relay> relays;
    int attempts = 0;                 // of this wake
    std::optional<TimePoint> newest;  // when the last one was made
  };
  Candidates candidates(const std::string& operation) const {
    Candidates found;
    stores_.nodes.for_each([&](const std::shared_ptr<const api::Node>& node) {
      const std::string& name = node->meta.name;
      if (name == node_) return;
      Relay relay;
      relay.node = name;
      relay.zone = node->meta.labels.get(kZone);
      if (const auto text = node->meta.annotations.get(hardware::kWakeAnnotation); !text.empty()) {
        const auto notes = hardware::parse_wake_notes(text);
        if (!notes) return;  // somebody's own text is not overwritten
        relay.notes = notes->size();
        for (const WakeNote& note : *notes) {
          if (note.node != node_ || note.operation() != operation) continue;
          relay.attempt = note.attempt();
          found.attempts = std::max(found.attempts, note.attempt());
          found.newest = std::max(found.newest.value_or(note.time), note.time);
        }
      }
      if (can_relay(*node, stores_.machines.get(name).get(), clock_.now())) {
        found.relays.push_back(std::move(relay));
      }
    });
    return found;
  }

  kube::Task<Result<void>> wake(std::string operation) {
    Candidates found = candidates(operation);
    if (found.newest && clock_.now() - *found.newest < timing_.attempt) co_return Result<void>{};
    const auto sleeper = stores_.nodes.get(node_);
    const std::string zone(sleeper == nullptr ? "" : sleeper->meta.labels.get(kZone));
    const auto chosen = choose_relay(zone, std::move(found.relays));
    if (!chosen) {
      co_return fail(ErrorCode::unavailable,
                     "no awake node with an agent can send the magic packet");
    }
    auto relay = stores_.nodes.get(*chosen);
    if (relay == nullptr) co_return fail(ErrorCode::unavailable, *chosen + " is gone");
    std::vector<WakeNote> notes;
    const auto text = relay->meta.annotations.get(hardware::kWakeAnnotation);
    if (!text.empty()) {
      if (auto present = hardware::parse_wake_notes(text)) notes = std::move(*present);
    }
    std::erase_if(notes, [&](const WakeNote& note) { return note.node == node_; });
    WakeNote note;
    note.id = fmt::format("{}/{}", operation, found.attempts + 1);
    note.node = node_;
    note.mac = mac_;
    note.time = clock_.now();
    notes.push_back(std::move(note));
    planner::PatchNode patch;
    patch.set_annotations.set(hardware::kWakeAnnotation, hardware::format_wake_notes(notes));
    co_return co_await write(std::move(relay), std::move(patch));
  }

  kube::Task<Result<void>> ask_agent_off() {
    auto node = stores_.nodes.get(node_);
    const auto machine = stores_.machines.get(node_);
    if (node == nullptr || machine == nullptr) {
      co_return fail(ErrorCode::unavailable, "the Node or its NodePower is not in the cache");
    }
    const api::AgentReport& report = machine->status.report;
    if (!report.can_power_off || report.boot_id.empty()) {
      co_return fail(ErrorCode::unsupported,
                     "wake-on-LAN only wakes: the node's agent needs --power-off-command to switch "
                     "the machine off");
    }
    planner::PatchNode patch;
    patch.set_annotations.set(hardware::kPowerStateAnnotation, "off");
    patch.set_annotations.set(hardware::kPowerOffBootAnnotation, report.boot_id);
    co_return co_await write(std::move(node), std::move(patch));
  }

  kube::Task<Result<void>> write(std::shared_ptr<const api::Node> node, planner::PatchNode patch) {
    const std::string body = node_patch_body(*node, patch);
    if (body.empty()) co_return Result<void>{};
    auto answer = co_await client_.patch(kube::resources::nodes(), {"", node->meta.name},
                                         kube::Client::PatchType::merge, kFieldManager, "", body);
    if (!answer) co_return answer.error().with_context("patching Node " + node->meta.name);
    co_return Result<void>{};
  }

  kube::Client& client_;
  const Stores& stores_;
  const Clock& clock_;
  std::string node_;
  hardware::MacAddress mac_;
  WakeOnLanTiming timing_;
  bool watching_ = false;
  MonotonicPoint watched_since_{};
  std::string renewed_;
  std::optional<MonotonicPoint> changed_;
};

}  // namespace

std::unique_ptr<hardware::PowerDriver> make_wake_on_lan_driver(kube::Client& client,
                                                               const Stores& stores,
                                                               const Clock& clock, std::string node,
                                                               hardware::MacAddress mac,
                                                               WakeOnLanTiming timing) {
  return std::make_unique<WakeOnLanDriver>(client, stores, clock, std::move(node), mac, timing);
}

}  // namespace kwatt::reconcilers
