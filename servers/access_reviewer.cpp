#include "servers/access_reviewer.hpp"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/patch.hpp"

namespace kwatt::servers {

namespace {

// The ClusterRole of manifests/ that gives the right to a path of ours.
std::string_view role_for(std::string_view path) {
  if (path.starts_with("/apis/sites/")) return "kwatt-site-recommender";
  if (path == "/history") return "kwatt-history-reader";
  return path == "/queue" ? "kwatt-queue-reader" : "kwatt-queue-operator";
}

}  // namespace

Result<void> read_access_review(std::string_view json, const Caller& caller, std::string_view path,
                                std::string_view verb) {
  return read_access_answer(json, fmt::format("{} may not {} {}: bind it to the ClusterRole {}",
                                              caller.user, verb, path, role_for(path)));
}

Result<void> read_access_answer(std::string_view json, std::string refusal) {
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
  return fail(ErrorCode::forbidden, std::move(refusal),
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
  if (const auto* answer = known(key)) co_return *answer;
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
  remember(key, answer);
  co_return answer;
}

kube::Task<Result<void>> AccessReviewer::review_create(Caller caller, std::string group,
                                                       std::string plural,
                                                       std::string namespace_name) {
  std::string key = caller.user;
  for (const std::string& one : caller.groups) key += '\0' + one;
  // No verb of review() is empty.
  key += std::string("\0\0", 2) + group + '\0' + plural + '\0' + namespace_name;
  if (const auto* answer = known(key)) co_return *answer;
  api::MergePatch body;
  body.set({"apiVersion"}, "authorization.k8s.io/v1")
      .set({"kind"}, "SubjectAccessReview")
      .set({"spec", "user"}, caller.user)
      .set({"spec", "groups"}, caller.groups)
      .set({"spec", "resourceAttributes", "group"}, group)
      .set({"spec", "resourceAttributes", "resource"}, plural)
      .set({"spec", "resourceAttributes", "namespace"}, namespace_name)
      .set({"spec", "resourceAttributes", "verb"}, "create");
  auto reply = co_await client_.create(kube::resources::subject_access_reviews(), "", body.text());
  if (!reply) co_return not_reviewed(reply.error(), "SubjectAccessReview");
  Result<void> answer = read_access_answer(
      *reply,
      fmt::format("{} may not create {} in namespace {}", caller.user, plural, namespace_name));
  remember(key, answer);
  co_return answer;
}

const Result<void>* AccessReviewer::known(const std::string& key) const {
  const auto found = entries_.find(key);
  const bool counts = found != entries_.end() && clock_.monotonic() < found->second.until;
  return counts ? &found->second.answer : nullptr;
}

void AccessReviewer::remember(const std::string& key, const Result<void>& answer) {
  if (!answer && answer.error().code != ErrorCode::forbidden) return;
  if (entries_.size() >= limit_) entries_.clear();
  entries_.insert_or_assign(key, Entry{answer, clock_.monotonic() + keep_});
}

}  // namespace kwatt::servers
