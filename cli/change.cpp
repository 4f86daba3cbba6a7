#include "cli/change.hpp"

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/read.hpp"

namespace kwatt::cli {

kube::Task<Result<int>> apply(Session& session, Change change) {
  const std::string_view kind = noun(change.resource);
  if (change.dry_run) {
    auto there = co_await session.client.get(change.resource, kube::Name("", change.name));
    if (!there && there.error().code == ErrorCode::not_found) {
      co_return fail(ErrorCode::not_found, fmt::format("there is no {} {}", kind, change.name));
    }
    if (!there) co_return there.error();
    session.out << fmt::format("{} (dry run: nothing was sent)\n{}", change.sentence,
                               pretty_json(change.body));
    co_return kDone;
  }
  auto answer = co_await session.client.patch(change.resource, kube::Name("", change.name),
                                              kube::Client::PatchType::merge, "kubectl-kwatt", "",
                                              change.body);
  if (!answer && answer.error().code == ErrorCode::not_found) {
    co_return fail(ErrorCode::not_found, fmt::format("there is no {} {}", kind, change.name));
  }
  if (!answer) co_return answer.error().with_context(fmt::format("{} {}", kind, change.name));
  session.out << change.sentence << "\n";
  co_return kDone;
}

void add_dry_run(CLI::App& verb, bool& dry_run) {
  verb.add_flag("--dry-run", dry_run, "Print what would be sent, and send nothing");
}

std::string annotation_patch(std::string_view key, const api::JsonValue& value) {
  api::MergePatch patch;
  patch.set({"metadata", "annotations", key}, value);
  return patch.text();
}

}  // namespace kwatt::cli
