#pragma once
// The stores of a controller's caches, to be filled by hand.
#include "kube/indexes.hpp"
#include "reconcilers/stores.hpp"

namespace kwatt::test {

struct StoresByHand {
  kube::Store<api::EnergyPolicy> policies{"p"};
  kube::Store<api::NodePower> machines{"m"};
  kube::Store<api::Node> nodes{"n"};
  kube::Store<api::Pod> pods{"pods", kube::pod_indexes()};
  kube::Store<api::PodDisruptionBudget> budgets{"b"};
  kube::Store<api::PersistentVolumeClaim> claims{"c"};
  kube::Store<api::PersistentVolume> volumes{"v"};
  kube::Store<api::VolumeAttachment> attachments{"a"};
  kube::Store<api::Workload> replica_sets{"r"}, stateful_sets{"s"};
  reconcilers::Stores stores{policies, machines, nodes,       pods,         budgets,
                             claims,   volumes,  attachments, replica_sets, stateful_sets};
};

}  // namespace kwatt::test
