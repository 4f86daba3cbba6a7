#pragma once
// What became of the pods we evicted: the status list of migrations, with the node on which each
// replacement came up.
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "api/core.hpp"
#include "api/energy_policy.hpp"
#include "api/node_power.hpp"

namespace kwatt::reconcilers {

// Pure bookkeeping on the controller's strand, fed by the executor and by the pod store. Lost at a
// restart: then the newest entries of the status simply stay as they are.
class Migrations {
 public:
  // An eviction of these pods begins or goes on.
  void evicting(const std::string& policy, const std::string& from_node,
                const std::vector<api::PodMove>& moves, const std::string& reason, TimePoint now,
                const std::map<std::string, std::string>& owner_by_pod_uid);
  // The pod store: a pod was bound to a node, or is gone.
  void bound(const api::Pod& pod);
  void gone(const api::Pod& pod);

  // The newest first, at most `limit`, merged over what stands in the status (entries from before a
  // restart are kept behind ours).
  std::vector<api::MigrationStatus> list(const std::string& policy,
                                         const std::vector<api::MigrationStatus>& standing,
                                         std::size_t limit) const;

 private:
  struct Entry {
    std::string policy, pod_uid, owner_uid, replacement_uid;
    api::MigrationStatus status;
    TimePoint since;
  };
  std::deque<Entry> entries_;  // newest last
};

}  // namespace kwatt::reconcilers
