#pragma once
// May this caller do that? Asks the API server (SubjectAccessReview) and remembers the answer for a
// short while, so that RBAC is the only place where rights are given.
#include <map>
#include <string>

#include "servers/token_reviewer.hpp"

namespace kwatt::servers {

// Single-threaded, on the strand of the servers.
class AccessReviewer {
 public:
  AccessReviewer(kube::Client& client, const Clock& clock, Duration keep = std::chrono::seconds{30},
                 std::size_t limit = 1'000);

  // `verb` ("get") on a non-resource path of ours ("/history"), as RBAC's nonResourceURLs give it.
  // Errors: forbidden, with the reason of the API server, if it gave one; anything else says that
  // it could not be asked. Only answers are remembered, allowed or not, never errors.
  kube::Task<Result<void>> review(Caller caller, std::string path, std::string verb);
  // May the caller himself create `plural` of `group` in the namespace? For what we create in his
  // name: our own rights are not lent. Errors: the same.
  kube::Task<Result<void>> review_create(Caller caller, std::string group, std::string plural,
                                         std::string namespace_name);

 private:
  struct Entry {
    Result<void> answer;
    MonotonicPoint until;
  };
  kube::Client& client_;
  const Clock& clock_;
  Duration keep_;
  std::size_t limit_;
  std::map<std::string, Entry> entries_;  // by user, groups, verb and path

  const Result<void>* known(const std::string& key) const;
  void remember(const std::string& key, const Result<void>& answer);
};

// The answer of a SubjectAccessReview. Errors: forbidden, parse. Pure.
Result<void> read_access_review(std::string_view json, const Caller& caller, std::string_view path,
                                std::string_view verb = "get");
// The same, `refusal` being the sentence for a caller who may not.
Result<void> read_access_answer(std::string_view json, std::string refusal);

}  // namespace kwatt::servers
