#include "kube/own_writes.hpp"

#include <algorithm>

namespace kwatt::kube {

void OwnWrites::wrote(std::string_view key, std::string_view resource_version, MonotonicPoint now) {
  const bool seen = std::any_of(recent_.begin(), recent_.end(), [&](const auto& delivered) {
    return delivered.second == resource_version && delivered.first == key;
  });
  if (seen) {
    writes_.erase(std::string(key));
  } else {
    writes_[std::string(key)] = Write{std::string(resource_version), now};
  }
}

void OwnWrites::observed(std::string_view key, std::string_view resource_version) {
  recent_.emplace_back(key, resource_version);
  if (recent_.size() > kRemembered) recent_.pop_front();
  const auto found = writes_.find(std::string(key));
  if (found != writes_.end() && found->second.resource_version == resource_version) {
    writes_.erase(found);
  }
}

void OwnWrites::deleted(std::string_view key) {
  writes_.erase(std::string(key));
}

bool OwnWrites::pending(MonotonicPoint now) {
  std::erase_if(writes_, [&](const auto& write) { return now - write.second.at >= give_up_; });
  return !writes_.empty();
}

bool OwnWrites::pending(std::string_view key, MonotonicPoint now) {
  const auto found = writes_.find(std::string(key));
  return found != writes_.end() && now - found->second.at < give_up_;
}

}  // namespace kwatt::kube
