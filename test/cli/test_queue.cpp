#include <doctest/doctest.h>

#include "cli/queue.hpp"

namespace kwatt::cli {

TEST_CASE("queue: jobs that start come first, each with its reason") {
  const auto lines = parse_queue_json(
      R"({"jobs":[
        {"namespace":"default","name":"late","queue":"q","strategy":"FCFS","pods":1,"starts":false,
         "reason":"WaitsForCarbon","message":"waits until 10:00","nodes":[],"gramsPerKWh":410},
        {"namespace":"default","name":"mpi","queue":"q","strategy":"FCFS","pods":5,"starts":true,
         "reason":"Chosen","message":"starts, on n1, n2, n3 and 1 more",
         "nodes":["n1","n2","n3","n4"],"gramsPerKWh":60},
        {"namespace":"a","name":"lost","queue":"none","strategy":"","pods":1,"starts":false,
         "reason":"NoPolicy","message":"there is no EnergyPolicy none","nodes":[]}]})");
  REQUIRE(lines.has_value());
  CHECK(queue_table(*lines) ==
        "JOB            QUEUE   STRATEGY   PODS   STARTS   REASON           NODES        G/KWH   "
        "WHY\n"
        "default/mpi    q       FCFS       5      yes      Chosen           n1,n2,n3+1   60      "
        "starts, on n1, n2, n3 and 1 more\n"
        "default/late   q       FCFS       1      no       WaitsForCarbon   -            410     "
        "waits until 10:00\n"
        "a/lost         none    -          1      no       NoPolicy         -            -       "
        "there is no EnergyPolicy none\n");
  CHECK(queue_table({}) == "No job is in the queue.\n");
}

TEST_CASE("queue: what is not the controller's answer is refused with the place") {
  struct Case {
    const char *json, *message;
  };
  const Case cases[] = {
      {"", "no list"},
      {"<html>", "no list"},
      {"[]", "no list"},
      {R"({"jobs":7})", "no list"},
      {R"({"jobs":[7]})", "jobs[0] is not an object"},
      {R"({"jobs":[{"name":"a","reason":"Chosen","starts":true},{"name":"b"}]})",
       "jobs[1] has no name or no reason"},
      {R"({"jobs":[{"name":"a","reason":"Chosen"}]})", "jobs[0] does not say: starts"},
      {R"({"jobs":[{"name":"a","reason":"Chosen","starts":true,"pods":"1"}]})",
       "jobs[0] has no number of pods"},
      {R"({"jobs":[{"name":"a","reason":"Chosen","starts":true,"nodes":[1]}]})",
       "jobs[0] has a node without a name"},
  };
  for (const Case& c : cases) {
    const auto lines = parse_queue_json(c.json);
    REQUIRE_FALSE(lines.has_value());
    INFO(lines.error().message);
    CHECK(lines.error().message.find(c.message) != std::string::npos);
  }
  CHECK(parse_queue_json(R"({"jobs":[]})")->empty());
}

}  // namespace kwatt::cli
