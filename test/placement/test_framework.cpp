#include <doctest/doctest.h>

#include "placement/node_info.hpp"

using namespace kwatt;
using namespace kwatt::placement;

namespace {

// Targets and requests of a few letters: the framework must not know what they are.
struct Spot {
  std::string name;
  std::int64_t value = 0;
};
std::string_view name_of(const Spot& spot) {
  return spot.name;
}
struct Wish {
  std::int64_t least = 0;
};
using SpotPlugin = Plugin<Wish, Spot>;
using SpotFramework = Framework<Wish, Spot>;

// A plugin whose answers are set by the test.
class Scripted : public SpotPlugin {
 public:
  explicit Scripted(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  bool filters() const override { return filter_with != nullptr; }
  bool narrows() const override { return narrow_with != nullptr; }
  bool scores() const override { return score_with != nullptr; }
  Status pre_filter(const Wish&, Targets<Spot>, std::unique_ptr<CycleState>&) const override {
    return before_filter;
  }
  Status filter(const Wish& wish, const Spot& spot, const CycleState*) const override {
    return filter_with(wish, spot);
  }
  Status narrow(const Wish&, Targets<Spot> passed, const CycleState*,
                std::span<Status> refused) const override {
    narrow_with(passed, refused);
    return {};
  }
  Status pre_score(const Wish&, Targets<Spot>, std::unique_ptr<CycleState>&) const override {
    return before_score;
  }
  Status score(const Wish&, const Spot& spot, const CycleState*, std::int64_t& out) const override {
    return score_with(spot, out);
  }
  Status normalize(const Wish&, ScoreRange range, std::span<std::int64_t> scores) const override {
    if (min_max) normalize_min_max(range, scores, lower_is_better);
    return {};
  }

  Status before_filter, before_score;
  std::function<Status(const Wish&, const Spot&)> filter_with;
  std::function<void(Targets<Spot>, std::span<Status>)> narrow_with;
  std::function<Status(const Spot&, std::int64_t&)> score_with;
  bool min_max = false, lower_is_better = false;

 private:
  std::string name_;
};

std::shared_ptr<Scripted> at_least(std::string name = "AtLeast") {
  auto plugin = std::make_shared<Scripted>(std::move(name));
  plugin->filter_with = [](const Wish& wish, const Spot& spot) {
    return spot.value >= wish.least ? Status{} : Status::unschedulable("too small");
  };
  return plugin;
}

std::shared_ptr<Scripted> scores_value(std::string name = "Value") {
  auto plugin = std::make_shared<Scripted>(std::move(name));
  plugin->score_with = [](const Spot& spot, std::int64_t& out) {
    out = spot.value;
    return Status{};
  };
  return plugin;
}

SpotFramework framework(std::vector<SpotFramework::Enabled> profile, ScoreRange range = {}) {
  auto made = SpotFramework::create(std::move(profile), range);
  REQUIRE(made.has_value());
  return *made;
}

std::vector<const Spot*> pointers(const std::vector<Spot>& spots) {
  std::vector<const Spot*> all;
  for (const Spot& spot : spots) all.push_back(&spot);
  return all;
}

}  // namespace

TEST_CASE("a profile that cannot work is refused with the plugin's name") {
  struct Case {
    const char* name;
    std::vector<SpotFramework::Enabled> profile;
    ScoreRange range;
    const char* message;
  };
  const Case cases[] = {
      {"no plugin", {{nullptr, 1}}, {}, "a profile names a plugin that does not exist"},
      {"twice", {{at_least(), 1}, {at_least(), 1}}, {}, "plugin AtLeast is in the profile twice"},
      {"no weight",
       {{scores_value(), 0}},
       {},
       "plugin Value has weight 0: it must be above 0, or leave the plugin out"},
      {"empty range", {{scores_value(), 1}}, {5, 4}, "no score is between 5 and 4"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const auto made = SpotFramework::create(c.profile, c.range);
    REQUIRE(made.has_error());
    CHECK(made.error().code == ErrorCode::invalid_argument);
    CHECK(made.error().message == c.message);
  }
  CHECK(SpotFramework::create({{at_least(), 0}}).has_value());  // a filter has no weight
}

TEST_CASE("a target is excluded by the first plugin of the profile that refuses it") {
  auto odd = std::make_shared<Scripted>("Even");
  odd->filter_with = [](const Wish&, const Spot& spot) {
    return spot.value % 2 == 0 ? Status{} : Status::unresolvable("odd");
  };
  const std::vector<Spot> spots = {{"a", 1}, {"b", 4}, {"c", 7}, {"d", 2}};
  const auto f = framework({{at_least(), 1}, {odd, 1}});
  const auto filtered = f.filter(Wish{3}, pointers(spots));
  REQUIRE(filtered.has_value());
  CHECK(filtered->feasible == std::vector<std::size_t>{1});
  REQUIRE(filtered->excluded.size() == 3);
  CHECK(filtered->excluded[0].target == 0);
  CHECK(filtered->excluded[0].plugin == "AtLeast");
  CHECK(filtered->excluded[0].code == Code::unschedulable);
  CHECK(filtered->excluded[0].reason == "too small");
  CHECK(filtered->excluded[1].target == 2);
  CHECK(filtered->excluded[1].plugin == "Even");
  CHECK(filtered->excluded[1].code == Code::unresolvable);
  CHECK(filtered->excluded[2].target == 3);
  CHECK(filtered->excluded[2].plugin == "AtLeast");
}

TEST_CASE("PreFilter: skip disables the filter, a refusal excludes all, an error fails the call") {
  const std::vector<Spot> spots = {{"a", 1}, {"b", 4}};
  const auto run = [&](Status before) {
    auto plugin = at_least();
    plugin->before_filter = std::move(before);
    return framework({{plugin, 1}}).filter(Wish{3}, pointers(spots));
  };
  CHECK(run({})->feasible == std::vector<std::size_t>{1});
  CHECK(run(Status::skip())->feasible == std::vector<std::size_t>{0, 1});
  const auto refused = run(Status::unresolvable("gated"));
  CHECK(refused->feasible.empty());
  REQUIRE(refused->excluded.size() == 2);
  CHECK(refused->excluded[1].reason == "gated");
  const auto failed = run(Status::error("no state"));
  REQUIRE(failed.has_error());
  CHECK(failed.error().message == "plugin AtLeast: PreFilter answered Error: no state");
}

TEST_CASE("a filter that fails, or answers what it may not, is named with its target") {
  const std::vector<Spot> spots = {{"a", 1}};
  for (const Status& answer : {Status::error("broken"), Status::skip("broken")}) {
    auto plugin = std::make_shared<Scripted>("Broken");
    plugin->filter_with = [&](const Wish&, const Spot&) { return answer; };
    const auto f = framework({{plugin, 1}});
    const auto filtered = f.filter(Wish{}, pointers(spots));
    REQUIRE(filtered.has_error());
    CHECK(filtered.error().code == ErrorCode::internal);
    CHECK(filtered.error().message == std::string("plugin Broken: Filter of a answered ") +
                                          std::string(to_string(answer.code)) + ": broken");
  }
}

TEST_CASE("Narrow sees what passed every filter, and must leave one") {
  auto smallest = std::make_shared<Scripted>("Smallest");
  smallest->filter_with = [](const Wish&, const Spot&) { return Status{}; };
  smallest->narrow_with = [](Targets<Spot> passed, std::span<Status> refused) {
    std::int64_t least = passed.front()->value;
    for (const Spot* spot : passed) least = std::min(least, spot->value);
    for (std::size_t i = 0; i < passed.size(); ++i) {
      if (passed[i]->value > least) refused[i] = Status::unschedulable("a smaller one fits");
    }
  };
  const std::vector<Spot> spots = {{"a", 1}, {"b", 9}, {"c", 4}, {"d", 4}};
  // Narrow comes after the filters that stand behind it in the profile, too.
  const auto filtered =
      framework({{smallest, 1}, {at_least(), 1}}).filter(Wish{3}, pointers(spots));
  REQUIRE(filtered.has_value());
  CHECK(filtered->feasible == std::vector<std::size_t>{2, 3});
  REQUIRE(filtered->excluded.size() == 2);
  CHECK(filtered->excluded[0].plugin == "AtLeast");
  CHECK(filtered->excluded[1].plugin == "Smallest");
  CHECK(filtered->excluded[1].reason == "a smaller one fits");

  smallest->narrow_with = [](Targets<Spot>, std::span<Status> refused) {
    for (Status& status : refused) status = Status::unschedulable("none");
  };
  const auto none = framework({{smallest, 1}}).filter(Wish{}, pointers(spots));
  REQUIRE(none.has_error());
  CHECK(none.error().message == "plugin Smallest: Narrow refused every target, it must leave one");
  const auto alone = framework({{smallest, 1}, {at_least(), 1}}).filter(Wish{9}, pointers(spots));
  REQUIRE(alone.has_value());  // one target is not narrowed
  CHECK(alone->feasible == std::vector<std::size_t>{1});
}

TEST_CASE("raw, normalized and weighted scores are kept by plugin, and totals are their sum") {
  auto cheap = scores_value("Cheap");
  cheap->min_max = cheap->lower_is_better = true;
  auto big = scores_value("Big");
  big->min_max = true;
  const std::vector<Spot> spots = {{"a", 10}, {"b", 20}, {"c", 50}};
  const auto scores = framework({{cheap, 3}, {big, 2}}).score(Wish{}, pointers(spots));
  REQUIRE(scores.has_value());
  REQUIRE(scores->plugins.size() == 2);
  CHECK(scores->plugins[0].plugin == "Cheap");
  CHECK(scores->plugins[0].weight == 3);
  CHECK(scores->plugins[0].raw == std::vector<std::int64_t>{10, 20, 50});
  CHECK(scores->plugins[0].normalized == std::vector<std::int64_t>{100, 75, 0});
  CHECK(scores->plugins[0].weighted == std::vector<std::int64_t>{300, 225, 0});
  CHECK(scores->plugins[1].normalized == std::vector<std::int64_t>{0, 25, 100});
  CHECK(scores->totals == std::vector<std::int64_t>{300, 275, 200});
}

TEST_CASE("PreScore: skip leaves the plugin out of the totals and keeps its note") {
  auto skipped = scores_value("Skipped");
  skipped->before_score = Status::skip("all alike");
  const std::vector<Spot> spots = {{"a", 10}, {"b", 20}};
  const auto scores = framework({{skipped, 7}, {scores_value(), 1}}).score(Wish{}, pointers(spots));
  REQUIRE(scores.has_value());
  REQUIRE(scores->plugins.size() == 2);
  CHECK(scores->plugins[0].skipped);
  CHECK(scores->plugins[0].note == "all alike");
  CHECK(scores->plugins[0].weighted.empty());
  CHECK(scores->totals == std::vector<std::int64_t>{10, 20});
}

TEST_CASE("a score outside the range is an error that names plugin and target, never clamped") {
  struct Case {
    std::int64_t value;
    ScoreRange range;
    const char* message;  // nullptr: accepted
  };
  const Case cases[] = {
      {100, {}, nullptr},
      {0, {}, nullptr},
      {101, {}, "plugin Value: the score of x is 101, it must be between 0 and 100"},
      {-1, {}, "plugin Value: the score of x is -1, it must be between 0 and 100"},
      {-5000, ScoreRange::any(), nullptr},
      {11, {0, 10}, "plugin Value: the score of x is 11, it must be between 0 and 10"},
  };
  for (const Case& c : cases) {
    INFO(c.value);
    const std::vector<Spot> spots = {{"w", 1}, {"x", c.value}};
    const auto scores = framework({{scores_value(), 2}}, c.range).score(Wish{}, pointers(spots));
    CHECK(scores.has_error() == (c.message != nullptr));
    if (scores.has_error()) CHECK(scores.error().message == c.message);
  }
}

TEST_CASE("totals beyond 64 bits are an error, not a wrapped number") {
  const std::vector<Spot> spots = {{"x", std::numeric_limits<std::int64_t>::max() / 2}};
  const auto f = framework({{scores_value(), 3}}, ScoreRange::any());
  const auto scores = f.score(Wish{}, pointers(spots));
  REQUIRE(scores.has_error());
  CHECK(scores.error().message.starts_with("plugin Value: the score "));
}

TEST_CASE("the highest total is chosen; ties by the caller's rule, then by name") {
  const std::vector<Spot> spots = {{"d", 220}, {"b", 220}, {"a", 110}};
  const auto f = framework({{scores_value(), 1}}, ScoreRange::any());
  CHECK(f.choose(Wish{}, pointers(spots))->best == 1);
  const auto prefers_d = [](const Spot& x, const Spot& y) {
    return x.name == "d" && y.name != "d";
  };
  CHECK(f.choose(Wish{}, pointers(spots), prefers_d)->best == 0);
  CHECK_FALSE(f.choose(Wish{}, {})->best.has_value());

  const auto with_filter = framework({{at_least(), 1}, {scores_value(), 1}}, ScoreRange::any());
  const auto nowhere = with_filter.choose(Wish{1000}, pointers(spots));
  REQUIRE(nowhere.has_value());
  CHECK_FALSE(nowhere->best.has_value());
  CHECK(nowhere->filtered.excluded.size() == 3);
}

TEST_CASE("min-max: ends of the range, equal scores, and spans beyond 64 bits") {
  struct Case {
    std::vector<std::int64_t> in, higher, lower;
  };
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const Case cases[] = {
      {{}, {}, {}},
      {{7}, {100}, {100}},
      {{3, 3, 3}, {100, 100, 100}, {100, 100, 100}},
      {{0, 50, 200}, {0, 25, 100}, {100, 75, 0}},
      {{kMin, 0, kMax}, {0, 50, 100}, {100, 49, 0}},
  };
  for (const Case& c : cases) {
    std::vector<std::int64_t> higher = c.in, lower = c.in;
    normalize_min_max({}, higher, false);
    normalize_min_max({}, lower, true);
    CHECK(higher == c.higher);
    CHECK(lower == c.lower);
  }
}
