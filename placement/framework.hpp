#pragma once
// The plugin framework: which targets may take a request, and which of them is best, after
// kube-scheduler's pkg/scheduler/framework and with its contract. The same code serves pods on
// nodes and requests at sites.
//
//   filter:  pre_filter of every filtering plugin, filter for every target, then narrow.
//   score:   pre_score of every scoring plugin, score for every feasible target, normalize,
//            range check, times weight, sum.
//
// The extender is asked for the two apart, so neither needs the other's state. What is kept, raw,
// normalized and weighted by plugin, is what explain.hpp shows to people.
//
// `Target` needs a free function `std::string_view name_of(const Target&)` in its own namespace.
// Pure and deterministic: no clock, no randomness. A framework never changes after create(),
// plugins are const: any number of threads may use one.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace kwatt::placement {

enum class Code {
  success,
  skip,           // pre_filter, pre_score only: this plugin has nothing to say about this request
  unschedulable,  // not now; may change when others leave (kube-scheduler may preempt for it)
  unresolvable,   // not this target, whoever leaves it
  error,          // the plugin failed: the whole call fails
};
std::string_view to_string(Code code);  // "Success" "Skip" "Unschedulable" …

// `reason` is a sentence without a final period, built only when the code is not success.
struct Status {
  Code code = Code::success;
  std::string reason;
  bool ok() const { return code == Code::success; }

  static Status skip(std::string why = {}) { return {Code::skip, std::move(why)}; }
  static Status unschedulable(std::string why) { return {Code::unschedulable, std::move(why)}; }
  static Status unresolvable(std::string why) { return {Code::unresolvable, std::move(why)}; }
  static Status error(std::string why) { return {Code::error, std::move(why)}; }
};

// Between which values every score must be after normalize(), both ends included.
struct ScoreRange {
  std::int64_t least = 0, most = 100;
  static constexpr ScoreRange any() {
    return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
  bool operator==(const ScoreRange&) const = default;
};

// What a plugin computed once for this request; each plugin sees only its own.
struct CycleState {
  virtual ~CycleState() = default;
};

template <class Target>
using Targets = std::span<const Target* const>;

// One opinion. Filtering and scoring are separate; a plugin declares which of the two it does.
template <class Request, class Target>
class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;  // unique in a registry, a static string
  virtual bool filters() const { return false; }
  virtual bool scores() const { return false; }

  // Called once before filter(). Skip: filter() and narrow() are not called for this request.
  // Unschedulable or unresolvable: no target is feasible, for this reason.
  virtual Status pre_filter(const Request&, Targets<Target>, std::unique_ptr<CycleState>&) const {
    return {};
  }
  // May the target take the request? Skip is not an answer here.
  virtual Status filter(const Request&, const Target&, const CycleState*) const { return {}; }
  // Called once with the targets that passed all filters of all plugins, at least two: may refuse
  // some because of the others ("only if nothing else fits"). refused[i] belongs to passed[i]. It
  // must leave at least one.
  virtual Status narrow(const Request&, Targets<Target> passed, const CycleState*,
                        std::span<Status> refused) const {
    static_cast<void>(passed), static_cast<void>(refused);
    return {};
  }
  virtual bool narrows() const { return false; }

  // Called once before score(). Skip: no score of this plugin for this request.
  virtual Status pre_score(const Request&, Targets<Target> feasible,
                           std::unique_ptr<CycleState>&) const {
    static_cast<void>(feasible);
    return {};
  }
  // In the plugin's own unit; success or error.
  virtual Status score(const Request&, const Target&, const CycleState*, std::int64_t& out) const {
    out = 0;
    return {};
  }
  // Brings this plugin's scores into `range`, higher being better. The default changes nothing.
  virtual Status normalize(const Request&, ScoreRange range, std::span<std::int64_t> scores) const {
    static_cast<void>(range), static_cast<void>(scores);
    return {};
  }
};

// Linear from the least to the greatest score onto the range; all equal: all `most`.
// `lower_is_better` turns it around.
void normalize_min_max(ScoreRange range, std::span<std::int64_t> scores, bool lower_is_better);

// A target that may not take the request, and the first plugin in the profile's order that says so.
struct Excluded {
  std::size_t target = 0;   // position in the targets asked about
  std::string_view plugin;  // lives as long as the framework
  Code code = Code::unschedulable;
  std::string reason;
};

struct Filtered {
  std::vector<std::size_t> feasible;  // positions in the targets asked about, ascending
  std::vector<Excluded> excluded;     // ascending by target
};

// One plugin's part in a choice. The vectors belong to the feasible targets in the order given.
struct PluginScores {
  std::string_view plugin;
  std::int64_t weight = 1;
  bool skipped = false;  // then the vectors are empty, and `note` may say why
  std::string note;
  std::vector<std::int64_t> raw, normalized, weighted;
};

struct Scores {
  std::vector<PluginScores> plugins;  // the scoring ones in the profile's order
  std::vector<std::int64_t> totals;   // by feasible target
};

// Filter, score and the best of it. Positions are those of the targets asked about, but `scores`
// follows `filtered.feasible`.
struct Choice {
  std::optional<std::size_t> best;
  Filtered filtered;
  Scores scores;  // empty when nothing is feasible
};

template <class Request, class Target>
class Framework {
 public:
  using PluginType = Plugin<Request, Target>;
  struct Enabled {
    std::shared_ptr<const PluginType> plugin;  // never null
    std::int64_t weight = 1;                   // > 0; without meaning for one that only filters
  };
  // True: a comes before b. Asked only about targets with equal totals.
  using TieBreaker = std::function<bool(const Target& a, const Target& b)>;

  // Filters and scores run in the order of `profile`. Errors: invalid_argument for a null plugin, a
  // name that is there twice, a scoring plugin whose weight is not above 0, an empty range.
  static Result<Framework> create(std::vector<Enabled> profile, ScoreRange range = {});

  // Errors: internal, naming plugin and target, when a plugin fails or breaks its contract.
  Result<Filtered> filter(const Request& request, Targets<Target> targets) const;
  // The same, and in addition: a normalized score outside the range, a sum beyond 64 bits.
  Result<Scores> score(const Request& request, Targets<Target> feasible) const;
  Result<Choice> choose(const Request& request, Targets<Target> targets,
                        const TieBreaker& tie_breaker = nullptr) const;

  // The position with the highest total; ties by `tie_breaker` if there is one, then by name.
  // nullopt: there are no targets.
  static std::optional<std::size_t> best(Targets<Target> feasible, const Scores& scores,
                                         const TieBreaker& tie_breaker = nullptr);

  const std::vector<Enabled>& profile() const { return profile_; }
  ScoreRange range() const { return range_; }

 private:
  Framework(std::vector<Enabled> profile, ScoreRange range)
      : profile_(std::move(profile)), range_(range) {}

  std::vector<Enabled> profile_;
  ScoreRange range_;
};

}  // namespace kwatt::placement

#include "placement/framework_impl.hpp"
