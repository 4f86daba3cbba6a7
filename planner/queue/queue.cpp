#include "planner/queue/queue.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "placement/strategies/carbon_wait.hpp"

namespace kwatt::planner::queue {
namespace {

using strategies::Job;
using strategies::NodeIndex;

Why why_of(strategies::Waits reason) {
  switch (reason) {
    case strategies::Waits::no_fit:
      return Why::no_fit;
    case strategies::Waits::never_fits:
      return Why::never_fits;
    case strategies::Waits::gang_incomplete:
      return Why::gang_incomplete;
    case strategies::Waits::waits_for_carbon:
      return Why::waits_for_carbon;
    case strategies::Waits::behind_others:
      break;
  }
  return Why::behind_others;
}

std::string amounts(const Job& job) {
  std::string text = fmt::format("{}m CPU and {} MiB", job.request.cpu.count(),
                                 (job.request.memory.count() + (1 << 20) - 1) >> 20);
  if (job.request.gpu_milli > 0) {
    text += fmt::format(" and {} thousandths of a GPU", job.request.gpu_milli);
  }
  return job.members == 1 ? text : fmt::format("{} members with {} each", job.members, text);
}

std::string node_names(const std::vector<NodeIndex>& nodes, const strategies::Cluster& cluster) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < nodes.size() && i < kNamed; ++i) {
    text += (i == 0 ? "" : ", ") + cluster.node(nodes[i]).name;
  }
  if (nodes.size() > kNamed) text += fmt::format(" and {} more", nodes.size() - kNamed);
  return text;
}

class Judge {
 public:
  Judge(const std::vector<QueuedJob>& jobs, const Question& question, strategies::Cluster& cluster)
      : jobs_(jobs), question_(question), cluster_(cluster), verdicts_(jobs.size()) {
    carbon_.begin(question.forecasts, cluster);
  }

  std::vector<Verdict> run(strategies::Strategy& strategy) {
    // Those that start in any case take their room first, or what is left would be given twice.
    offered_.clear();
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      if (unconditional(jobs_[i])) offer(i, true);
    }
    ask(strategy);
    offered_.clear();
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      if (unconditional(jobs_[i])) continue;
      if (jobs_[i].missing > 0) {
        wait(i, Why::members_missing,
             fmt::format("{} of its {} members are not there yet", jobs_[i].missing,
                         jobs_[i].missing + jobs_[i].job.members));
      } else {
        offer(i, false);
      }
    }
    ask(strategy);
    return std::move(verdicts_);
  }

 private:
  bool overdue(const QueuedJob& one) const { return one.job.latest_start <= question_.now; }
  bool unconditional(const QueuedJob& one) const {
    return one.begun || question_.release_all || overdue(one);
  }

  void offer(std::uint32_t index, bool at_once) {
    Job job = jobs_[index].job;
    job.id = index;
    if (at_once) job.latest_start = question_.now;  // it is not held back
    offered_.push_back(job);
  }

  void ask(strategies::Strategy& strategy) {
    if (offered_.empty()) return;
    strategy.decide({offered_, question_.now, question_.forecasts, 0}, cluster_, decision_);
    for (const strategies::Assignment& one : decision_.assigned) {
      verdicts_[offered_[one.job].id].nodes.push_back(one.node);
    }
    for (const Job& job : offered_) {
      const auto index = static_cast<std::uint32_t>(job.id);
      if (unconditional(jobs_[index]) || !verdicts_[index].nodes.empty()) start(index);
    }
    for (const strategies::Waiting& one : decision_.waiting) {
      const auto index = static_cast<std::uint32_t>(offered_[one.job].id);
      if (!unconditional(jobs_[index])) refuse(index, one);
    }
  }

  // What is expected of its zone at this moment; of the cleanest it may use if it has no node.
  double intensity(const QueuedJob& one, const std::vector<NodeIndex>& nodes) const {
    double least = -1;
    for (std::size_t z = 0; z < carbon_.zones().size() && z < 64; ++z) {
      const bool here =
          nodes.empty() ? (one.job.zones >> z & 1) != 0 : cluster_.node(nodes.front()).zone == z;
      if (!here || !carbon_.zones()[z].known()) continue;
      const double grams = carbon_.zones()[z].mean(question_.now, one.job.expected);
      if (least < 0 || grams < least) least = grams;
    }
    return least;
  }

  void start(std::uint32_t index) {
    const QueuedJob& one = jobs_[index];
    Verdict& verdict = verdicts_[index];
    verdict.starts = true;
    verdict.grams_per_kwh = intensity(one, verdict.nodes);
    const std::string where = verdict.nodes.empty()
                                  ? "; no node has room for it now, the scheduler's queue takes it"
                                  : ", on " + node_names(verdict.nodes, cluster_);
    if (one.begun) {
      verdict.why = Why::begun;
      verdict.sentence = "others of its gang were released before" + where;
    } else if (question_.release_all) {
      verdict.why = Why::asked;
      verdict.sentence = "the release of all jobs was asked for" + where;
    } else if (overdue(one)) {
      verdict.why = Why::max_delay;
      verdict.sentence = fmt::format("it has waited since {}, as long as it may{}",
                                     format_rfc3339(one.job.arrival), where);
    } else {
      verdict.why = Why::chosen;
      verdict.sentence = "starts" + where;
      if (verdict.grams_per_kwh >= 0) {
        verdict.sentence += fmt::format(", at {:.0f} g/kWh", verdict.grams_per_kwh);
      }
    }
  }

  void wait(std::uint32_t index, Why why, std::string sentence) {
    Verdict& verdict = verdicts_[index];
    verdict.why = why;
    verdict.sentence = std::move(sentence);
    verdict.look_again = jobs_[index].job.latest_start;
    verdict.grams_per_kwh = intensity(jobs_[index], {});
  }

  void refuse(std::uint32_t index, const strategies::Waiting& waiting) {
    const QueuedJob& one = jobs_[index];
    const Why why = why_of(waiting.reason);
    switch (why) {
      case Why::waits_for_carbon: {
        std::string sentence = "waits until " + format_rfc3339(waiting.not_before);
        if (const auto later = carbon_.cleaner_start(one.job, question_.now)) {
          sentence +=
              fmt::format(": {:.0f} g/kWh instead of {:.0f}", later->grams_then, later->grams_now);
        }
        wait(index, why, std::move(sentence));
        Verdict& verdict = verdicts_[index];
        verdict.look_again = std::min(verdict.look_again, waiting.not_before);
        return;
      }
      case Why::never_fits:
        return wait(index, why,
                    fmt::format("no node that it may use would have room for {} even if it was "
                                "empty",
                                amounts(one.job)));
      case Why::gang_incomplete:
        return wait(index, why,
                    fmt::format("there is room for some, but not for all of {}", amounts(one.job)));
      case Why::behind_others:
        return wait(index, why, "an older job is first, and does not fit yet");
      default:
        return wait(index, Why::no_fit,
                    fmt::format("no node that it may use has room for {} now", amounts(one.job)));
    }
  }

  const std::vector<QueuedJob>& jobs_;
  const Question& question_;
  strategies::Cluster& cluster_;
  strategies::CarbonWait carbon_;
  std::vector<Verdict> verdicts_;
  std::vector<Job> offered_;
  strategies::Decision decision_;
};

}  // namespace

std::string_view to_string(Why why) {
  switch (why) {
    case Why::chosen:
      return "Chosen";
    case Why::max_delay:
      return "MaxDelay";
    case Why::begun:
      return "Begun";
    case Why::asked:
      return "Asked";
    case Why::no_fit:
      return "NoFit";
    case Why::never_fits:
      return "NeverFits";
    case Why::gang_incomplete:
      return "GangIncomplete";
    case Why::members_missing:
      return "MembersMissing";
    case Why::waits_for_carbon:
      return "WaitsForCarbon";
    case Why::malformed:
      return "Malformed";
    case Why::no_policy:
      return "NoPolicy";
    case Why::suspended:
      return "Suspended";
    case Why::recommend_only:
      return "RecommendOnly";
    case Why::behind_others:
      break;
  }
  return "BehindOthers";
}

std::vector<Verdict> decide(const std::vector<QueuedJob>& jobs, const Question& question,
                            strategies::Strategy& strategy, strategies::Cluster& cluster) {
  return Judge(jobs, question, cluster).run(strategy);
}

}  // namespace kwatt::planner::queue
