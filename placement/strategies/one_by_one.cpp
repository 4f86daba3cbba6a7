#include "placement/strategies/one_by_one.hpp"

#include <algorithm>
#include <numeric>

namespace kwatt::placement::strategies {
namespace {

// Shapes remembered as refused; more would cost more than they spare.
constexpr std::size_t kShapes = 16;

// Whatever fits nowhere for `small` fits nowhere for `job` either.
bool covers(const Request& small, const Request& job) {
  if (job.cpu < small.cpu || job.memory < small.memory) return false;
  if (small.gpu_milli == 0) return true;
  return job.gpu_milli >= small.gpu_milli;
}

// As if all allowed nodes were empty.
bool ever_fits(const Job& job, const Cluster& cluster) {
  std::int64_t left = job.members;
  for (NodeIndex i = 0; i < cluster.size() && left > 0; ++i) {
    if (!cluster.allowed(i, job.zones, job.gpu_models)) continue;
    left -= cluster.most_members(i, job.request);
  }
  return left <= 0;
}

}  // namespace

std::string_view to_string(Waits reason) {
  switch (reason) {
    case Waits::no_fit:
      return "NoFit";
    case Waits::never_fits:
      return "NeverFits";
    case Waits::gang_incomplete:
      return "GangIncomplete";
    case Waits::waits_for_carbon:
      return "WaitsForCarbon";
    case Waits::behind_others:
      return "BehindOthers";
  }
  return "";
}

TimePoint ready_at(const Cluster& cluster, NodeIndex i, TimePoint now) {
  const NodeSpec& node = cluster.node(i);
  switch (node.state) {
    case NodeState::booting:
      return std::max(now, node.ready);
    case NodeState::off:
      return now + node.power.boot;
    case NodeState::awake:
    case NodeState::unavailable:
      break;
  }
  return now;
}

void worth_trying(const Batch& batch, const Cluster& cluster, std::uint64_t mark,
                  std::vector<std::uint32_t>& positions) {
  positions.clear();
  const auto freed = cluster.freed_since(mark);
  const std::size_t seen = freed ? std::min(batch.seen, batch.jobs.size()) : 0;
  for (std::size_t i = 0; i < batch.jobs.size(); ++i) {
    const Job& job = batch.jobs[i];
    if (i >= seen || std::any_of(freed->begin(), freed->end(), [&](NodeIndex node) {
          return cluster.allowed(node, job.zones, job.gpu_models) &&
                 cluster.fits(node, job.request);
        })) {
      positions.push_back(static_cast<std::uint32_t>(i));
    }
  }
}

bool Placer::known_not_to_fit(const Job& job) const {
  return std::any_of(refused_.begin(), refused_.end(), [&](const Shape& shape) {
    return shape.reason != Waits::gang_incomplete && covers(shape.request, job.request) &&
           (job.zones & ~shape.zones) == 0 && (job.gpu_models & ~shape.gpu_models) == 0;
  });
}

bool Placer::refuse(std::uint32_t job, const Job& what, bool some) {
  const auto same = std::find_if(refused_.begin(), refused_.end(), [&](const Shape& shape) {
    return shape.request == what.request && shape.zones == what.zones &&
           shape.gpu_models == what.gpu_models && shape.members == what.members;
  });
  Waits reason = Waits::no_fit;
  if (same != refused_.end()) {
    reason = same->reason;
  } else {
    if (!ever_fits(what, cluster_))
      reason = Waits::never_fits;
    else if (some)
      reason = Waits::gang_incomplete;
    // A gang that fits nowhere says that one member of it fits nowhere only if none did.
    const bool single = !some;
    if (refused_.size() < kShapes && single) {
      refused_.push_back({what.request, what.zones, what.gpu_models, what.members, reason});
    }
  }
  out_.waiting.push_back({job, reason, batch_.now});
  return false;
}

void Placer::add(std::uint32_t job, std::uint32_t member, const Job& what, Choice choice) {
  cluster_.start_on(choice.node, what.request, choice.gpus);
  out_.assigned.push_back(
      {job, member, choice.node, choice.gpus, ready_at(cluster_, choice.node, batch_.now)});
}

void Placer::place_on(std::uint32_t job, Choice choice) {
  add(job, 0, batch_.jobs[job], choice);
  finish_gang(out_.assigned.size() - 1);
}

void Placer::take_back(std::size_t first, const Job& what) {
  while (out_.assigned.size() > first) {
    const Assignment& last = out_.assigned.back();
    cluster_.undo(last.node, what.request, last.gpus);
    out_.assigned.pop_back();
  }
}

void Placer::finish_gang(std::size_t first) {
  TimePoint together = batch_.now;
  for (std::size_t k = first; k < out_.assigned.size(); ++k) {
    const Assignment& one = out_.assigned[k];
    together = std::max(together, one.start);
    if (cluster_.node(one.node).state == NodeState::off) {
      cluster_.set_state(one.node, NodeState::booting, one.start);
      out_.wake.push_back(one.node);
    }
  }
  for (std::size_t k = first; k < out_.assigned.size(); ++k) out_.assigned[k].start = together;
}

void Placer::finish() {
  std::sort(out_.waiting.begin(), out_.waiting.end(),
            [](const Waiting& a, const Waiting& b) { return a.job < b.job; });
}

std::optional<Choice> OneByOne::choose(const Job& job, const Batch& batch, const Cluster& cluster) {
  const auto node = best(job, batch, cluster);
  if (!node) return std::nullopt;
  return Choice{*node, cluster.gpus_for(*node, job.request)};
}

void OneByOne::decide(const Batch& batch, Cluster& cluster, Decision& out) {
  out.clear();
  begin(batch, cluster);
  // Of a strict queue none but the first was looked at, and it is first again; of one that waits
  // for an hour, the hour may have come.
  const std::size_t seen = std::min(batch.seen, batch.jobs.size());
  if (strict() || holds(batch)) {
    tried_.resize(batch.jobs.size());
    std::iota(tried_.begin(), tried_.end(), 0U);
  } else {
    worth_trying(batch, cluster, mark_, tried_);
  }
  order(batch, tried_);

  Placer placer(batch, cluster, out);
  for (std::size_t at = 0; at < tried_.size(); ++at) {
    const std::uint32_t position = tried_[at];
    const Job& job = batch.jobs[position];
    if (const auto until = hold(job, batch, cluster)) {
      placer.wait(position, Waits::waits_for_carbon, *until);
      continue;
    }
    const bool placed =
        placer.place(position, [&](const Job& one) { return choose(one, batch, cluster); });
    if (placed || !strict() || out.waiting.back().reason == Waits::never_fits) continue;
    for (++at; at < tried_.size(); ++at) {
      if (tried_[at] >= seen) placer.wait(tried_[at], Waits::behind_others, batch.now);
    }
  }
  placer.finish();
  mark_ = cluster.freed_mark();
}

}  // namespace kwatt::placement::strategies
