#pragma once
// The caches the controller decides from: one store per kind, filled by kube/ informers that live
// elsewhere.
#include "api/core.hpp"
#include "api/energy_policy.hpp"
#include "api/node_power.hpp"
#include "kube/store.hpp"

namespace kwatt::reconcilers {

struct Stores {
  const kube::Store<api::EnergyPolicy>& policies;
  const kube::Store<api::NodePower>& machines;
  const kube::Store<api::Node>& nodes;
  const kube::Store<api::Pod>& pods;  // with the indexes of kube/indexes.hpp
  const kube::Store<api::PodDisruptionBudget>& budgets;
  const kube::Store<api::PersistentVolumeClaim>& claims;
  const kube::Store<api::PersistentVolume>& volumes;
  const kube::Store<api::VolumeAttachment>& attachments;
  const kube::Store<api::Workload>& replica_sets;
  const kube::Store<api::Workload>& stateful_sets;

  template <class Visit>
  void each(Visit&& visit) const {
    visit(policies);
    visit(machines);
    visit(nodes);
    visit(pods);
    visit(budgets);
    visit(claims);
    visit(volumes);
    visit(attachments);
    visit(replica_sets);
    visit(stateful_sets);
  }
  // Absence from a cache means nothing before every store has completed one list.
  bool ready() const {
    bool all = true;
    each([&](const auto& store) { all = all && store.ready(); });
    return all;
  }
  // How long ago the least recently heard-of store was in contact with the API server.
  Duration age(MonotonicPoint now) const {
    Duration oldest{0};
    each([&](const auto& store) {
      oldest = std::max(oldest, std::chrono::ceil<Duration>(now - store.last_contact()));
    });
    return oldest;
  }
};

// Kinds of other projects: empty where the API server does not have them.
struct OtherStores {
  const kube::Store<api::CapacityBuffer>& buffers;
  const kube::Store<api::PodTemplateObject>& templates;
  const kube::Store<api::NodeHealthCheck>& health_checks;
  const kube::Store<api::Lease>& maintenance;  // of medik8s, named "node-<node>"
  // Which kinds the API server has, once that is known; what it has must be listed before anything
  // is decided.
  const bool& known;
  const bool& has_buffers;
  const bool& has_health_checks;

  bool ready() const {
    return known && maintenance.ready() &&
           (!has_buffers || (buffers.ready() && templates.ready())) &&
           (!has_health_checks || health_checks.ready());
  }
};

}  // namespace kwatt::reconcilers
