#include "kube/store.hpp"

namespace kwatt::kube {

std::string KeyView::text() const {
  if (namespace_name.empty()) return std::string(name);
  return std::string(namespace_name) + "/" + std::string(name);
}

KeyView split_key(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {{}, key};
  return {key.substr(0, slash), key.substr(slash + 1)};
}

}  // namespace kwatt::kube
