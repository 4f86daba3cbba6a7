#pragma once
// The estimator's HTTP API, as WAO-Estimator's clients know it.
//
//   POST /namespaces/{ns}/estimators/{name}/values/powerconsumption
//        {"cpu_milli":500,"num_workloads":5} → the same with "watt_increases":[5,9,13,15,16]
//   GET  /openapi.json    what it offers, for machines
//   GET  /healthz         "." as WAO's has it
//
// Errors are {"code":"ErrEstimatorInvalidRequest","message":"…"} with WAO's names: 400 of the
// request, 401 no or a wrong X-API-KEY, 404 no such Estimator or path, 405, 500 no nodes, 503 too
// much to do. Answers come from what is known already: nobody else is asked for them.
#include <functional>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "net/server.hpp"
#include "servers/estimator_book.hpp"

namespace kwatt::servers {

// Keys that open the API, one for each client. Nothing: none is asked for.
using ApiKeys = std::vector<std::string>;
// One key a line; blank lines and those beginning with # are passed over.
// Errors: parse, with the line: a key must be 1 to 512 printable characters without blanks at its
// ends; invalid_argument: not one key (nobody could ever ask).
Result<ApiKeys> parse_api_keys(std::string_view text);

struct EstimatorServerDependencies {
  EstimatorBook& book;
  Metrics& metrics;
  // Asked at every request, so cheap. nullptr: no key is needed.
  std::function<const ApiKeys*()> keys;
};

// The dependencies outlive the handler.
net::Handler estimator_handler(EstimatorServerDependencies dependencies);

// The question in a body. Unknown members are passed over, as WAO's server does.
// Errors: invalid_argument: a sentence that says what and where.
Result<EstimateQuestion> parse_question(std::string_view body);

// OpenAPI 3.1 as served. `keyed`: a key is asked for.
std::string estimator_openapi(bool keyed);

// In constant time for keys of the same length.
bool same_key(std::string_view given, std::string_view wanted);

}  // namespace kwatt::servers
