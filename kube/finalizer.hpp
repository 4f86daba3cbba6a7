#pragma once
// Adding and removing our finalizer without touching anybody else's.
#include <string>
#include <string_view>

#include "api/meta.hpp"
#include "kube/client.hpp"

namespace kwatt::kube {

bool has_finalizer(const api::ObjectMeta& meta, std::string_view finalizer);

// Adds it if it is not there, before the first side effect: then return and wait for the event.
// Errors: conflict (the finalizers changed meanwhile: re-read and decide again), not_found, ….
Task<Result<void>> add_finalizer(Client& client, Resource resource, api::ObjectMeta meta,
                                 std::string finalizer, std::string field_manager);
// Removes it after the clean-up. An object or finalizer that is gone already is fine.
Task<Result<void>> remove_finalizer(Client& client, Resource resource, api::ObjectMeta meta,
                                    std::string finalizer, std::string field_manager);

}  // namespace kwatt::kube
