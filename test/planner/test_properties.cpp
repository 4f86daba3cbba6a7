// Random worlds with fixed seeds: whatever the levers propose must hold when it is checked again by
// a plain, slow re-implementation of the scheduler's rules that shares nothing with the what-if.
#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "planner/levers.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::OnePass;
using test::World;
using namespace std::chrono_literals;

using PodPtr = std::shared_ptr<const api::Pod>;
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kHost = "kubernetes.io/hostname";

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  int roll(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  bool one_in(int n) { return roll(n) == 0; }

 private:
  std::mt19937 random_;
};

void random_node(World& w, Dice& dice, int i) {
  auto& n = w.node("n" + std::to_string(10 + i));
  n.cpu(2 + 2 * dice.roll(4)).memory_gib(4 + 4 * dice.roll(4)).pods(6 + dice.roll(20));
  n.watts(40 + dice.roll(80), 150 + dice.roll(100)).boot(std::chrono::seconds{dice.roll(90)}, 0);
  if (!dice.one_in(6)) n.zone(std::string(1, static_cast<char>('a' + dice.roll(3))));
  if (dice.one_in(3)) n.label("disk", "ssd");
  if (dice.one_in(6)) n.taint("dedicated", "x", "NoSchedule");
  if (dice.one_in(8)) n.label("kwatt.dev/frequency", "low");
  if (dice.one_in(6)) n.extended("nvidia.com/gpu", 1 + dice.roll(3));
  switch (dice.roll(12)) {
    case 0:
      n.control_plane();
      break;
    case 1:
      n.annotation("kwatt.dev/exclude", "true");
      break;
    case 2:
    case 3:
    case 4:
      n.off(std::chrono::minutes{dice.roll(30)});
      return;
    case 5:
      n.cordoned();
      break;
    case 6:
      n.not_ready();
      break;
    default:
      break;
  }
  n.idle_for(std::chrono::minutes{dice.roll(40)});
}

void random_pod(World& w, Dice& dice, int i, const std::string& node) {
  const std::string app = "app" + std::to_string(dice.roll(8));
  const std::string space = dice.one_in(4) ? "other" : "default";
  auto& p = w.pod(space + "/" + app + "-" + std::to_string(i));
  p.cpu_milli(50 * dice.roll(20)).memory_mib(64 * dice.roll(20)).label("app", app);
  const int app_kind = app.back() - '0';
  if (app_kind == 1) p.anti_affinity("app", app);
  if (app_kind == 2) p.anti_affinity("app", "app3", kZone);
  if (app_kind == 4) p.spread("app", app, kZone, 1 + dice.roll(2));
  if (app_kind == 5) p.spread("app", app, kHost, 2);
  if (app_kind == 6) p.affinity("app", "app0", kZone);
  if (app_kind == 7) p.host_port(8000 + dice.roll(2));
  if (dice.one_in(6)) p.selector("disk", "ssd");
  if (dice.one_in(5)) p.tolerate("dedicated", "Exists", "", "");
  if (dice.one_in(12)) p.extended("nvidia.com/gpu", 1);
  if (dice.one_in(20)) p.local_storage();
  if (dice.one_in(20)) p.annotation("kwatt.dev/do-not-disrupt", "true");
  if (dice.one_in(10)) p.claim(dice.one_in(2) ? "bound" : "unbound");
  if (!node.empty()) p.on(node);
  if (!node.empty() && dice.one_in(15)) p.phase(api::PodPhase::succeeded);
  if (!node.empty() && dice.one_in(20)) p.terminating();
}

World random_world(std::uint32_t seed) {
  Dice dice{seed};
  World w;
  const int nodes = 4 + dice.roll(12);
  for (int i = 0; i < nodes; ++i) random_node(w, dice, i);
  for (const std::string space : {"default", "other"}) {
    w.claim(space + "/bound", "pv-" + space);
    w.claim(space + "/unbound", "");
    w.volume("pv-" + space, dice.one_in(2) ? kZone : "", "a");
  }
  int pod = 0;
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "n" + std::to_string(10 + i);
    if (w.node(name).machine().status.power_state == api::PowerState::Off) continue;
    for (int k = dice.roll(7); k > 0; --k) random_pod(w, dice, pod++, name);
    if (dice.one_in(2)) {
      w.pod("kube-system/ds-" + name).on(name).daemon().cpu_milli(100).label("app", "ds");
    }
  }
  for (int k = dice.roll(6); k > 0; --k) random_pod(w, dice, pod++, "");
  if (dice.one_in(2)) w.budget("default/b", "app", "app3", dice.roll(2));
  return w;
}

api::EnergyPolicySpec random_policy(std::uint32_t seed) {
  Dice dice{seed + 7919};
  api::EnergyPolicySpec spec = test::enforcing();
  spec.migration.enabled = true;
  spec.migration.strategy =
      dice.one_in(2) ? api::MigrationStrategy::FewestPods : api::MigrationStrategy::BestSaving;
  spec.migration.max_nodes = 1 + dice.roll(4);
  spec.migration.min_saving_score = dice.roll(60);
  spec.migration.utilization_below_percent = 40 + dice.roll(60);
  spec.power_off.min_awake = dice.roll(4);
  spec.power_off.min_awake_per_zone = dice.roll(2);
  spec.power_on.headroom = {dice.roll(20), dice.roll(20)};
  return spec;
}

// ---- the plain re-implementation: a list of (pod, node) and the rules of the documentation.
struct Placed {
  PodPtr pod;
  std::string node;
};

struct Naive {
  const Snapshot& s;
  std::vector<Placed> placed;
  std::vector<std::string> clean;  // nodes seen as woken

  const api::Node& node(const std::string& name) const { return *s.nodes.at(name).node; }
  bool is_clean(const std::string& n) const {
    return std::find(clean.begin(), clean.end(), n) != clean.end();
  }

  bool resources(const api::Pod& p, const std::string& n) const {
    const api::Resources& all = node(n).allocatable;
    std::int64_t cpu = p.spec->requests.cpu.count(), memory = p.spec->requests.memory.count();
    std::int64_t count = 1;
    std::map<std::string, std::int64_t> extended = p.spec->requests.extended;
    for (const Placed& o : placed) {
      if (o.node != n) continue;
      cpu += o.pod->spec->requests.cpu.count();
      memory += o.pod->spec->requests.memory.count();
      ++count;
      for (const auto& [name, amount] : o.pod->spec->requests.extended) {
        if (extended.count(name) > 0) extended[name] += amount;
      }
    }
    for (const auto& [name, amount] : extended) {
      const auto have = all.extended.find(name);
      if (amount > (have == all.extended.end() ? 0 : have->second)) return false;
    }
    return (p.spec->requests.cpu.count() == 0 || cpu <= all.cpu.count()) &&
           (p.spec->requests.memory.count() == 0 || memory <= all.memory.count()) &&
           count <= all.pods;
  }

  bool taints(const api::Pod& p, const std::string& n) const {
    for (const api::Taint& t : node(n).taints) {
      if (t.effect == "PreferNoSchedule") continue;
      if (is_clean(n) && t.key != "dedicated") continue;
      if (!api::tolerates(p.spec->tolerations, t)) return false;
    }
    return true;
  }

  bool selector(const api::Pod& p, const std::string& n) const {
    for (const auto& [key, value] : p.spec->node_selector) {
      if (node(n).meta.labels.get(key) != value || !node(n).meta.labels.contains(key)) return false;
    }
    return true;
  }

  bool ports(const api::Pod& p, const std::string& n) const {
    for (const Placed& o : placed) {
      if (o.node != n) continue;
      for (const auto& a : p.spec->host_ports) {
        for (const auto& b : o.pod->spec->host_ports) {
          if (a.port == b.port) return false;
        }
      }
    }
    return true;
  }

  bool volumes(const api::Pod& p, const std::string& n) const {
    for (const std::string& claim : p.spec->claims) {
      const auto at = s.claims.find(p.namespace_name + "/" + claim);
      if (at == s.claims.end() || at->second->volume_name.empty()) return false;
      for (const auto& term : s.volumes.at(at->second->volume_name)->required_node_affinity) {
        for (const auto& r : term.match_expressions) {
          if (!api::matches(r, node(n).meta.labels)) return false;
        }
      }
    }
    return true;
  }

  static bool wanted(const api::PodAffinityTerm& t, const api::Pod& owner, const api::Pod& other) {
    return owner.namespace_name == other.namespace_name &&
           api::matches(t.label_selector, other.spec->labels);
  }
  bool same_domain(const std::string& a, const std::string& b, const std::string& key) const {
    const std::string *x = node(a).meta.labels.find(key), *y = node(b).meta.labels.find(key);
    return x != nullptr && y != nullptr && *x == *y;
  }

  bool affinity(const api::Pod& p, const std::string& n) const {
    for (const Placed& o : placed) {
      for (const auto& t : p.spec->required_pod_anti_affinity) {
        if (wanted(t, p, *o.pod) && same_domain(n, o.node, t.topology_key)) return false;
      }
      for (const auto& t : o.pod->spec->required_pod_anti_affinity) {
        if (wanted(t, *o.pod, p) && same_domain(n, o.node, t.topology_key)) return false;
      }
    }
    for (const auto& t : p.spec->required_pod_affinity) {
      if (!node(n).meta.labels.contains(t.topology_key)) return false;
      const bool there = std::any_of(placed.begin(), placed.end(), [&](const Placed& o) {
        return wanted(t, p, *o.pod) && same_domain(n, o.node, t.topology_key);
      });
      const bool anywhere = std::any_of(placed.begin(), placed.end(), [&](const Placed& o) {
        return wanted(t, p, *o.pod) && node(o.node).meta.labels.contains(t.topology_key);
      });
      if (!there && (anywhere || !wanted(t, p, p))) return false;
    }
    return true;
  }

  bool spread(const api::Pod& p, const std::string& n) const {
    for (const auto& c : p.spec->topology_spread) {
      if (!node(n).meta.labels.contains(c.topology_key)) return false;
      std::map<std::string, std::int64_t> domains;
      for (const auto& [name, view] : s.nodes) {
        const std::string* domain = view.node->meta.labels.find(c.topology_key);
        if (domain == nullptr || !selector(p, name)) continue;
        domains.emplace(*domain, 0);
        for (const Placed& o : placed) {
          if (o.node == name && o.pod->namespace_name == p.namespace_name &&
              !o.pod->deletion_timestamp && api::matches(c.label_selector, o.pod->spec->labels)) {
            ++domains[*domain];
          }
        }
      }
      std::int64_t least = domains.empty() ? 0 : domains.begin()->second;
      for (const auto& [domain, count] : domains) least = std::min(least, count);
      const std::int64_t here = domains[*node(n).meta.labels.find(c.topology_key)];
      if (here + (api::matches(c.label_selector, p.spec->labels) ? 1 : 0) - least > c.max_skew) {
        return false;
      }
    }
    return true;
  }

  bool fits(const api::Pod& p, const std::string& n) const {
    return resources(p, n) && taints(p, n) && selector(p, n) && ports(p, n) && volumes(p, n) &&
           affinity(p, n) && spread(p, n);
  }
  bool awake(const std::string& n) const {
    const NodeView& v = s.nodes.at(n);
    return v.power_state() == api::PowerState::On && v.ready && !v.node->unschedulable;
  }
};

Naive naive_of(const Snapshot& s) {
  Naive naive{s, {}, {}};
  for (const auto& [name, view] : s.nodes) {
    for (const auto& pod : view.pods) {
      if (!pod->terminal()) naive.placed.push_back({pod, name});
    }
  }
  return naive;
}

TEST_CASE("the what-if agrees with the plain rules for every pod and every awake node") {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const Snapshot s = random_world(seed).snapshot();
    const Naive naive = naive_of(s);
    const WhatIf what_if{s, {}};
    for (const auto& pod : s.unbound) {
      for (const auto& [name, view] : s.nodes) {
        const auto unfit = what_if.fits(*pod, name);
        const std::string why = unfit ? unfit->filter + ": " + unfit->message : "fits";
        INFO(pod->key(), " on ", name, " ", why);
        CHECK(!unfit.has_value() == (naive.awake(name) && naive.fits(*pod, name)));
      }
    }
  }
}

TEST_CASE("what-if counts stay right through random placing, removing and rolling back") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const Snapshot s = random_world(seed).snapshot();
    Dice dice{seed * 31 + 5};
    WhatIf what_if{s, {}};
    std::vector<PodPtr> pods = s.unbound;
    for (const auto& [name, view] : s.nodes) {
      for (const auto& pod : view.pods) {
        if (!pod->terminal()) pods.push_back(pod);
      }
    }
    if (pods.empty()) continue;
    Naive naive = naive_of(s);
    std::vector<std::pair<std::size_t, std::vector<Placed>>> marks;
    for (int step = 0; step < 60; ++step) {
      const PodPtr& pod = pods[static_cast<std::size_t>(dice.roll(static_cast<int>(pods.size())))];
      const auto gone = [&](const Placed& p) { return p.pod->uid == pod->uid; };
      switch (dice.roll(5)) {
        case 0:
          marks.emplace_back(what_if.mark(), naive.placed);
          break;
        case 1:
          if (marks.empty()) break;
          what_if.rollback(marks.back().first);
          naive.placed = marks.back().second;
          marks.pop_back();
          break;
        case 2:
          what_if.remove(*pod);
          std::erase_if(naive.placed, gone);
          break;
        default: {
          const auto where = what_if.place(pod);
          std::vector<Placed> before = naive.placed;
          std::erase_if(naive.placed, gone);
          if (where) {
            CHECK(naive.awake(*where));
            CHECK(naive.fits(*pod, *where));
            // A placed pod counts as one that stays.
            auto copy = std::make_shared<api::Pod>(*pod);
            copy->deletion_timestamp.reset();
            naive.placed.push_back({copy, *where});
          } else {
            for (const auto& [name, view] : s.nodes) {
              CHECK_FALSE((naive.awake(name) && naive.fits(*pod, name)));
            }
            naive.placed = before;
          }
        }
      }
    }
    std::map<std::string, std::int64_t> used;
    for (const Placed& p : naive.placed) used[p.node] += p.pod->spec->requests.cpu.count();
    for (const auto& [name, view] : s.nodes) {
      CHECK(what_if.free_cpu(name).count() == view.node->allocatable.cpu.count() - used[name]);
    }
  }
}

void check_off_action(const Action& action, const OnePass& p, Naive& naive,
                      std::vector<std::string>& leaving) {
  const NodeView& view = p.snapshot.nodes.at(action.node);
  const auto& off = std::get<PowerOff>(action.what);
  CHECK_FALSE(view.control_plane);
  CHECK(view.node->meta.annotations.get("kwatt.dev/exclude") != "true");
  CHECK(naive.awake(action.node));
  leaving.push_back(action.node);
  // Exactly the workload pods that do not leave by themselves move, each to where it fits.
  std::vector<PodPtr> expected;
  for (const auto& pod : view.pods) {
    if (pod->workload() && !pod->deletion_timestamp) expected.push_back(pod);
  }
  REQUIRE(off.moves.size() == expected.size());
  for (const auto& pod : expected) {
    CHECK(pod->owner != nullptr);
    CHECK_FALSE(pod->spec->local_storage);
    CHECK(pod->annotations.get("kwatt.dev/do-not-disrupt") != "true");
    const auto move = std::find_if(off.moves.begin(), off.moves.end(),
                                   [&](const api::PodMove& m) { return m.uid == pod->uid; });
    REQUIRE(move != off.moves.end());
    CHECK(std::find(leaving.begin(), leaving.end(), move->node_name) == leaving.end());
    CHECK(naive.awake(move->node_name));
    CHECK(naive.taints(*pod, move->node_name));
    CHECK(naive.selector(*pod, move->node_name));
    CHECK(naive.volumes(*pod, move->node_name));
    std::erase_if(naive.placed, [&](const Placed& placed) { return placed.pod == pod; });
    naive.placed.push_back({pod, move->node_name});
  }
}

// What must hold of the end state, whatever the order of the moves: nobody is overcommitted, no two
// pods share a port or break an anti-affinity.
void check_end_state(const Naive& naive, const Snapshot& s, const std::set<std::string>& moved) {
  for (const Placed& placed : naive.placed) {
    if (moved.count(placed.pod->uid) == 0) continue;
    Naive others = naive;
    std::erase_if(others.placed, [&](const Placed& o) { return o.pod == placed.pod; });
    INFO(placed.pod->key(), " on ", placed.node);
    CHECK(others.resources(*placed.pod, placed.node));
    CHECK(others.ports(*placed.pod, placed.node));
    for (const Placed& o : others.placed) {
      for (const auto& t : placed.pod->spec->required_pod_anti_affinity) {
        CHECK_FALSE((Naive::wanted(t, *placed.pod, *o.pod) &&
                     naive.same_domain(placed.node, o.node, t.topology_key)));
      }
    }
    CHECK(s.nodes.count(placed.node) == 1);
  }
}

TEST_CASE("every pod that a lever moves fits where it goes, and protected nodes are left alone") {
  std::size_t emptied = 0, switched_off = 0;
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    OnePass p{random_world(seed).snapshot(), random_policy(seed)};
    Naive naive = naive_of(p.snapshot);
    std::map<NodeName, api::NodeMemory> memory;
    std::vector<std::string> leaving;
    std::set<std::string> moved;
    for (const Proposal& proposal : {power_off(p.pass, memory), migrate(p.pass)}) {
      for (const Action& action : proposal.actions) {
        check_off_action(action, p, naive, leaving);
        const auto& moves = std::get<PowerOff>(action.what).moves;
        for (const api::PodMove& move : moves) moved.insert(move.uid);
        ++(moves.empty() ? switched_off : emptied);
      }
      for (const auto& [name, verdict] : proposal.refusals) CHECK_FALSE(verdict.message.empty());
    }
    for (const Placed& placed : naive.placed) {
      if (moved.count(placed.pod->uid) == 0) continue;
      CHECK(std::find(leaving.begin(), leaving.end(), placed.node) == leaving.end());
    }
    check_end_state(naive, p.snapshot, moved);
    std::int64_t awake = 0, before = 0;
    for (const auto& [name, view] : p.snapshot.nodes) {
      if (!naive.awake(name)) continue;
      ++before;
      if (std::find(leaving.begin(), leaving.end(), name) == leaving.end()) ++awake;
    }
    CHECK(awake >= std::min(before, p.spec.power_off.min_awake));
  }
  CHECK(emptied > 40);  // the worlds are not all trivial
  CHECK(switched_off > 40);
}

TEST_CASE("every node that power-on wakes for pods takes at least one of them") {
  std::size_t woken = 0;
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    OnePass p{random_world(seed).snapshot(), random_policy(seed)};
    Naive naive = naive_of(p.snapshot);
    api::PolicyMemory next;
    std::vector<std::string> pending;
    const Proposal proposal = power_on(p.pass, {}, next, pending);
    for (const Action& action : proposal.actions) {
      const NodeView& view = p.snapshot.nodes.at(action.node);
      CHECK(view.power_state() == api::PowerState::Off);
      CHECK(view.node->meta.annotations.get("kwatt.dev/exclude") != "true");
      if (action.reason != Reason::PendingPods) continue;
      ++woken;
      naive.clean = {action.node};
      const bool useful =
          std::any_of(p.snapshot.unbound.begin(), p.snapshot.unbound.end(), [&](const auto& pod) {
            return naive.resources(*pod, action.node) && naive.taints(*pod, action.node) &&
                   naive.selector(*pod, action.node) && naive.volumes(*pod, action.node);
          });
      CHECK(useful);
    }
  }
  CHECK(woken > 20);
}

}  // namespace
}  // namespace kwatt::planner
