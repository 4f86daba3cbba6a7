#include "reconcilers/site_recommendation.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "api/encode.hpp"
#include "api/karmada.hpp"
#include "base/log.hpp"
#include "hardware/json.hpp"
#include "reconcilers/identifiers.hpp"

namespace kwatt::reconcilers {
namespace {

using api::CreatePhase;
using api::SiteAction;
using api::SiteRecommendation;
using api::SiteRecommendationStatus;

constexpr Duration kFirstRetry = std::chrono::seconds{5};
constexpr Duration kLongestRetry = std::chrono::minutes{5};
// When a machine that is due was not started because our lease was about to end.
constexpr Duration kFenced = std::chrono::seconds{1};
constexpr Duration kRefused = std::chrono::minutes{1};

void set(SiteRecommendationStatus& status, const SiteRecommendation& asked, TimePoint now,
         const char* type, const char* value, const char* reason, std::string message) {
  api::Condition condition;
  condition.type = type;
  condition.status = value;
  condition.reason = reason;
  condition.message = std::move(message);
  condition.observed_generation = asked.meta.generation;
  api::set_condition(status.conditions, std::move(condition), now);
}

Duration retry_pause(std::int64_t attempts) {
  const auto doubled =
      kFirstRetry * (std::int64_t{1} << std::clamp<std::int64_t>(attempts - 1, 0, 8));
  return std::min<Duration>(doubled, kLongestRetry);
}

// What a hook is told about the workload.
std::string request_json(const api::SiteRecommendationSpec& spec) {
  std::string flows;
  for (const api::SiteFlow& flow : spec.bandwidth) {
    flows += (flows.empty() ? "" : ",") + api::encode(flow);
  }
  return fmt::format(R"({{"resources":{},"bandwidth":[{}],"workloads":{}}})",
                     api::encode(spec.resources), flows, spec.workloads);
}

}  // namespace

bool decided(const SiteRecommendation& recommendation) {
  return !recommendation.status.machines.empty();
}

void show_machines(const SiteRecommendation& asked, SiteRecommendationStatus& status,
                   TimePoint now) {
  const auto count = [&](CreatePhase phase) {
    return std::count_if(status.machines.begin(), status.machines.end(),
                         [&](const auto& machine) { return machine.phase == phase; });
  };
  if (asked.spec.action != SiteAction::Create) {
    set(status, asked, now, "Created", "Unknown", "NotAsked", "action is Recommend");
  } else if (status.machines.empty()) {
    set(status, asked, now, "Created", "False", "NoSite", "there is no site to start a machine at");
  } else if (const auto failed = count(CreatePhase::Failed); failed > 0) {
    const auto first =
        std::find_if(status.machines.begin(), status.machines.end(),
                     [](const auto& machine) { return machine.phase == CreatePhase::Failed; });
    set(status, asked, now, "Created", "False", "HookRefused",
        fmt::format("{} of {} machines are refused, at {}: {}", failed, status.machines.size(),
                    first->site, first->message));
  } else if (const auto open = count(CreatePhase::Intended); open > 0) {
    set(status, asked, now, "Created", "False", "Starting",
        fmt::format("{} of {} machines are being started", open, status.machines.size()));
  } else {
    set(status, asked, now, "Created", "True", "Started",
        fmt::format("{} machines were started", status.machines.size()));
  }
}

SiteRecommendationStatus answered(const SiteRecommendation& asked,
                                  const Result<placement::sites::SiteAnswer>& answer, TimePoint now,
                                  const std::function<std::string()>& new_id) {
  SiteRecommendationStatus status = asked.status;
  status.observed_generation = asked.meta.generation;
  const auto problems = api::validate(asked.spec);
  if (!problems.empty()) {
    const std::string sentence = fmt::format("{}", fmt::join(problems, "; "));
    set(status, asked, now, "Accepted", "False", "Invalid", sentence);
    set(status, asked, now, "Ready", "False", "NotAccepted", sentence);
    return status;
  }
  set(status, asked, now, "Accepted", "True", "Valid", "the request is valid");
  if (!answer) {
    // The last answer stays, with its time.
    set(status, asked, now, "Ready", "False", "NoAnswer", answer.error().text());
    return status;
  }
  const SiteRecommendationStatus before = status;
  placement::sites::show(*answer, status);
  if (status.site.empty()) {
    set(status, asked, now, "Ready", "False", "NoSiteFits",
        fmt::format("none of {} sites fits: status.excluded says why", status.excluded_total));
  } else {
    set(status, asked, now, "Ready", "True", "Recommended",
        fmt::format("{} is the best of {} sites that fit", status.site, status.sites_total));
  }
  if (asked.spec.action == SiteAction::Create && status.machines.empty()) {
    for (const api::RankedSite& site : status.sites) {
      if (!site.recommended) continue;
      api::CreatedMachine& machine = status.machines.emplace_back();
      machine.site = site.name;
      machine.operation_id = new_id();
      machine.intended_at = now;
    }
  }
  if (status != before || !status.evaluated_at) status.evaluated_at = now;
  show_machines(asked, status, now);
  return status;
}

SiteRecommendationReconciler::SiteRecommendationReconciler(
    kube::Client& client, const kube::Store<SiteRecommendation>& recommendations,
    const kube::Store<api::Site>& sites, SiteAdvisor& advisor, SiteHooks& hooks, const Clock& clock,
    Fence fence)
    : client_(client),
      recommendations_(recommendations),
      sites_(sites),
      advisor_(advisor),
      hooks_(hooks),
      clock_(clock),
      fence_(std::move(fence)) {}

// With the version that was read: what was decided from an old one is not committed.
kube::Task<Result<void>> SiteRecommendationReconciler::write(
    Pointer asked, const SiteRecommendationStatus& status) {
  kube::Name place(asked->meta.namespace_name, asked->meta.name);
  auto written = co_await client_.patch(kube::resources::site_recommendations(), place,
                                        kube::Client::PatchType::apply, kStatusManager, "status",
                                        api::apply_status(asked->meta, status));
  if (!written) co_return written.error();
  co_return Result<void>{};
}

kube::Task<bool> SiteRecommendationReconciler::start_machines(Pointer asked,
                                                              SiteRecommendationStatus& status) {
  bool changed = false;
  for (api::CreatedMachine& machine : status.machines) {
    if (machine.phase != CreatePhase::Intended) continue;
    if (machine.next_attempt && clock_.now() < *machine.next_attempt) continue;
    if (!fence_()) break;
    const auto site = sites_.get({"", machine.site});
    HookCall call;
    call.site = machine.site;
    call.operation_id = machine.operation_id;
    call.recommendation = asked->meta.namespace_name + "/" + asked->meta.name;
    call.request_json = request_json(asked->spec);
    std::string hook = site == nullptr ? std::string() : site->spec.create_hook;
    // A hook that has answered is not called again because our write of its answer failed.
    Result<HookAnswer> answer = HookAnswer{};
    if (const auto known = answered_.find(machine.operation_id); known != answered_.end()) {
      answer = known->second;
    } else {
      answer = co_await hooks_.call(std::move(hook), std::move(call));
      if (answer && answer->ready) answered_.emplace(machine.operation_id, *answer);
    }
    changed = true;
    ++machine.attempts;
    if (answer && answer->ready) {
      machine.phase = CreatePhase::Started;
      machine.machine_id = answer->machine_id;
      machine.message.clear();
      machine.started_at = clock_.now();
      machine.next_attempt.reset();
      log::info("machine started", {{"site", machine.site},
                                    {"machine", machine.machine_id},
                                    {"operation", machine.operation_id}});
      continue;
    }
    machine.message = answer ? "the hook has accepted it" : answer.error().text();
    if (!answer && is_refusal(answer.error())) {
      machine.phase = CreatePhase::Failed;
      machine.next_attempt.reset();
    } else {
      machine.next_attempt = clock_.now() + (answer ? kFirstRetry : retry_pause(machine.attempts));
    }
    if (!answer) {
      log::warn("machine not started", {{"site", machine.site}, {"error", answer.error()}});
    }
  }
  co_return changed;
}

kube::Task<Result<void>> SiteRecommendationReconciler::apply_policy(Pointer asked,
                                                                    kube::Resource resource,
                                                                    std::string body) {
  kube::Name place(asked->meta.namespace_name, api::policy_name(*asked));
  const std::string what = fmt::format("{} {}", resource.plural, place.name);
  auto present = co_await client_.get(resource, place);
  if (present) {
    const auto document = hardware::parse_json(*present);
    const auto* owner =
        document ? hardware::first(*document, {"metadata", "ownerReferences"}) : nullptr;
    if (owner == nullptr || hardware::text_at(*owner, {"uid"}) != asked->meta.uid) {
      co_return fail(ErrorCode::conflict,
                     fmt::format("{} is there and is not of this recommendation: name another in "
                                 "spec.propagation.name",
                                 what));
    }
  } else if (present.error().code != ErrorCode::not_found) {
    co_return present.error().with_context(what);
  }
  auto applied = co_await client_.patch(resource, place, kube::Client::PatchType::apply,
                                        kFieldManager, "", std::move(body));
  if (!applied) co_return applied.error().with_context(what);
  co_return Result<void>{};
}

kube::Task<void> SiteRecommendationReconciler::propagate(Pointer asked,
                                                         SiteRecommendationStatus& status) {
  const TimePoint now = clock_.now();
  if (asked->spec.propagation.write.empty()) {
    set(status, *asked, now, "Propagated", "Unknown", "NotAsked",
        "spec.propagation.write is empty");
    co_return;
  }
  const bool clusters = std::any_of(status.weights.begin(), status.weights.end(),
                                    [](const auto& one) { return !one.cluster.empty(); });
  if (!clusters) {
    set(status, *asked, now, "Propagated", "False", "NoClusters",
        "no recommended site is a member cluster (spec.cluster.name); earlier policies stay");
    co_return;
  }
  for (const api::PropagationWrite kind : asked->spec.propagation.write) {
    const bool placement = kind == api::PropagationWrite::PropagationPolicy;
    const kube::Resource resource =
        placement ? kube::resources::propagation_policies() : kube::resources::override_policies();
    std::string body = placement ? api::propagation_policy(*asked, status.weights)
                                 : api::override_policy(*asked, status.weights);
    auto applied = co_await apply_policy(asked, resource, std::move(body));
    if (!applied) {
      set(status, *asked, now, "Propagated", "False", "NotApplied", applied.error().text());
      co_return;
    }
  }
  set(status, *asked, now, "Propagated", "True", "Applied",
      fmt::format("the policies named {} follow status.weights", api::policy_name(*asked)));
}

kube::Task<Result<kube::ReconcileResult>> SiteRecommendationReconciler::reconcile(std::string key) {
  kube::ReconcileResult result;
  const Pointer asked = recommendations_.get(kube::split_key(key));
  if (asked == nullptr || asked->meta.deletion_timestamp) co_return result;
  SiteRecommendationStatus status = asked->status;
  if (decided(*asked)) {
    // The intent was read back from the API, so the hook may be called.
    co_await start_machines(asked, status);
    show_machines(*asked, status, clock_.now());
  } else {
    Result<placement::sites::SiteAnswer> answer =
        fail(ErrorCode::invalid_argument, "the request is not valid");
    if (api::validate(asked->spec).empty()) answer = co_await advisor_.advise(asked->spec);
    status = answered(*asked, answer, clock_.now(), new_uuid);
    result.requeue_after = answer ? asked->spec.interval : kRefused;
  }
  const api::Condition* accepted = api::find_condition(status.conditions, "Accepted");
  if (accepted != nullptr && accepted->status == "True" && fence_()) {
    co_await propagate(asked, status);
  }
  for (const api::CreatedMachine& machine : status.machines) {
    // A fresh intent is acted on when it has come back from the API.
    if (machine.phase != CreatePhase::Intended || !decided(*asked)) continue;
    const Duration wait = machine.next_attempt
                              ? std::max<Duration>(*machine.next_attempt - clock_.now(), kFenced)
                              : kFenced;
    result.requeue_after = std::min(result.requeue_after.value_or(wait), wait);
  }
  if (status != asked->status) {
    auto written = co_await write(asked, status);
    if (!written && written.error().code != ErrorCode::not_found) co_return written.error();
    for (const api::CreatedMachine& machine : status.machines) {
      if (machine.phase == CreatePhase::Started) answered_.erase(machine.operation_id);
    }
  }
  co_return result;
}

}  // namespace kwatt::reconcilers
