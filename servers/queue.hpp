#pragma once
// The job queue over HTTP: POST /ingest makes a job, GET /queue shows who waits and why, POST
// /dispatch releases everything now and answers with what was decided.
//
// Callers show a bearer token of audience kwatt, as for /history. /ingest asks whether the caller
// himself may create Jobs in the namespace: our rights are not lent. The others need "get" on
// /queue and "post" on /dispatch.
#include <functional>

#include "kube/client.hpp"
#include "net/server.hpp"
#include "planner/queue/gate.hpp"
#include "servers/access_reviewer.hpp"
#include "servers/token_reviewer.hpp"

namespace kwatt::servers {

inline constexpr const char* kJobPath = "/ingest";
inline constexpr const char* kQueuePath = "/queue";
inline constexpr const char* kDispatchPath = "/dispatch";
inline constexpr std::size_t kJobBody = 64 * 1024;  // bytes of a request
inline constexpr int kQueueAtOnce = 16;             // more at the same time are refused

struct QueueDependencies {
  TokenReviewer& tokens;
  AccessReviewer& access;
  kube::Client& client;
  // Errors of both: unavailable (503).
  std::function<Result<std::vector<planner::queue::Decided>>()> preview;
  std::function<net::Task<Result<std::vector<planner::queue::Decided>>>()> dispatch;
};

// For the three paths. The dependencies outlive the handler. /ingest: 201 with the Job's name; 400
// with what is wrong and where; 409 there is one of that name; 422 the API server refuses it. All:
// 401, 403; 405; 413; 503.
net::Handler queue_handler(QueueDependencies dependencies);

// The table for people: a header, then a line for each job, columns aligned. Pure.
std::string decision_table(const std::vector<planner::queue::Decided>& decided);
// {"jobs":[{"namespace":…,"name":…,"queue":…,"strategy":…,"pods":…,"starts":…,"reason":…,
// "message":…,"nodes":[…],"gramsPerKWh":…}]}. Pure.
std::string decision_json(const std::vector<planner::queue::Decided>& decided);

}  // namespace kwatt::servers
