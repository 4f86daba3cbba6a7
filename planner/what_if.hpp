#pragma once
// Would these pods fit elsewhere? Room on nodes as kube-scheduler would see it, with everything
// that was reserved so far, and savepoints to try and take back.
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

class WhatIf {
 public:
  // Nodes count as destinations when they are On, Ready, schedulable, not in an operation that
  // takes them away. `reserved` pods occupy their destinations.
  WhatIf(const Snapshot& snapshot, const Reserved& reserved);
  ~WhatIf();

  // Takes the node out of (or back into) the set of destinations.
  void exclude(const NodeName& node);
  // Adds an off node as if it were awake and clean: our cordon, our taints and the
  // not-ready/unreachable/out-of-service taints removed.
  void assume_awake(const NodeName& node);

  // Does the pod fit this node now? nullopt: yes.
  std::optional<Unfit> fits(const api::Pod& pod, const NodeName& node) const;
  // The best destination (most allocated first, so that load stays together; ties by name) and
  // reserves it; nullopt: none. The pod is counted off its present node if it has one.
  std::optional<NodeName> place(const std::shared_ptr<const api::Pod>& pod);
  // Counts a pod off its node without placing it (it will be gone).
  void remove(const api::Pod& pod);

  // Everything since mark() is undone by rollback(mark).
  std::size_t mark() const;
  void rollback(std::size_t mark);

  Millicores free_cpu(const NodeName& node) const;
  Bytes free_memory(const NodeName& node) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::planner
