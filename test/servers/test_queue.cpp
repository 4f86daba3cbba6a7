// POST /ingest, GET /queue, POST /dispatch: who may, what a job may be, and what is answered.
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "servers/job_request.hpp"
#include "servers/queue.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

namespace kwatt::servers {
namespace {

using planner::queue::Decided;
using planner::queue::Why;

constexpr const char* kJob = R"({"name":"a","queue":"default","image":"busybox"})";

// Knows the tokens "operator", who may do everything, and "agent", who may do nothing.
class QueueClient final : public test::StubClient {
 public:
  std::vector<std::string> reviews, made;
  std::optional<Error> refusal;
  Task<Text> create(const kube::Resource& resource, std::string in, std::string body) override {
    if (resource.plural == "tokenreviews") {
      for (const std::string name : {"operator", "agent"}) {
        if (body.find("\"" + name + "\"") == std::string::npos) continue;
        co_return R"({"status":{"authenticated":true,"audiences":["kwatt"],"user":{"username":")" +
            name + R"("}}})";
      }
      co_return std::string(R"({"status":{"authenticated":false}})");
    }
    if (resource.plural == "jobs") {
      if (refusal) co_return *refusal;
      made.push_back(in + ": " + body);
      co_return body;
    }
    reviews.push_back(body);
    co_return std::string(body.find("\"operator\"") != std::string::npos
                              ? R"({"status":{"allowed":true}})"
                              : R"({"status":{"allowed":false}})");
  }
};

std::vector<Decided> two_jobs() {
  std::vector<Decided> out(2);
  out[0].gated.job.name = "default/first";
  out[0].gated.namespace_name = "default";
  out[0].gated.name = "first";
  out[0].gated.queue = out[1].gated.queue = "q";
  out[0].strategy = out[1].strategy = "FCFS";
  out[0].gated.pods.resize(2);
  out[0].nodes = {"n1", "n2"};
  out[0].verdict.starts = true;
  out[0].verdict.why = Why::chosen;
  out[0].verdict.sentence = "starts, on n1, n2";
  out[0].verdict.grams_per_kwh = 119.6;
  out[1].gated.job.name = "team-a/next";
  out[1].gated.namespace_name = "team-a";
  out[1].gated.name = "next";
  out[1].gated.pods.resize(1);
  out[1].verdict.why = Why::no_fit;
  out[1].verdict.sentence = "no room";
  return out;
}

struct Room {
  ManualClock clock{*parse_rfc3339("2026-11-22T02:00:00Z")};
  QueueClient client;
  TokenReviewer tokens{client, clock};
  AccessReviewer access{client, clock};
  std::optional<Error> broken;
  int dispatched = 0;
  boost::asio::io_context io;
  net::Handler handler = queue_handler({tokens, access, client,
                                        [this]() -> Result<std::vector<Decided>> {
                                          if (broken) return *broken;
                                          return two_jobs();
                                        },
                                        [this] { return dispatch(); }});

  net::Task<Result<std::vector<Decided>>> dispatch() {
    ++dispatched;
    if (broken) co_return *broken;
    co_return two_jobs();
  }
  net::Response ask(const std::string& method, const std::string& path,
                    const std::string& body = "", const std::string& token = "operator",
                    const std::string& accept = "") {
    net::Request request(method, path);
    if (!token.empty()) request.headers.set("Authorization", "Bearer " + token);
    if (!accept.empty()) request.headers.set("Accept", accept);
    request.body = body;
    return test::run_task(io, handler(std::move(request)));
  }
};

}  // namespace

TEST_CASE("job request: what is wrong is told with its JSON path, all at once") {
  struct Case {
    const char* body;
    const char* says;
  };
  const Case cases[] = {
      {"", "the body is not JSON: The document is empty. at byte 0"},
      {"[]", "the body is not a JSON object"},
      {R"({"queue":"q","image":"i"})",
       "/name: is missing: a name of 1 to 52 bytes: lower-case letters, digits and '-'"},
      {R"({"name":"-a","queue":7,"image":""})",
       "/name: expected a name of 1 to 52 bytes: lower-case letters, digits and '-'; /queue: "
       "expected the name of an EnergyPolicy, of at most 63 bytes; /image: expected a container "
       "image"},
      {R"({"name":"a","queue":"q","image":"i","cpu":"0","memory":"much","gpus":-1,"members":0})",
       "/cpu: expected a quantity above 0 such as \"500m\"; /memory: expected a quantity above 0 "
       "such as \"256Mi\"; /gpus: expected a whole number from 0 to 64; /members: expected a whole "
       "number from 1 to 10000"},
      {R"({"name":"a","queue":"q","image":"i","command":["x",1],"env":{"A":true}})",
       "/command/1: expected a text of at most 32768 bytes; /env/A: expected a text of at most "
       "32768 bytes"},
      {R"({"name":"a","queue":"q","image":"i","env":{"1 A":""}})",
       "/env: expected names of environment variables"},
      {R"({"name":"a","queue":"q","image":"i","maxDelay":"soon","deadline":"tomorrow"})",
       "/maxDelay: expected a duration such as 90m; /deadline: expected a time such as "
       "2026-11-20T21:00:00Z"},
      {R"({"name":"a","queue":"q","image":"i","cpus":"1","name":"b"})",
       "/cpus: there is no such field in a job; /name: is given twice"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.body);
    const auto parsed = parse_job_request(c.body);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code == ErrorCode::invalid_argument);
    CHECK(parsed.error().message == c.says);
  }
}

TEST_CASE("job request: becomes a gated Job") {
  CHECK(
      job_body(*parse_job_request(kJob), "me") ==
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"default",)"
      R"("labels":{"kwatt.dev/queue":"default"},"annotations":{"kwatt.dev/ingested-for":"me"}},)"
      R"("spec":{"backoffLimit":0,"parallelism":1,"completions":1,"template":{"metadata":)"
      R"({"labels":{"kwatt.dev/queue":"default"},"annotations":{}},"spec":{"restartPolicy":"Never",)"
      R"("automountServiceAccountToken":false,"schedulingGates":[{"name":"kwatt.dev/queue"}],)"
      R"("containers":[{"name":"job","image":"busybox","resources":{"requests":{"cpu":"100m",)"
      R"("memory":"128Mi"},"limits":{"memory":"128Mi"}},)"
      R"("securityContext":{"allowPrivilegeEscalation":false}}]}}}})");
  const std::string gang = job_body(
      *parse_job_request(
          R"({"name":"mpi","namespace":"hpc","queue":"q","image":"i","members":4,"gpus":2,)"
          R"("args":["-n","4"],"env":{"A":"b"},"expectedDuration":"90m","maxDelay":"6h",)"
          R"("deadline":"2026-11-21T06:00:00Z","retries":2})"),
      "me");
  for (
      const char* part :
      {R"("backoffLimit":2,"parallelism":4,"completions":4,"completionMode":"Indexed")",
       R"("kwatt.dev/gang-size":"4","kwatt.dev/expected-duration":"1h30m","kwatt.dev/max-delay":"6h",)"
       R"("kwatt.dev/deadline":"2026-11-21T06:00:00Z")",
       R"("args":["-n","4"],"env":[{"name":"A","value":"b"}])",
       R"("nvidia.com/gpu":"2"},"limits")"}) {
    CAPTURE(part);
    CHECK(gang.find(part) != std::string::npos);
  }
}

TEST_CASE("queue server: a job is made in the name of a caller who may make it himself") {
  Room room;
  const net::Response made = room.ask("POST", "/ingest", kJob);
  CHECK(made.status == 201);
  CHECK(made.body == R"({"namespace":"default","name":"a"})");
  REQUIRE(room.client.made.size() == 1);
  CHECK(room.client.made[0].starts_with("default: {"));
  CHECK(
      room.client.reviews[0].find(
          R"("resourceAttributes":{"group":"batch","namespace":"default","resource":"jobs","verb":"create"})") !=
      std::string::npos);

  const net::Response refused = room.ask("POST", "/ingest", kJob, "agent");
  CHECK(refused.status == 403);
  CHECK(refused.body == "agent may not create jobs in namespace default\n");
  CHECK(room.ask("POST", "/ingest", kJob, "").status == 401);
  CHECK(room.ask("POST", "/ingest", kJob, "unknown").status == 401);
  CHECK(room.ask("GET", "/ingest").status == 405);
  CHECK(room.ask("POST", "/ingest", "{}").status == 400);
  CHECK(room.ask("POST", "/ingest", std::string(kJobBody + 1, ' ')).status == 413);
  CHECK(room.client.made.size() == 1);
}

TEST_CASE("queue server: what the API server says against a job reaches the caller") {
  const std::pair<ErrorCode, int> cases[] = {{ErrorCode::already_exists, 409},
                                             {ErrorCode::not_found, 422},
                                             {ErrorCode::invalid_argument, 422},
                                             {ErrorCode::forbidden, 422},
                                             {ErrorCode::unavailable, 503}};
  for (const auto& [code, status] : cases) {
    Room room;
    room.client.refusal = fail(code, "refused", "exceeded quota");
    CHECK(room.ask("POST", "/ingest", kJob).status == status);
  }
}

TEST_CASE("queue server: the decision as JSON and as a table") {
  Room room;
  const net::Response json = room.ask("GET", "/queue");
  CHECK(json.headers.get("Content-Type") == "application/json");
  CHECK(json.body ==
        R"({"jobs":[{"namespace":"default","name":"first","queue":"q","strategy":"FCFS","pods":2,)"
        R"("starts":true,"reason":"Chosen","message":"starts, on n1, n2","nodes":["n1","n2"],)"
        R"("gramsPerKWh":120},{"namespace":"team-a","name":"next","queue":"q","strategy":"FCFS",)"
        R"("pods":1,"starts":false,"reason":"NoFit","message":"no room","nodes":[]}]})");
  CHECK(room.dispatched == 0);
  const net::Response table = room.ask("POST", "/dispatch", "", "operator", "text/plain");
  CHECK(room.dispatched == 1);
  CHECK(table.body ==
        "JOB            QUEUE  STRATEGY  PODS  STARTS  REASON  NODES  MESSAGE\n"
        "default/first  q      FCFS      2     yes     Chosen  n1,n2  starts, on n1, n2\n"
        "team-a/next    q      FCFS      1     no      NoFit          no room\n");
}

TEST_CASE(
    "queue server: only those with the right see or release the queue, and a follower says so") {
  Room room;
  CHECK(room.ask("POST", "/dispatch", "", "agent").status == 403);
  CHECK(room.ask("GET", "/queue", "", "agent").body ==
        "agent may not get /queue: bind it to the ClusterRole kwatt-queue-reader\n");
  CHECK(room.ask("GET", "/dispatch").status == 405);
  CHECK(room.ask("POST", "/queue").status == 405);
  CHECK(room.dispatched == 0);
  room.broken = fail(ErrorCode::unavailable, "this replica does not lead");
  const net::Response told = room.ask("POST", "/dispatch");
  CHECK(told.status == 503);
  CHECK(told.body == "this replica does not lead\n");
}

}  // namespace kwatt::servers
