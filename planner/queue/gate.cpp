#include "planner/queue/gate.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "placement/filters/filters.hpp"
#include "placement/strategies/carbon_wait.hpp"
#include "placement/strategies/registry.hpp"
#include "planner/filters/node_face.hpp"

namespace kwatt::planner::queue {
namespace {

using strategies::BitSet;
using strategies::NodeSpec;
using strategies::NodeState;
using strategies::Request;

constexpr std::size_t kBits = 64;  // zones, and classes of nodes, of one queue

std::string_view strategy_name(api::PlacementStrategy strategy) {
  switch (strategy) {
    case api::PlacementStrategy::Default:
      return "Default";
    case api::PlacementStrategy::FCFS:
      return "FCFS";
    case api::PlacementStrategy::RoundRobin:
      return "RoundRobin";
    case api::PlacementStrategy::MinMin:
      return "MinMin";
    case api::PlacementStrategy::MaxMin:
      return "MaxMin";
    case api::PlacementStrategy::EnergyAware:
      return "EnergyAware";
    case api::PlacementStrategy::ECSched:
      return "ECSched";
    case api::PlacementStrategy::CarbonAware:
      break;
  }
  return "CarbonAware";
}

// Can it be woken for a job? Only what this policy may switch on.
bool wakes(const NodeView& node, const api::EnergyPolicySpec& spec) {
  return spec.power_on.enabled && node.has_driver && node.memory().powered_off_by_us;
}

NodeState state_of(const NodeView& node, const api::EnergyPolicySpec& spec) {
  using api::PowerState;
  if (filters::foreign_cordon(node)) return NodeState::unavailable;
  switch (node.power_state()) {
    case PowerState::Off:
    case PowerState::PoweringOff:
      return wakes(node, spec) ? NodeState::off : NodeState::unavailable;
    case PowerState::PoweringOn:
      return NodeState::booting;
    case PowerState::Draining:
    case PowerState::WakeFailed:
      return NodeState::unavailable;
    default:
      return node.ready && !node.node->unschedulable ? NodeState::awake : NodeState::unavailable;
  }
}

void add(Request& sum, const Request& one) {
  sum.cpu += one.cpu;
  sum.memory += one.memory;
  sum.gpu_milli += one.gpu_milli;
}

class Gate {
 public:
  Gate(const Snapshot& snapshot, const GateQuestion& question)
      : snapshot_(snapshot), question_(question) {
    for (const auto& [name, node] : snapshot.nodes) {
      for (const auto& pod : node.pods) {
        if (!pod->terminal()) take(name, request_of(pod->spec->requests));
      }
    }
    for (const auto& pod : snapshot.unbound) {
      const std::string node = on_its_way_to(*pod, question.released);
      if (!node.empty()) take(node, request_of(pod->spec->requests));
    }
  }

  std::vector<Decided> run() {
    std::map<std::string, std::vector<GatedJob>> queues;
    for (GatedJob& job : gated_jobs(snapshot_, question_.released)) {
      queues[job.queue].push_back(std::move(job));
    }
    std::vector<std::pair<std::int64_t, std::string>> order;  // highest priority first
    for (const auto& [name, jobs] : queues) {
      const api::EnergyPolicy* policy = policy_of(name);
      order.emplace_back(policy == nullptr ? 0 : -policy->spec.priority, name);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [priority, name] : order) {
      const auto begin = static_cast<std::ptrdiff_t>(out_.size());
      decide_queue(name, std::move(queues[name]));
      // Those that were refused beforehand stand before the others.
      std::stable_sort(out_.begin() + begin, out_.end(), [](const Decided& a, const Decided& b) {
        return std::tie(a.gated.job.job.arrival, a.gated.job.name) <
               std::tie(b.gated.job.job.arrival, b.gated.job.name);
      });
    }
    return std::move(out_);
  }

 private:
  const api::EnergyPolicy* policy_of(const std::string& name) const {
    for (const auto& policy : question_.policies) {
      if (policy->meta.name == name) return policy.get();
    }
    return nullptr;
  }

  void take(const std::string& node, const Request& request) {
    auto& [sum, pods] = taken_[node];
    add(sum, request);
    ++pods;
  }

  Decided& refuse(GatedJob job, std::string strategy, Why why, std::string sentence) {
    Decided& out = out_.emplace_back();
    out.gated = std::move(job);
    out.strategy = std::move(strategy);
    out.verdict.why = why;
    out.verdict.sentence = std::move(sentence);
    out.verdict.look_again = out.gated.job.job.latest_start;
    return out;
  }

  void decide_queue(const std::string& name, std::vector<GatedJob> jobs) {
    const api::EnergyPolicy* policy = policy_of(name);
    std::optional<std::pair<Why, std::string>> held;
    if (policy == nullptr || policy->meta.deletion_timestamp) {
      held.emplace(
          Why::no_policy,
          fmt::format("there is no EnergyPolicy {}: create it, or change the label", name));
    } else if (policy->spec.suspend) {
      held.emplace(Why::suspended, fmt::format("EnergyPolicy {} is suspended", name));
    } else if (policy->spec.mode != api::Mode::Enforce) {
      held.emplace(Why::recommend_only,
                   fmt::format("EnergyPolicy {} only recommends: set mode Enforce", name));
    }
    const api::EnergyPolicySpec none;
    const api::EnergyPolicySpec& spec = policy == nullptr ? none : policy->spec;
    const std::string strategy(strategy_name(spec.placement.strategy));
    if (held && !question_.release_all) {
      for (GatedJob& job : jobs) {
        refuse(std::move(job), policy == nullptr ? "" : strategy, held->first, held->second);
      }
      return;
    }
    std::vector<GatedJob> offered;
    for (GatedJob& job : jobs) {
      strategies::Job& times = job.job.job;
      times.latest_start = std::min(times.latest_start, times.arrival + spec.carbon.max_delay);
      const bool late = times.latest_start <= snapshot_.now;
      if (!job.malformed.empty() && !late && !question_.release_all) {
        std::string sentence = fmt::format("{}; correct it, or it starts at {}", job.malformed,
                                           format_rfc3339(times.latest_start));
        refuse(std::move(job), strategy, Why::malformed, std::move(sentence));
      } else {
        offered.push_back(std::move(job));
      }
    }
    ask(spec, strategy, std::move(offered));
  }

  // Nodes that all jobs of the queue see alike are of one class; a job may go to a set of classes.
  // Classes take the place of GPU models, which Kubernetes tells by labels anyway.
  BitSet class_of(const NodeView& node, const std::vector<const api::PodTemplate*>& shapes,
                  std::map<std::vector<bool>, std::size_t>& classes, bool awake) const {
    const auto face = filters::face_of(node, !awake);
    std::vector<bool> sees;
    sees.reserve(shapes.size());
    for (const api::PodTemplate* shape : shapes) {
      sees.push_back(placement::filters::node_affinity::passes(*shape, *node.node) &&
                     placement::filters::taint_toleration::passes(*shape, face));
    }
    return classes.emplace(std::move(sees), classes.size()).first->second;
  }

  void ask(const api::EnergyPolicySpec& spec, const std::string& strategy,
           std::vector<GatedJob> jobs) {
    if (jobs.empty()) return;
    // Different wishes as to nodes.
    std::vector<const api::PodTemplate*> shapes;
    std::vector<std::set<std::size_t>> shapes_of(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (const auto& pod : jobs[i].pods) {
        const api::PodTemplate& shape = *pod->spec;
        const auto same = std::find_if(shapes.begin(), shapes.end(), [&](const auto* known) {
          return known == &shape || (known->node_selector == shape.node_selector &&
                                     known->tolerations == shape.tolerations &&
                                     known->required_node_affinity == shape.required_node_affinity);
        });
        shapes_of[i].insert(static_cast<std::size_t>(same - shapes.begin()));
        if (same == shapes.end()) shapes.push_back(&shape);
      }
    }
    std::vector<NodeSpec> nodes;
    std::vector<std::string> zones;
    std::map<std::vector<bool>, std::size_t> classes;
    for (const auto& [name, node] : snapshot_.nodes) {
      if (!api::matches(spec.node_selector, node.node->meta.labels)) continue;
      NodeSpec& made = nodes.emplace_back();
      made.name = name;
      made.capacity = request_of(node.node->allocatable);
      made.capacity.gpu_milli = std::min<std::int64_t>(made.capacity.gpu_milli, 32'000);
      made.power = node.model;
      made.state = state_of(node, spec);
      if (made.state == NodeState::booting) made.ready = snapshot_.now + node.model.boot;
      const auto taken = taken_.find(name);
      if (taken != taken_.end() && taken->second.second >= node.node->allocatable.pods) {
        made.state = NodeState::unavailable;  // not one pod more
      }
      const std::string zone = spec.carbon.zone.empty() ? node.zone : spec.carbon.zone;
      const auto known = std::find(zones.begin(), zones.end(), zone);
      made.zone = static_cast<std::uint16_t>(known - zones.begin());
      if (known == zones.end()) zones.push_back(zone);
      const auto kind = class_of(node, shapes, classes, made.state == NodeState::awake);
      made.gpu_model = static_cast<std::uint16_t>(kind);
      if (made.zone >= kBits || made.gpu_model >= kBits) {
        // More kinds of nodes than a decision tells apart: these take nothing of this queue.
        made.zone = made.gpu_model = 0;
        made.state = NodeState::unavailable;
      }
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      BitSet allowed = 0;
      for (const auto& [shapes_seen, number] : classes) {
        const std::vector<bool>& sees = shapes_seen;  // clang 14 captures no structured binding
        const bool all = std::all_of(shapes_of[i].begin(), shapes_of[i].end(),
                                     [&](std::size_t shape) { return sees[shape]; });
        if (all && number < kBits) allowed |= BitSet{1} << number;
      }
      jobs[i].job.job.gpu_models = allowed;
    }
    auto cluster = strategies::Cluster::create(std::move(nodes));
    auto chosen = strategies::make_strategy(strategy);
    if (!cluster || !chosen) {
      const Error& error = !cluster ? cluster.error() : chosen.error();
      for (GatedJob& job : jobs) refuse(std::move(job), strategy, Why::no_fit, error.message);
      return;
    }
    occupy(*cluster);
    std::vector<Outlook> outlooks;
    std::vector<strategies::CarbonForecast> forecasts;
    if (question_.outlook && !spec.carbon.source.empty()) {
      for (std::size_t z = 0; z < zones.size() && z < kBits; ++z) {
        outlooks.push_back(question_.outlook(spec.carbon, zones[z]));
      }
      for (const Outlook& one : outlooks) {
        forecasts.push_back({one.start, one.step, one.grams_per_kwh});
      }
      const auto pending = std::find_if(outlooks.begin(), outlooks.end(),
                                        [](const Outlook& one) { return one.pending; });
      if (pending != outlooks.end()) {
        hold_for_first_answer(jobs, strategy, spec.carbon.source,
                              zones[static_cast<std::size_t>(pending - outlooks.begin())]);
        if (jobs.empty()) return;
      }
    }
    std::vector<QueuedJob> queued;
    queued.reserve(jobs.size());
    for (const GatedJob& job : jobs) queued.push_back(job.job);
    const auto hold = strategies::carbon_hold(std::move(*chosen));
    auto verdicts =
        decide(queued, {snapshot_.now, forecasts, question_.release_all}, *hold, *cluster);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      Decided& out = out_.emplace_back();
      out.verdict = std::move(verdicts[i]);
      for (const strategies::NodeIndex node : out.verdict.nodes) {
        out.nodes.push_back(cluster->node(node).name);
        take(out.nodes.back(), jobs[i].job.job.request);
      }
      out.gated = std::move(jobs[i]);
      out.strategy = strategy;
    }
  }

  // Takes those out of `jobs` that may wait.
  void hold_for_first_answer(std::vector<GatedJob>& jobs, const std::string& strategy,
                             const std::string& source, const std::string& zone) {
    std::vector<GatedJob> others;
    for (GatedJob& job : jobs) {
      if (job.job.begun || question_.release_all || job.job.job.latest_start <= snapshot_.now) {
        others.push_back(std::move(job));
      } else {
        refuse(std::move(job), strategy, Why::waits_for_carbon,
               fmt::format("carbon source {} is being asked for zone \"{}\" for the first time",
                           source, zone));
      }
    }
    jobs = std::move(others);
  }

  // What is taken on each node; of GPUs as many whole ones as there are.
  void occupy(strategies::Cluster& cluster) const {
    for (strategies::NodeIndex i = 0; i < cluster.size(); ++i) {
      const auto taken = taken_.find(cluster.node(i).name);
      if (taken == taken_.end()) continue;
      const Request& full = cluster.node(i).capacity;
      Request sum = taken->second.first;
      sum.cpu = std::min(sum.cpu, full.cpu);
      sum.memory = std::min(sum.memory, full.memory);
      sum.gpu_milli = std::min((sum.gpu_milli + 999) / 1000 * 1000, full.gpu_milli);
      const strategies::GpuSet gpus =
          sum.gpu_milli == 0
              ? 0
              : static_cast<strategies::GpuSet>((std::uint64_t{1} << (sum.gpu_milli / 1000)) - 1);
      cluster.start_on(i, sum, gpus);
    }
  }

  const Snapshot& snapshot_;
  const GateQuestion& question_;
  std::map<std::string, std::pair<Request, std::int64_t>> taken_;  // by node: amounts, pods
  std::vector<Decided> out_;
};

}  // namespace

std::vector<Decided> decide_all(const Snapshot& snapshot, const GateQuestion& question) {
  return Gate(snapshot, question).run();
}

}  // namespace kwatt::planner::queue
