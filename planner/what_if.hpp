#pragma once
// Would these pods fit elsewhere? Room on nodes as kube-scheduler would see it, with everything
// that was reserved so far, and savepoints to try and take back.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace kwatt::planner {

// Why a pod does not fit: the first filter that refuses, as a sentence.
struct Unfit {
  std::string
      filter;  // NodeResourcesFit, TaintToleration, NodeAffinity, … (kube-scheduler's names)
  std::string message;
};

// A node that a pod fits, and the room that it has now, with everything reserved so far.
struct Fitting {
  const NodeView* view = nullptr;
  std::size_t id = 0;  // the node's position in the snapshot
  Millicores free_cpu;
  Bytes free_memory;
};

// What counts: pods that are not terminal occupy their node (terminating ones until they are gone,
// as in kube-scheduler), unbound pods with a nomination their nominated node, reserved pods their
// destination. `snapshot` must outlive it. Not thread-safe, const or not: answers are cached.
class WhatIf {
 public:
  // Nodes count as destinations when they are On, Ready, schedulable, not in an operation that
  // takes them away. `reserved` pods occupy their destinations.
  WhatIf(const Snapshot& snapshot, const Reserved& reserved);
  ~WhatIf();
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  // Takes the node out of the set of destinations, or back into it if it is awake.
  void exclude(const NodeName& node);
  void include(const NodeName& node);
  bool is_destination(const NodeName& node) const;
  // Adds an off node as if it were awake and clean: our cordon, our taints and the
  // not-ready/unreachable/out-of-service taints removed. Room is set aside for the DaemonSets that
  // will start there and have no pod on it now.
  void assume_awake(const NodeName& node);

  // Does the pod fit this node now? nullopt: yes. A pod that is counted somewhere is looked at as
  // if it were leaving there. can_take() is the same without the sentence, and much faster.
  std::optional<Unfit> fits(const api::Pod& pod, const NodeName& node) const;
  bool can_take(const api::Pod& pod, const NodeName& node) const;
  // The best destination and reserves it; nullopt: none, and nothing has changed. Awake nodes at
  // full speed come before slow (kwatt.dev/frequency=low) and capped (kwatt.dev/capped=true) ones,
  // then most allocated first, so that load stays together; ties by name. The pod is counted off
  // its present node if it has one; exclude() that node, or it may be chosen again.
  std::optional<NodeName> place(const std::shared_ptr<const api::Pod>& pod);
  // The same, where `choose` picks one of the first `most` nodes of the best tier that fit, given
  // in that order; it returns a position, and is not asked if there is only one.
  using Choose = std::function<std::size_t(const std::vector<Fitting>&)>;
  std::optional<NodeName> place_among(const std::shared_ptr<const api::Pod>& pod, std::size_t most,
                                      const Choose& choose);
  // The same with a destination chosen by the caller; nullopt: done, else why not.
  std::optional<Unfit> place_on(const std::shared_ptr<const api::Pod>& pod, const NodeName& node);
  // The same without the sentence: true if it was placed there.
  bool put(const std::shared_ptr<const api::Pod>& pod, const NodeName& node);
  // Counts a pod off its node without placing it (it will be gone).
  void remove(const api::Pod& pod);
  // After place() found nothing: how many destinations each filter refused, most first, and the
  // sentence of one of them.
  Unfit why_nowhere(const api::Pod& pod) const;

  // Everything since mark() is undone by rollback(mark).
  std::size_t mark() const;
  void rollback(std::size_t mark);

  Millicores free_cpu(const NodeName& node) const;
  Bytes free_memory(const NodeName& node) const;
  // Pods counted on the node that are not bound to it: reserved, nominated, placed here.
  std::int64_t incoming(const NodeName& node) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::planner
