#include "reconcilers/bmc_calls.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"

namespace kwatt::reconcilers {
namespace {

using api::NodePower;
using planner::ResetMachine;

// What trying again would not change; nullopt: it may.
std::optional<planner::Reason> refusal_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::out_of_range:
      return planner::Reason::OutOfRange;
    case ErrorCode::unsupported:
      return planner::Reason::BMCError;
    default:
      return std::nullopt;
  }
}

struct Command {
  hardware::Reset reset;
  std::string word;  // of Redfish
};

Command command_of(ResetMachine::Kind kind) {
  switch (kind) {
    case ResetMachine::Kind::on:
      return {hardware::Reset::on, "On"};
    case ResetMachine::Kind::graceful_shutdown:
      return {hardware::Reset::graceful_shutdown, "GracefulShutdown"};
    default:
      return {hardware::Reset::force_off, "ForceOff"};
  }
}

}  // namespace

BmcCalls::BmcCalls(kube::Client& client, Drivers& drivers, Metrics& metrics, Fence fence)
    : client_(client), drivers_(drivers), metrics_(metrics), fence_(std::move(fence)) {}

kube::Task<Result<void>> BmcCalls::reset(ResetMachine change,
                                         std::shared_ptr<const NodePower> machine,
                                         BmcAnswers& answers) {
  const std::string name = machine->meta.name;
  if (change.kind != ResetMachine::Kind::on) {
    // Our cache may lag behind a pod that was bound a moment ago: ask the API server itself.
    auto pods = co_await workload_pods_on(client_, name);
    if (!pods) co_return pods.error();
    if (!pods->empty()) {
      co_return fail(ErrorCode::unavailable,
                     fmt::format("{} runs {}: it is not switched off", name, pods->front()));
    }
  }
  const auto driver = co_await driver_of(machine, answers);
  if (driver == nullptr) co_return Result<void>();
  // All that took time has been asked for.
  if (!fence_()) co_return fail(ErrorCode::cancelled, "not the leader any more");
  const Command command = command_of(change.kind);
  const auto done = co_await driver->reset(command.reset, machine->status.operation.id);
  note(*machine, "reset", command.word, done);
  if (!done) {
    failed(name, done.error(), answers);
  } else {
    answers.reset_sent = true;
  }
  co_return Result<void>();
}

kube::Task<void> BmcCalls::set_limit(planner::SetPowerLimit limit,
                                     std::shared_ptr<const NodePower> machine,
                                     BmcAnswers& answers) {
  const auto driver = co_await driver_of(machine, answers);
  // Reading a Secret took a while.
  if (driver == nullptr || !fence_()) co_return;
  std::optional<Milliwatts> wanted;
  if (limit.watts > 0) wanted = watts(limit.watts);
  const auto done = co_await driver->set_power_limit(wanted, machine->status.operation.id);
  note(*machine, "limit", limit.watts > 0 ? fmt::format("{} W", limit.watts) : "none", done);
  if (!done) failed(machine->meta.name, done.error(), answers);
}

kube::Task<void> BmcCalls::read_limit(std::shared_ptr<const NodePower> machine,
                                      BmcAnswers& answers) {
  const auto driver = co_await driver_of(machine, answers);
  if (driver == nullptr) co_return;
  const auto limit = co_await driver->power_limit();
  if (limit) {
    answers.limit = seen_of(*limit);
    co_return;
  }
  // What a refused command said before is the better reason.
  if (answers.refusal) co_return;
  failed(machine->meta.name, limit.error(), answers);
}

kube::Task<void> BmcCalls::read_state(std::shared_ptr<const NodePower> machine,
                                      BmcAnswers& answers) {
  const auto driver = co_await driver_of(machine, answers);
  if (driver == nullptr) co_return;
  const auto state = co_await driver->state();
  if (!state) {
    const auto refusal = answers.refusal;
    failed(machine->meta.name, state.error(), answers);
    // A state that cannot be read says nothing about what the machine takes.
    answers.refusal = refusal;
    co_return;
  }
  answers.machine = to_power_state(*state);
}

kube::Task<std::shared_ptr<hardware::PowerDriver>> BmcCalls::driver_of(
    std::shared_ptr<const NodePower> machine, BmcAnswers& answers) {
  auto driver = co_await drivers_.get(std::move(machine));
  if (driver) co_return std::move(*driver);
  answers.error = driver.error().text();
  co_return nullptr;
}

void BmcCalls::failed(const std::string& node, const Error& error, BmcAnswers& answers) {
  if (error.code == ErrorCode::unauthorized) drivers_.forget(node);
  answers.error = error.text();
  answers.refusal = refusal_of(error);
}

void BmcCalls::note(const NodePower& machine, const std::string& command, const std::string& value,
                    const Result<void>& done) {
  log::info("machine command", {{"node", machine.meta.name},
                                {"operation", machine.status.operation.id},
                                {command, value},
                                {"result", done ? "accepted" : done.error().text()}});
  metrics_.add("kwatt_machine_commands_total", "Commands sent to BMCs.",
               {{"reset", command == "reset" ? value : "PowerLimit"},
                {"result", done ? "accepted" : "failed"}});
}

planner::SeenLimit seen_of(const hardware::PowerLimit& limit) {
  const auto up = [](const std::optional<Milliwatts>& power) {
    return power ? (power->count() + 999) / 1000 : 0;
  };
  planner::SeenLimit seen;
  seen.watts = up(limit.limit);
  seen.lowest = up(limit.lowest);
  seen.highest = limit.highest ? limit.highest->count() / 1000 : 0;
  return seen;
}

}  // namespace kwatt::reconcilers
