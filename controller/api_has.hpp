#pragma once
// Which kinds the API server has.
#include <optional>

#include "kube/client.hpp"

namespace kwatt::controller {

// nullopt: no answer, so nothing is known anew.
kube::Task<std::optional<bool>> api_has(kube::Client& client, kube::Resource resource);

}  // namespace kwatt::controller
