// The handler with a table by hand: advice, no opinion, and what is no request.
#include <doctest/doctest.h>

#include "placement/registry.hpp"
#include "servers/extender.hpp"
#include "servers/extender_advice.hpp"
#include "test/support/run_task.hpp"

using namespace kwatt;
using namespace kwatt::servers;

namespace {

const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");
const std::string kPod =
    R"({"metadata":{"name":"web-1","namespace":"shop","uid":"u-1","ownerReferences":[{"kind":)"
    R"("ReplicaSet","name":"web","uid":"rs","controller":true}]},"spec":{"containers":[)"
    R"({"name":"main","resources":{"requests":{"cpu":"1"}}}]}})";

std::shared_ptr<placement::NodeInfo> node(const std::string& name, std::int64_t max_watts) {
  auto object = std::make_shared<api::Node>();
  object->meta.name = name;
  object->allocatable.cpu = Millicores{4000};
  object->allocatable.pods = 110;
  auto info = std::make_shared<placement::NodeInfo>();
  info->name = name;
  info->node = object;
  info->face = placement::face_of(*object);
  info->allocatable = object->allocatable;
  api::PowerModelSpec model;
  model.idle_milliwatts = 50'000;
  model.max_milliwatts = max_watts * 1000;
  info->model = models::model_of(model, object->allocatable.cpu);
  return info;
}

struct Fixture {
  net::Response post(const std::string& path, const std::string& body) {
    auto handler = extender_handler({.table = [this] { return table; },
                                     .framework = framework,
                                     .metrics = metrics,
                                     .clock = clock,
                                     .bind = bind});
    return test::run_task(io, handler(net::Request{"POST", path, {}, body}));
  }
  std::string ask(const std::string& verb, const std::string& names) {
    const auto response =
        post("/scheduler/" + verb, R"({"Pod":)" + kPod + R"(,"NodeNames":[)" + names + "]}");
    CHECK(response.status == 200);
    return response.body;
  }
  void know(std::vector<placement::NodeTable::Pointer> nodes) {
    table = std::make_shared<const placement::NodeTable>(std::move(nodes));
  }

  boost::asio::io_context io;
  Metrics metrics;
  ManualClock clock{kStart};
  std::shared_ptr<const placement::NodeTable> table;
  std::shared_ptr<const placement::NodeFramework> framework =
      std::make_shared<const placement::NodeFramework>(
          *placement::node_framework(placement::default_profile()));
  std::function<net::Task<Result<void>>(BindingArgs)> bind;
};

}  // namespace

TEST_CASE("extender: not ready is no opinion, and is counted") {
  Fixture f;
  CHECK(f.ask("filter", R"("a","b")").find(R"("NodeNames":["a","b"])") != std::string::npos);
  CHECK(f.ask("prioritize", R"("a")") == R"([{"Host":"a","Score":0}])");
  const std::string text = f.metrics.render();
  CHECK(text.find(R"(kwatt_extender_no_opinion_total{reason="not_ready",verb="filter"} 1)") !=
        std::string::npos);
}

TEST_CASE("extender: the least increase has 10, unknown nodes pass with 0") {
  Fixture f;
  f.know({node("flat", 100), node("steep", 400)});
  CHECK(f.ask("filter", R"("steep","flat","new")").find(R"(["steep","flat","new"])") !=
        std::string::npos);
  CHECK(f.ask("prioritize", R"("steep","flat","new")") ==
        R"([{"Host":"steep","Score":1},{"Host":"flat","Score":10},{"Host":"new","Score":0}])");
}

TEST_CASE("extender: a slow node is left out while another fits, and taken when none does") {
  Fixture f;
  const auto slow = node("slow", 60), other = node("other", 400), full = node("full", 400);
  slow->slow = true;
  full->requested.cpu = Millicores{3500};
  f.know({slow, other, full});
  const std::string answer = f.ask("filter", R"("slow","other")");
  CHECK(answer.find(R"("NodeNames":["other"])") != std::string::npos);
  CHECK(answer.find(R"("FailedNodes":{"slow":"the node runs at a low frequency)") !=
        std::string::npos);
  CHECK(f.ask("filter", R"("slow","full")").find(R"("NodeNames":["slow"])") != std::string::npos);
  // Judged among the nodes received; and whoever does not filter is told by the scores.
  CHECK(f.ask("filter", R"("slow")").find(R"("NodeNames":["slow"])") != std::string::npos);
  CHECK(f.ask("prioritize", R"("slow","other")") ==
        R"([{"Host":"slow","Score":0},{"Host":"other","Score":10}])");
}

TEST_CASE("extender: a reserved destination outranks frequency, cap, pool and energy") {
  for (const char* state : {"slow", "capped", "pool"}) {
    CAPTURE(state);
    Fixture f;
    const auto kept = node("kept", 400), cheap = node("cheap", 60);
    kept->slow = state == std::string("slow");
    kept->capped = state == std::string("capped");
    kept->idle_pool = state == std::string("pool");
    placement::Reservation room;
    room.namespace_name = "shop";
    room.owner_uid = "rs";
    room.need.cpu = Millicores{1000};
    room.need.pods = 1;
    kept->reserved.push_back(room);
    kept->requested.cpu = Millicores{4000};  // full, but for the room that is kept
    kept->requested.pods = 5;
    f.know({kept, cheap});
    CHECK(f.ask("filter", R"("cheap","kept")").find(R"(["cheap","kept"])") != std::string::npos);
    CHECK(f.ask("prioritize", R"("cheap","kept")") ==
          R"([{"Host":"cheap","Score":9},{"Host":"kept","Score":10}])");
  }
}

TEST_CASE("extender: advice never empties the list") {
  Fixture f;
  const auto full = node("full", 400);
  full->requested.cpu = Millicores{4000};
  f.know({full});
  CHECK(f.ask("filter", R"("full")").find(R"("NodeNames":["full"])") != std::string::npos);
  CHECK(f.metrics.render().find("none_left") != std::string::npos);
}

TEST_CASE("extender: requests that are none") {
  Fixture f;
  f.know({node("a", 100)});
  CHECK(f.post("/scheduler/filter", "{").status == 200);
  CHECK(f.post("/scheduler/filter", "{").body.find("no JSON") != std::string::npos);
  CHECK(f.post("/prioritize", "{").status == 400);
  CHECK(f.post("/filter", R"({"Pod":)" + kPod + R"(,"NodeNames":[]})")
            .body.find("nothing to choose from") != std::string::npos);
  CHECK(f.post("/nowhere", "").status == 404);
  CHECK(f.post("/scheduler/bind", "{}").body.find("not enabled") != std::string::npos);
  auto handler = extender_handler({.table = [&f] { return f.table; },
                                   .framework = f.framework,
                                   .metrics = f.metrics,
                                   .clock = f.clock});
  CHECK(test::run_task(f.io, handler(net::Request{"GET", "/filter"})).status == 405);
}

TEST_CASE("extender: bind hands on, and says what went wrong") {
  Fixture f;
  std::vector<std::string> bound;
  f.bind = [&](BindingArgs args) -> net::Task<Result<void>> {
    bound.push_back(args.namespace_name + "/" + args.pod_name + " " + args.node);
    if (args.node == "bad") co_return fail(ErrorCode::conflict, "it is bound already");
    co_return Result<void>{};
  };
  const std::string args = R"({"PodName":"p","PodNamespace":"s","PodUID":"u","Node":)";
  CHECK(f.post("/scheduler/bind", args + R"("good"})").body == R"({"Error":""})");
  CHECK(f.post("/bind", args + R"("bad"})").body.find("bound already") != std::string::npos);
  CHECK(bound == std::vector<std::string>{"s/p good", "s/p bad"});
}
