#include "kube/finalizer.hpp"

#include <algorithm>

#include "api/patch.hpp"

namespace kwatt::kube {
namespace {

Task<Result<void>> send(Client& client, Resource resource, Name name, std::string field_manager,
                        api::JsonPatch patch) {
  if (patch.empty()) co_return Result<void>{};
  auto answer = co_await client.patch(resource, std::move(name), Client::PatchType::json,
                                      std::move(field_manager), "", patch.text());
  if (answer) co_return Result<void>{};
  // A failed `test` is answered with 422, although nothing is wrong with the request itself.
  Error error = answer.error();
  if (error.code == ErrorCode::invalid_argument) error.code = ErrorCode::conflict;
  co_return error;
}

}  // namespace

bool has_finalizer(const api::ObjectMeta& meta, std::string_view finalizer) {
  return std::find(meta.finalizers.begin(), meta.finalizers.end(), finalizer) !=
         meta.finalizers.end();
}

Task<Result<void>> add_finalizer(Client& client, Resource resource, api::ObjectMeta meta,
                                 std::string finalizer, std::string field_manager) {
  Name name{meta.namespace_name, meta.name};
  api::JsonPatch patch = api::add_finalizer(meta, finalizer);
  co_return co_await send(client, std::move(resource), std::move(name), std::move(field_manager),
                          std::move(patch));
}

Task<Result<void>> remove_finalizer(Client& client, Resource resource, api::ObjectMeta meta,
                                    std::string finalizer, std::string field_manager) {
  Name name{meta.namespace_name, meta.name};
  api::JsonPatch patch = api::remove_finalizer(meta, finalizer);
  auto done = co_await send(client, std::move(resource), std::move(name), std::move(field_manager),
                            std::move(patch));
  if (!done && done.error().code == ErrorCode::not_found) co_return Result<void>{};
  co_return done;
}

}  // namespace kwatt::kube
