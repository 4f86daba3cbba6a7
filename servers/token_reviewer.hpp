#pragma once
// Who sent this bearer token? Asks the API server (TokenReview, audience kwatt) and remembers the
// answer for a while; the token itself is not kept, only its SHA-256.
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "kube/client.hpp"

namespace kwatt::servers {

struct Caller {
  std::string user;  // system:serviceaccount:ns:name
  std::vector<std::string> groups;
  std::string node_name;  // of the token's claim authentication.kubernetes.io/node-name, "" if none
};

// Single-threaded, on the strand of the servers.
class TokenReviewer {
 public:
  TokenReviewer(kube::Client& client, const Clock& clock, std::string audience = "kwatt",
                Duration keep = std::chrono::seconds{60}, std::size_t limit = 20'000);

  // Errors: unauthorized (the API server does not know the token or the audience); anything else
  // says that it could not be asked. Refusals are remembered too, for a shorter time.
  kube::Task<Result<Caller>> review(std::string token);

 private:
  struct Entry {
    Result<Caller> answer;
    MonotonicPoint until;
  };
  kube::Client& client_;
  const Clock& clock_;
  std::string audience_;
  Duration keep_;
  std::size_t limit_;
  std::map<std::string, Entry> entries_;  // by SHA-256 of the token
};

// A review that was not held: whatever the API server holds against our request (401, 403, 400) is
// not to be taken for its answer about the caller.
Error not_reviewed(const Error& error, std::string_view what);

// The caller a TokenReview's answer names. Errors: unauthorized, parse. Pure.
Result<Caller> read_token_review(std::string_view json, std::string_view audience);

}  // namespace kwatt::servers
