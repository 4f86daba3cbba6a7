#pragma once
// Standard base64 (RFC 4648), as kubeconfig files and Secrets carry it.
#include <optional>
#include <string>
#include <string_view>

namespace kwatt::kube {

// White space is skipped; padding is required. nullopt: not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace kwatt::kube
