#include <random>

#include <doctest/doctest.h>

#include "cluster_of.hpp"

using namespace kwatt;
using namespace kwatt::placement::strategies;

TEST_CASE("cluster: what cannot be a node is refused by name") {
  struct Case {
    const char* what;
    NodeSpec spec;
    const char* says;
  };
  const auto changed = [](auto change) {
    NodeSpec spec = with_gpus(node("n"), 2);
    change(spec);
    return spec;
  };
  const Case cases[] = {
      {"no name", changed([](NodeSpec& s) { s.name = ""; }), "no name"},
      {"no CPU", changed([](NodeSpec& s) { s.capacity.cpu = Millicores{0}; }), "above 0"},
      {"memory", changed([](NodeSpec& s) { s.capacity.memory = Bytes{-1}; }), "negative"},
      {"half a GPU", changed([](NodeSpec& s) { s.capacity.gpu_milli = 1500; }), "whole"},
      {"GPUs", changed([](NodeSpec& s) { s.capacity.gpu_milli = 33'000; }), "32 GPUs"},
      {"zone", changed([](NodeSpec& s) { s.zone = 64; }), "below 64"},
      {"model", changed([](NodeSpec& s) { s.gpu_model = 64; }), "below 64"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto made = Cluster::create({c.spec});
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::invalid_argument);
    CHECK(made.error().message.find(c.says) != std::string::npos);
  }
  CHECK(Cluster::create({node("a"), node("a")}).error().message.find("twice") != std::string::npos);
}

TEST_CASE("cluster: a request must ask for something, and for whole GPUs or a share of one") {
  CHECK(valid({Millicores{1}, Bytes{0}, 0}));
  CHECK(valid({Millicores{0}, Bytes{0}, 500}));
  CHECK(valid({Millicores{0}, Bytes{0}, 2000}));
  CHECK_FALSE(valid({Millicores{0}, Bytes{0}, 0}));
  CHECK_FALSE(valid({Millicores{1}, Bytes{0}, 1500}));
  CHECK_FALSE(valid({Millicores{-1}, Bytes{1}, 0}));
}

TEST_CASE("cluster: a share goes to the fullest GPU with room, whole GPUs are nobody else's") {
  Cluster on = cluster({with_gpus(node("a"), 3)});
  CHECK(on.start(0, gpu_job(600).request) == 0b001);
  CHECK(on.start(0, gpu_job(300).request) == 0b001);
  CHECK(on.start(0, gpu_job(200).request) == 0b010);
  CHECK_FALSE(on.fits(0, gpu_job(2000).request));
  CHECK(on.fits(0, gpu_job(1000).request));
  CHECK(on.start(0, gpu_job(1000).request) == 0b100);
  CHECK(on.free(0).gpu_milli == 900);
  CHECK_FALSE(on.fits(0, gpu_job(900).request));
  on.finish(0, gpu_job(200).request, 0b010);
  CHECK(on.fits(0, gpu_job(1000).request));
}

TEST_CASE(
    "cluster: after any starts and finishes the index finds the nodes that a look at all finds") {
  std::mt19937_64 random(7);
  std::vector<NodeSpec> specs;
  for (int i = 0; i < 300; ++i) {
    specs.push_back(with_gpus(node("n" + std::to_string(i), 4 + i % 3 * 14), i % 4));
  }
  Cluster on = cluster(specs);
  struct Running {
    NodeIndex node;
    Request request;
    GpuSet gpus;
  };
  std::vector<Running> running;
  for (int step = 0; step < 4000; ++step) {
    Request request{Millicores{1000 * static_cast<std::int64_t>(1 + random() % 8)},
                    Bytes{kGiB * static_cast<std::int64_t>(1 + random() % 40)},
                    random() % 2 == 0 ? 0 : static_cast<std::int64_t>(random() % 4) * 1000};
    if (request.gpu_milli == 3000) request.gpu_milli = 400;
    std::vector<NodeIndex> all, found;
    for (NodeIndex i = 0; i < on.size(); ++i) {
      if (on.fits(i, request)) all.push_back(i);
    }
    on.each_fitting(request, kAny, kAny, [&](NodeIndex i) {
      found.push_back(i);
      return true;
    });
    REQUIRE(found == all);
    if (!all.empty() && random() % 5 < 3) {
      const NodeIndex i = all[random() % all.size()];
      running.push_back({i, request, on.start(i, request)});
    } else if (!running.empty()) {
      const std::size_t at = random() % running.size();
      on.finish(running[at].node, running[at].request, running[at].gpus);
      running[at] = running.back();
      running.pop_back();
    }
  }
  for (const Running& one : running) on.finish(one.node, one.request, one.gpus);
  for (NodeIndex i = 0; i < on.size(); ++i) {
    CHECK(on.free(i) == on.node(i).capacity);
    CHECK(on.running(i) == 0);
    CHECK(on.draw(i) == doctest::Approx(50'000));
  }
}

TEST_CASE("cluster: room that came free is listed, or said to be too much to list") {
  Cluster on = cluster({node("a"), node("b")});
  const Request request = job(1).request;
  const auto mark = on.freed_mark();
  CHECK(on.freed_since(mark)->empty());
  on.start(1, request);
  CHECK(on.freed_since(mark)->empty());
  on.finish(1, request, 0);
  CHECK(std::vector(on.freed_since(mark)->begin(), on.freed_since(mark)->end()) ==
        std::vector<NodeIndex>{1});
  for (int i = 0; i < 200; ++i) on.start(0, request), on.finish(0, request, 0);
  CHECK_FALSE(on.freed_since(mark).has_value());
  CHECK(on.changed_since(on.changed_mark())->empty());
}
