#pragma once
// GET /history: the history as JSON or CSV, for callers with the right to it.
//
// Who calls is told by a bearer token of audience kwatt (TokenReview), and RBAC says whether that
// user may "get" the non-resource URL /history (SubjectAccessReview). The token comes in
// Authorization, or in Kwatt-Authorization, because the API server's service proxy keeps
// Authorization to itself and passes on no proof of who is behind it.
#include "base/clock.hpp"
#include "net/server.hpp"
#include "servers/access_reviewer.hpp"
#include "servers/token_reviewer.hpp"
#include "telemetry/history.hpp"

namespace kwatt::servers {

inline constexpr const char* kHistoryPath = "/history";
inline constexpr std::size_t kHistoryLimit = 10'000;  // rows in one answer

struct HistoryDependencies {
  TokenReviewer& tokens;
  AccessReviewer& access;
  telemetry::History& history;
  const Clock& clock;
};

// 200; 400 with what is wrong in the query; 401 no or no good token; 403 no right; 405; 503 the API
// server could not be asked, or the file cannot be read.
net::Handler history_handler(HistoryDependencies dependencies);

struct HistoryRequest {
  telemetry::HistoryQuery query;
  bool csv = false;
};

// ?kind=samples|decisions|operations|energy&node=…&policy=…&since=…&until=…&limit=…&format=json|csv.
// since and until are RFC 3339 times, or durations back from `now` ("90m"). Errors:
// invalid_argument: an unknown or repeated key, or a value that is none. Pure.
Result<HistoryRequest> parse_history_target(std::string_view target, TimePoint now);

}  // namespace kwatt::servers
