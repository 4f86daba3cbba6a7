#pragma once
// What the strategies that place one job after another share: the order, gangs, reasons, and
// looking only where something has changed. A strategy says which job is next and which node is
// best.
#include <optional>
#include <string>
#include <vector>

#include "placement/strategies/strategy.hpp"

namespace kwatt::placement::strategies {

struct Choice {
  NodeIndex node = 0;
  GpuSet gpus = 0;
};

// The fitting, allowed node with the least `score(NodeIndex)`; the first of equals.
template <class Score>
std::optional<NodeIndex> least(const Job& job, const Cluster& cluster, Score&& score) {
  std::optional<NodeIndex> best;
  double least_score = 0;
  cluster.each_fitting(job.request, job.zones, job.gpu_models, [&](NodeIndex i) {
    const double value = score(i);
    if (!best || value < least_score) best = i, least_score = value;
    return true;
  });
  return best;
}

// Goes round the nodes: the next one in the list that fits, after the one taken last.
class Round {
 public:
  std::optional<NodeIndex> take(const Job& job, const Cluster& cluster) {
    std::optional<NodeIndex> found;
    cluster.each_fitting(
        job.request, job.zones, job.gpu_models,
        [&](NodeIndex i) {
          found = i;
          return false;
        },
        next_ < cluster.size() ? next_ : 0);
    if (found) next_ = *found + 1;
    return found;
  }

 private:
  NodeIndex next_ = 0;
};

// When the node could start a job: now, at the end of its boot, or after a boot that begins now.
TimePoint ready_at(const Cluster& cluster, NodeIndex i, TimePoint now);

// Positions of the jobs that are to be tried: all but those that were seen and refused and that fit
// nowhere where room has come free since `mark`.
void worth_trying(const Batch& batch, const Cluster& cluster, std::uint64_t mark,
                  std::vector<std::uint32_t>& positions);

// Tries jobs and keeps the books of one decide() call. Also for strategies with an order of their
// own, such as those that solve for all jobs at once.
class Placer {
 public:
  Placer(const Batch& batch, Cluster& cluster, Decision& out)
      : batch_(batch), cluster_(cluster), out_(out) {}

  // All members or none, each where `choose(job)` (an optional<Choice>) says, seeing those before
  // it. False: the reason is in the decision.
  template <class Choose>
  bool place(std::uint32_t job, Choose&& choose) {
    const Job& what = batch_.jobs[job];
    if (known_not_to_fit(what)) return refuse(job, what, false);
    const std::size_t first = out_.assigned.size();
    for (std::uint32_t member = 0; member < what.members; ++member) {
      const std::optional<Choice> choice = choose(what);
      if (!choice) {
        const bool some = member > 0;
        take_back(first, what);
        return refuse(job, what, some);
      }
      add(job, member, what, *choice);
    }
    finish_gang(first);
    return true;
  }
  // A choice made beforehand, for a job of one member.
  void place_on(std::uint32_t job, Choice choice);
  void wait(std::uint32_t job, Waits reason, TimePoint not_before) {
    out_.waiting.push_back({job, reason, not_before});
  }
  // Puts the reasons in the order of the jobs.
  void finish();

 private:
  struct Shape {  // one that did not fit anywhere in this call, and why
    Request request;
    BitSet zones, gpu_models;
    std::uint32_t members;
    Waits reason;
  };
  bool known_not_to_fit(const Job& job) const;
  bool refuse(std::uint32_t job, const Job& what, bool some);
  void add(std::uint32_t job, std::uint32_t member, const Job& what, Choice choice);
  void take_back(std::size_t first, const Job& what);
  void finish_gang(std::size_t first);

  const Batch& batch_;
  Cluster& cluster_;
  Decision& out_;
  std::vector<Shape> refused_;
};

class OneByOne : public Strategy {
 public:
  std::string_view name() const final { return name_; }
  void decide(const Batch& batch, Cluster& cluster, Decision& out) final;

 protected:
  explicit OneByOne(std::string_view name) : name_(name) {}

  // The best node for one member, among those that fit now; nullopt: none fits.
  virtual std::optional<NodeIndex> best(const Job& job, const Batch& batch,
                                        const Cluster& cluster) = 0;
  // As best(), with the GPUs chosen; for strategies that care which.
  virtual std::optional<Choice> choose(const Job& job, const Batch& batch, const Cluster& cluster);
  // Brings positions in the batch into the order in which they are tried; given: as they arrived.
  virtual void order(const Batch&, std::vector<std::uint32_t>&) const {}
  // True: nobody overtakes a job that does not fit.
  virtual bool strict() const { return false; }
  // nullopt: the job may start. Else when it is meant to, because of the carbon intensity. A
  // strategy that may hold jobs back says so with holds().
  virtual std::optional<TimePoint> hold(const Job&, const Batch&, const Cluster&) {
    return std::nullopt;
  }
  virtual bool holds(const Batch&) const { return false; }
  // Called first in each decide().
  virtual void begin(const Batch&, const Cluster&) {}

 private:
  std::string_view name_;
  std::uint64_t mark_ = 0;  // the cluster's freed_mark() at the end of the last call
  std::vector<std::uint32_t> tried_;
};

}  // namespace kwatt::placement::strategies
