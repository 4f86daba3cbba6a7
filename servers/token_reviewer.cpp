#include "servers/token_reviewer.hpp"

#include <array>

#include <openssl/sha.h>
#include <rapidjson/document.h>

#include "api/patch.hpp"

namespace kwatt::servers {
namespace {

constexpr const char* kNodeClaim = "authentication.kubernetes.io/node-name";
constexpr Duration kKeepRefusal = std::chrono::seconds{10};

std::string digest(const std::string& token) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), out.data());
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

const rapidjson::Value* member(const rapidjson::Value& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

std::string text(const rapidjson::Value* value) {
  if (value == nullptr || !value->IsString()) return "";
  return {value->GetString(), value->GetStringLength()};
}

bool contains(const rapidjson::Value* list, std::string_view wanted) {
  if (list == nullptr || !list->IsArray()) return false;
  for (const auto& item : list->GetArray()) {
    if (text(&item) == wanted) return true;
  }
  return false;
}

}  // namespace

Error not_reviewed(const Error& error, std::string_view what) {
  Error told = error.with_context(what);
  if (!told.transient()) told.code = ErrorCode::internal;
  return told;
}

Result<Caller> read_token_review(std::string_view json, std::string_view audience) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError()) return fail(ErrorCode::parse, "the TokenReview is not JSON");
  const auto* status = member(document, "status");
  if (status == nullptr) return fail(ErrorCode::parse, "the TokenReview has no status");
  const auto* authenticated = member(*status, "authenticated");
  if (authenticated == nullptr || !authenticated->IsBool() || !authenticated->GetBool()) {
    return fail(ErrorCode::unauthorized, "the token is not valid", text(member(*status, "error")));
  }
  // An API server that knows no audiences answers without them: then the token proves nothing to
  // us.
  if (!contains(member(*status, "audiences"), audience)) {
    return fail(ErrorCode::unauthorized,
                "the token is not for the audience " + std::string(audience));
  }
  const auto* user = member(*status, "user");
  if (user == nullptr) return fail(ErrorCode::parse, "the TokenReview names no user");
  Caller caller;
  caller.user = text(member(*user, "username"));
  if (const auto* groups = member(*user, "groups"); groups != nullptr && groups->IsArray()) {
    for (const auto& group : groups->GetArray()) caller.groups.push_back(text(&group));
  }
  if (const auto* extra = member(*user, "extra")) {
    const auto* claim = member(*extra, kNodeClaim);
    if (claim != nullptr && claim->IsArray() && claim->Size() == 1) {
      caller.node_name = text(&(*claim)[0]);
    }
  }
  return caller;
}

TokenReviewer::TokenReviewer(kube::Client& client, const Clock& clock, std::string audience,
                             Duration keep, std::size_t limit)
    : client_(client), clock_(clock), audience_(std::move(audience)), keep_(keep), limit_(limit) {}

kube::Task<Result<Caller>> TokenReviewer::review(std::string token) {
  const std::string key = digest(token);
  const auto known = entries_.find(key);
  if (known != entries_.end() && clock_.monotonic() < known->second.until) {
    co_return known->second.answer;
  }
  api::MergePatch body;
  body.set({"apiVersion"}, "authentication.k8s.io/v1")
      .set({"kind"}, "TokenReview")
      .set({"spec", "token"}, token)
      .set({"spec", "audiences"}, std::vector<std::string>{audience_});
  auto reply = co_await client_.create(kube::resources::token_reviews(), "", body.text());
  if (!reply) co_return not_reviewed(reply.error(), "TokenReview");
  Result<Caller> answer = read_token_review(*reply, audience_);
  if (entries_.size() >= limit_) entries_.clear();
  const Duration keep = answer ? keep_ : kKeepRefusal;
  entries_.insert_or_assign(key, Entry{answer, clock_.monotonic() + keep});
  co_return answer;
}

}  // namespace kwatt::servers
