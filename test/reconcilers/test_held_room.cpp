#include <doctest/doctest.h>

#include "reconcilers/held_room.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

std::shared_ptr<const api::Pod> pod(const std::string& uid, const std::string& node,
                                    TimePoint created = kStart - minutes{9},
                                    const std::string& owner = "rs") {
  auto p = std::make_shared<api::Pod>();
  p->namespace_name = "shop";
  p->name = "web-" + uid;
  p->uid = uid;
  p->node_name = node;
  p->creation_timestamp = created;
  auto spec = std::make_shared<api::PodTemplate>();
  spec->requests.cpu = Millicores{500};
  p->spec = spec;
  if (!owner.empty()) {
    p->owner =
        std::make_shared<api::OwnerReference>(api::OwnerReference{"ReplicaSet", "web", owner});
  }
  return p;
}

api::Operation drain(const std::string& uid, const std::string& to) {
  api::Operation operation;
  operation.id = "op";
  operation.kind = api::OperationKind::PowerOff;
  api::PodMove move;
  move.namespace_name = "shop";
  move.pod_name = "web-" + uid;
  move.uid = uid;
  move.node_name = to;
  operation.moves.push_back(move);
  return operation;
}

struct Room {
  std::vector<std::string> changed;
  HeldRoom held{[this](const std::string& node) { changed.push_back(node); }};
};

}  // namespace

TEST_CASE("held room: from the plan until the replacement is bound") {
  Room room;
  const auto leaving = pod("u1", "from");
  room.held.operation("from", drain("u1", "to"), {leaving}, kStart);
  REQUIRE(room.held.on("to").size() == 1);
  CHECK(room.held.on("to").front().owner_uid == "rs");
  CHECK(room.held.on("to").front().need.cpu == Millicores{500});
  CHECK(room.changed == std::vector<std::string>{"to"});
  // Evicted, gone, and the operation has ended: the replacement is not there yet.
  room.held.gone(*leaving, kStart + seconds{2});
  room.held.operation("from", {}, {}, kStart + seconds{3});
  CHECK(room.held.on("to").size() == 1);
  room.held.bound(*pod("u2", "to", kStart + seconds{1}));
  CHECK(room.held.on("to").empty());
}

TEST_CASE("held room: a replacement that came elsewhere gives the room back, too") {
  Room room;
  room.held.operation("from", drain("u1", "to"), {pod("u1", "from")}, kStart);
  room.held.bound(*pod("old", "x", kStart - minutes{1}));  // a replica from before
  CHECK(room.held.on("to").size() == 1);
  room.held.bound(*pod("u2", "elsewhere", kStart + seconds{1}));
  CHECK(room.held.on("to").empty());
}

TEST_CASE("held room: called off, nobody comes, a bare pod") {
  Room room;
  const auto leaving = pod("u1", "from");
  room.held.operation("from", drain("u1", "to"), {leaving}, kStart);
  room.held.operation("from", {}, {leaving}, kStart + seconds{1});
  CHECK(room.held.on("to").empty());

  room.held.operation("from", drain("u1", "to"), {leaving}, kStart);
  room.held.gone(*leaving, kStart);
  room.held.expire(kStart + HeldRoom::kPatience - seconds{1});
  CHECK(room.held.on("to").size() == 1);
  room.held.expire(kStart + HeldRoom::kPatience);
  CHECK(room.held.on("to").empty());

  const auto bare = pod("u3", "from", kStart, "");
  room.held.operation("from", drain("u3", "to"), {bare}, kStart);
  CHECK(room.held.on("to").size() == 1);
  room.held.gone(*bare, kStart);
  CHECK(room.held.on("to").empty());
}
