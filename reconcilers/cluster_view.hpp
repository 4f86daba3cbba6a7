#pragma once
// What the controller knows right now: the caches, with our own newest writes laid over them until
// the cache has caught up (so no decision is made from a state we already changed), and the
// samples.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "planner/snapshot.hpp"
#include "reconcilers/power_history.hpp"
#include "reconcilers/stores.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::reconcilers {

// Our newest write of each object of a kind. Every write is guarded by the resourceVersion it was
// made from, so it directly follows that version: while the cache still shows a version that our
// writes have replaced, one after the other, the last of them is the newer truth; as soon as it
// shows any other, the cache is.
template <class T>
class WriteOverlay {
 public:
  using Pointer = std::shared_ptr<const T>;
  void wrote(const std::string& name, std::string from_version, Pointer now) {
    Write& write = writes_[name];
    // Made from what somebody else wrote: the cache has shown that, so it is past all before it.
    if (write.now == nullptr || write.now->meta.resource_version != from_version) {
      write.replaced.clear();
    }
    write.replaced.insert(std::move(from_version));
    write.now = std::move(now);
  }
  Pointer overlay(const std::string& name, Pointer cached) {
    const auto found = writes_.find(name);
    if (found == writes_.end()) return cached;
    const std::string version = cached == nullptr ? "" : cached->meta.resource_version;
    if (found->second.replaced.contains(version)) return found->second.now;
    writes_.erase(found);
    return cached;
  }

 private:
  struct Write {
    std::set<std::string> replaced;  // versions before `now`; "": we created the object
    Pointer now;
  };
  std::map<std::string, Write> writes_;
};

struct ViewOptions {
  std::string own_node;                              // the node this controller runs on, "" unknown
  Duration stale_after = std::chrono::seconds{120};  // a cache silent for longer is not synced
};

// Single-threaded: lives on the controller's strand. Snapshots may be read on any thread.
class ClusterView {
 public:
  // `driver_problem` tells why a BMC address cannot be used; "": it can.
  ClusterView(const Stores& stores, const telemetry::SampleStore& samples, const Clock& clock,
              ViewOptions options,
              std::function<std::string(const std::string& address)> driver_problem);

  // From now on these count, too; `others` outlives the view.
  void watch(const OtherStores& others) { others_ = &others; }

  std::shared_ptr<const api::Node> node(const std::string& name);
  std::shared_ptr<const api::NodePower> machine(const std::string& name);
  void wrote_node(std::string from_version, std::shared_ptr<const api::Node> now);
  void wrote_machine(std::string from_version, std::shared_ptr<const api::NodePower> now);

  // From now on temperatures count; `environment` outlives the view.
  void watch(const telemetry::EnvironmentStore& environment) { environment_ = &environment; }

  // What is known of a node's power without a snapshot: the newest state it was measured in
  // (nullopt: its load is not measured now), and what its meter taught, learned anew if that is
  // due.
  struct Knowledge {
    std::optional<models::MachineState> state;
    std::shared_ptr<const models::LearnedPower> learned;
  };
  Knowledge knowledge(const std::string& name);

  // A Node is gone: what its meter taught is forgotten.
  void forget(const std::string& node) { power_history_.forget(node); }

  planner::SyncState sync() const;
  // One node as the planner sees it; nullptr: there is no such Node.
  std::unique_ptr<planner::NodeView> node_view(const std::string& name);
  // Everything. Costs a walk over all pods; one per pass.
  std::shared_ptr<planner::Snapshot> snapshot();

  const Stores& stores() const { return stores_; }
  TimePoint now() const { return clock_.now(); }
  const Clock& clock() const { return clock_; }

 private:
  void fill(planner::NodeView& view, std::shared_ptr<const api::Node> node);
  void fill_samples(planner::NodeView& view);
  void fill_owners(planner::NodeView& view) const;
  const telemetry::Environment* environment(const std::string& node) const;
  void add_buffers(planner::Snapshot& snapshot) const;

  const Stores& stores_;
  const telemetry::SampleStore& samples_;
  const Clock& clock_;
  ViewOptions options_;
  std::function<std::string(const std::string&)> driver_problem_;
  const OtherStores* others_ = nullptr;
  const telemetry::EnvironmentStore* environment_ = nullptr;
  PowerHistory power_history_;
  WriteOverlay<api::Node> node_writes_;
  WriteOverlay<api::NodePower> machine_writes_;
  std::uint64_t seq_ = 0;
};

}  // namespace kwatt::reconcilers
