#include "servers/access_reviewer.hpp"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/patch.hpp"

namespace kwatt::servers {

namespace {

// The ClusterRole of manifests/ that gives the right to a path of ours.
std::string_view role_for(std::string_view path) {
  return path.starts_with("/apis/sites/") ? "kwatt-site-recommender" : "kwatt-history-reader";
}

}  // namespace

Result<void> read_access_review(std::string_view json, const Caller& caller, std::string_view path,
                                std::string_view verb) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return fail(ErrorCode::parse, "the SubjectAccessReview is not JSON");
  }
  const auto status = document.FindMember("status");
  if (status == document.MemberEnd() || !status->value.IsObject()) {
    return fail(ErrorCode::parse, "the SubjectAccessReview has no status");
  }
  const auto is_true = [&](const char* key) {
    const auto found = status->value.FindMember(key);
    return found != status->value.MemberEnd() && found->value.IsTrue();
  };
  if (is_true("allowed") && !is_true("denied")) return {};
  const auto reason = status->value.FindMember("reason");
  return fail(ErrorCode::forbidden,
              fmt::format("{} may not {} {}: bind it to the ClusterRole {}", caller.user, verb,
                          path, role_for(path)),
              reason != status->value.MemberEnd() && reason->value.IsString()
                  ? std::string(reason->value.GetString(), reason->value.GetStringLength())
                  : "");
}

AccessReviewer::AccessReviewer(kube::Client& client, const Clock& clock, Duration keep,
                               std::size_t limit)
    : client_(client), clock_(clock), keep_(keep), limit_(limit) {}

kube::Task<Result<void>> AccessReviewer::review(Caller caller, std::string path, std::string verb) {
  // Names contain no zero byte.
  std::string key = caller.user;
  for (const std::string& group : caller.groups) key += '\0' + group;
  key += '\0' + verb + '\0' + path;
  const auto known = entries_.find(key);
  if (known != entries_.end() && clock_.monotonic() < known->second.until) {
    co_return known->second.answer;
  }
  api::MergePatch body;
  body.set({"apiVersion"}, "authorization.k8s.io/v1")
      .set({"kind"}, "SubjectAccessReview")
      .set({"spec", "user"}, caller.user)
      .set({"spec", "groups"}, caller.groups)
      .set({"spec", "nonResourceAttributes", "path"}, path)
      .set({"spec", "nonResourceAttributes", "verb"}, verb);
  auto reply = co_await client_.create(kube::resources::subject_access_reviews(), "", body.text());
  if (!reply) co_return not_reviewed(reply.error(), "SubjectAccessReview");
  Result<void> answer = read_access_review(*reply, caller, path, verb);
  if (!answer && answer.error().code != ErrorCode::forbidden) co_return answer;
  if (entries_.size() >= limit_) entries_.clear();
  entries_.insert_or_assign(key, Entry{answer, clock_.monotonic() + keep_});
  co_return answer;
}

}  // namespace kwatt::servers
