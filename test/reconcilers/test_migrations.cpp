#include <doctest/doctest.h>

#include "reconcilers/migrations.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;
using std::chrono::seconds;

namespace {
const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

api::Pod pod(const std::string& name, const std::string& uid, const std::string& owner,
             const std::string& node, TimePoint created) {
  api::Pod p;
  p.namespace_name = "default";
  p.name = name;
  p.uid = uid;
  p.owner = std::make_shared<api::OwnerReference>(api::OwnerReference{"ReplicaSet", "web", owner});
  p.node_name = node;
  p.creation_timestamp = created;
  return p;
}

Migrations with_one_eviction() {
  Migrations migrations;
  api::PodMove move{.namespace_name = "default",
                    .pod_name = "web-1",
                    .uid = "u1",
                    .node_name = "planned",
                    .phase = "",
                    .next_attempt = {}};
  migrations.evicting("p", "n1", {move}, "LowUtilization", kStart, {{"u1", "rs"}});
  return migrations;
}
}  // namespace

TEST_CASE("migrations: an eviction goes from Evicting over Evicted to Bound") {
  Migrations migrations = with_one_eviction();
  auto list = migrations.list("p", {}, 100);
  REQUIRE(list.size() == 1);
  CHECK(list[0].phase == "Evicting");
  CHECK(list[0].from_node == "n1");
  CHECK(list[0].node_name == "planned");

  migrations.gone(pod("web-1", "u1", "rs", "n1", kStart - seconds{60}));
  CHECK(migrations.list("p", {}, 100)[0].phase == "Evicted");

  migrations.bound(pod("web-2", "u2", "rs", "n7", kStart + seconds{1}));
  list = migrations.list("p", {}, 100);
  CHECK(list[0].phase == "Bound");
  CHECK(list[0].bound_node == "n7");
}

TEST_CASE("migrations: only a younger pod of the same owner is the replacement") {
  struct Case {
    const char* name;
    api::Pod pod;
  };
  const Case cases[] = {
      {"another owner", pod("db-1", "u2", "other", "n7", kStart + seconds{1})},
      {"an older sibling", pod("web-0", "u0", "rs", "n7", kStart - seconds{60})},
      {"the pod itself", pod("web-1", "u1", "rs", "n1", kStart - seconds{60})},
      {"not bound yet", pod("web-2", "u2", "rs", "", kStart + seconds{1})},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Migrations migrations = with_one_eviction();
    migrations.bound(c.pod);
    CHECK(migrations.list("p", {}, 100)[0].bound_node.empty());
  }
}

TEST_CASE("migrations: one replacement belongs to one eviction") {
  Migrations migrations = with_one_eviction();
  api::PodMove second{.namespace_name = "default",
                      .pod_name = "web-9",
                      .uid = "u9",
                      .node_name = "",
                      .phase = "",
                      .next_attempt = {}};
  migrations.evicting("p", "n1", {second}, "LowUtilization", kStart, {{"u9", "rs"}});
  migrations.bound(pod("web-2", "u2", "rs", "n7", kStart + seconds{1}));
  migrations.bound(pod("web-2", "u2", "rs", "n7", kStart + seconds{1}));
  const auto list = migrations.list("p", {}, 100);
  REQUIRE(list.size() == 2);
  CHECK(list[1].bound_node == "n7");
  CHECK(list[0].bound_node.empty());
}

TEST_CASE("migrations: what stood in the status before a restart stays behind the new ones") {
  const Migrations migrations = with_one_eviction();
  api::MigrationStatus old;
  old.namespace_name = "default";
  old.pod_name = "old-1";
  api::MigrationStatus same;
  same.namespace_name = "default";
  same.pod_name = "web-1";
  const auto list = migrations.list("p", {same, old}, 100);
  REQUIRE(list.size() == 2);
  CHECK(list[0].pod_name == "web-1");
  CHECK(list[0].phase == "Evicting");
  CHECK(list[1].pod_name == "old-1");
  CHECK(migrations.list("p", {same, old}, 1).size() == 1);
  CHECK(migrations.list("other", {}, 100).empty());
}
