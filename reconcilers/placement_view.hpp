#pragma once
// The nodes as placement/ sees them, kept up to date from the stores: a change of a Node, its
// NodePower or a pod builds that one node anew, and the next table shares all others with the last.
// Tables are immutable and may be read on any thread.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "kube/store.hpp"
#include "net/run.hpp"
#include "placement/node_table.hpp"
#include "reconcilers/held_room.hpp"
#include "reconcilers/stores.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::reconcilers {

struct PlacementOptions {
  Duration stale_after = std::chrono::seconds{120};  // caches silent for longer: no table
  Duration gather{2};                                // changes within it make one table
  Duration refresh_every = std::chrono::seconds{5};  // the load of every node is looked at so often
  Duration assumed_for = std::chrono::seconds{30};   // a binding that the watch never shows
  // Adds to a node what others know of it: temperatures, predictions, carbon. Called for each node
  // that is built; must be quick.
  std::function<void(placement::NodeInfo&)> enrich = nullptr;
};

// Single-threaded: lives on the controller's strand.
class PlacementView {
 public:
  using Publish = std::function<void(std::shared_ptr<const placement::NodeTable>)>;
  // `publish` gets each new table, and null while the caches cannot be trusted.
  PlacementView(const Stores& stores, const telemetry::SampleStore& samples, const Clock& clock,
                Publish publish, PlacementOptions options = {});

  // For the subscriptions of the stores.
  void node_changed(const kube::Delta<api::Node>& delta);
  void machine_changed(const kube::Delta<api::NodePower>& delta);
  void pod_changed(const kube::Delta<api::Pod>& delta);
  // Something that `enrich` adds has changed for this node.
  void touch(const std::string& node);

  // A binding that we are about to make: counted on the node until the watch shows it.
  void assume(const api::Pod& pod, const std::string& node);
  // It was not made.
  void forget(const std::string& pod_uid);

  // Builds what has changed and publishes, if anything has. run() does it.
  void flush();
  // Looks at the loads of the next share of the nodes, and at what has expired.
  void refresh(std::size_t nodes);
  // Keeps the table up to date until cancelled.
  net::Task<void> run();

  const std::shared_ptr<const placement::NodeTable>& table() const { return table_; }

 private:
  struct Assumed {
    std::string node;
    std::shared_ptr<const api::PodTemplate> spec;
    MonotonicPoint until;
  };
  placement::NodeTable::Pointer build(const std::shared_ptr<const api::Node>& node) const;
  void count_pods(placement::NodeInfo& info) const;
  bool trusted() const;

  const Stores& stores_;
  const telemetry::SampleStore& samples_;
  const Clock& clock_;
  Publish publish_;
  PlacementOptions options_;
  HeldRoom held_;
  std::map<std::string, Assumed> assumed_;  // by uid
  std::set<std::string> dirty_;
  bool rebuild_all_ = true;  // nodes came or went
  bool told_ = false;        // publish() was called with a table last time
  std::size_t next_ = 0;     // of the nodes to refresh
  std::shared_ptr<const placement::NodeTable> table_;
  net::Signal changed_;
};

}  // namespace kwatt::reconcilers
