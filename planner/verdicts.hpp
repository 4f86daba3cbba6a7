#pragma once
// Several levers refuse the same node for different reasons; one is shown: the most telling.
#include <map>
#include <optional>

#include "planner/plan.hpp"

namespace kwatt::planner {

enum class Lever { power_on, capping, power_off, migrate, dvfs };

// Later ones beat earlier ones; among equals the first one heard stays.
enum class Weight {
  off,          // the lever is off
  quiet,        // nothing is wrong, and it is not about power
  usual,        // in use, waiting, fast enough
  exceptional,  // somebody should look: stale data, out of range, held by hand
  decisive,     // the node would have been acted on but for this
  fixed         // no lever may look at it at all
};
Weight weight_of(Lever lever, Reason reason);

class Verdicts {
 public:
  void add(const NodeName& name, Verdict verdict, Weight weight);
  void drop(const NodeName& name) { chosen_.erase(name); }
  bool fixed(const NodeName& name) const;
  std::optional<Verdict> take(const NodeName& name);

 private:
  struct Entry {
    Verdict verdict;
    Weight weight = Weight::off;
  };
  std::map<NodeName, Entry> chosen_;
};

// What holds whatever the levers think: excluded by people, or an operation is under way.
std::optional<Verdict> fixed_verdict(const NodeView& node);
// Of a machine that cannot be switched: no address, or one that may not be used.
Verdict no_driver(const NodeView& node);
// For a node that no lever has spoken of.
Verdict default_verdict(const api::EnergyPolicySpec& spec, const NodeView* node);

}  // namespace kwatt::planner
