#include <sstream>

#include <doctest/doctest.h>

#include "simulator/traces/openb.hpp"

using namespace kwatt;
using namespace kwatt::simulator;

namespace {

auto nodes(const std::string& text) {
  std::istringstream in(text);
  return read_openb_nodes(in, "nodes.csv");
}
auto pods(const std::string& text) {
  std::istringstream in(text);
  return read_openb_pods(in, "pods.csv");
}

}  // namespace

TEST_CASE("openb: nodes are read with their units, in any order of columns") {
  const auto read = nodes(
      "model,sn,cpu_milli,memory_mib,gpu,rack\r\n"
      "P100,a,64000,262144,2,7\r\n"
      "\r\n"
      ",b,32000,1024,0,7\r\n");
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 2);
  CHECK((*read)[0].name == "a");
  CHECK((*read)[0].cpu == Millicores{64'000});
  CHECK((*read)[0].memory == Bytes{std::int64_t{256} << 30});
  CHECK((*read)[0].gpus == 2);
  CHECK((*read)[0].model == "P100");
  CHECK((*read)[1].gpus == 0);
}

TEST_CASE("openb: pods are read with and without times and models") {
  const auto read = pods(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
      "deletion_time,scheduled_time\n"
      "p,6000,12288,1,460,V100M16|V100M32,LS,Running,427061,12902960,427061\n"
      "q,88000,327680,8,1000,,BE,Pending,9437497,,\n"
      "r,4000,1024,0,1000,,BE,Running,5,5,5\n");
  REQUIRE(read.has_value());
  const auto& list = *read;
  CHECK(list[0].models == std::vector<std::string>{"V100M16", "V100M32"});
  CHECK(list[0].total_gpu_milli() == 460);
  CHECK(list[0].created_second == 427'061);
  CHECK(list[0].deleted_second == 12'902'960);
  CHECK(list[1].total_gpu_milli() == 8000);
  CHECK_FALSE(list[1].deleted_second.has_value());
  CHECK(list[2].total_gpu_milli() == 0);  // thousandths of no GPU
  const auto plain = pods("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1024,0,0\n");
  CHECK_FALSE((*plain)[0].created_second.has_value());
}

TEST_CASE("openb: what is wrong is said with file and line") {
  struct Case {
    const char* what;
    std::string text;
    const char* says;
  };
  const std::string node_head = "sn,cpu_milli,memory_mib,gpu,model\n";
  const Case node_cases[] = {
      {"nothing", "", "nodes.csv:0: the file is empty"},
      {"only a header", node_head, "nodes.csv:1: there are no nodes"},
      {"a missing column", "sn,cpu_milli,memory_mib,model\n",
       "nodes.csv:1: there is no column \"gpu\""},
      {"a short line", node_head + "a,1,2\n", "nodes.csv:2: 3 fields, but there are 5 columns"},
      {"no CPU", node_head + "a,0,1,0,\n", "nodes.csv:2: cpu_milli is \"0\""},
      {"words", node_head + "a,1,1,two,\n", "nodes.csv:2: gpu is \"two\""},
      {"NaN", node_head + "a,nan,1,0,\n", "nodes.csv:2: cpu_milli is \"nan\""},
      {"too large", node_head + "a,99999999999999999999,1,0,\n", "nodes.csv:2: cpu_milli"},
      {"twice", node_head + "a,1,1,0,\na,1,1,0,\n", "nodes.csv:3: node \"a\" is there twice"},
      {"no name", node_head + ",1,1,0,\n", "nodes.csv:2: the node has no name"},
      {"no model", node_head + "a,1,1,2,\n", "nodes.csv:2: GPUs without a model"},
  };
  for (const Case& c : node_cases) {
    CAPTURE(c.what);
    const auto read = nodes(c.text);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().code == ErrorCode::parse);
    CHECK(read.error().message.find(c.says) == 0);
  }
  const std::string pod_head =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n";
  const Case pod_cases[] = {
      {"nothing asked", pod_head + "p,0,0,0,0,1,2\n", "pods.csv:2: the pod asks for nothing"},
      {"negative", pod_head + "p,-1,0,0,0,1,2\n", "pods.csv:2: cpu_milli is \"-1\""},
      {"a share of nothing", pod_head + "p,1,1,1,0,1,2\n", "pods.csv:2: a GPU, but gpu_milli is 0"},
      {"shares of several", pod_head + "p,1,1,2,500,1,2\n",
       "pods.csv:2: 2 GPUs of 500 thousandths"},
      {"more than one GPU's worth", pod_head + "p,1,1,1,1001,1,2\n", "pods.csv:2: gpu_milli"},
      {"backwards", pod_head + "p,1,1,0,0,9,8\n", "pods.csv:2: deletion_time 8 is before"},
      {"no pods", pod_head, "pods.csv:1: there are no pods"},
  };
  for (const Case& c : pod_cases) {
    CAPTURE(c.what);
    const auto read = pods(c.text);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().message.find(c.says) == 0);
  }
}
