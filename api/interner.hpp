#pragma once
// Replicas of one owner have the same template: the interner makes them share one object, so that
// 50,000 pods of a few owners cost little more than their names.
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "api/core.hpp"

namespace kwatt::api {

// Thread-safe. Holds only weak references: what no pod uses any more is forgotten.
class Interner {
 public:
  std::shared_ptr<const PodTemplate> intern(PodTemplate&& value);
  std::shared_ptr<const OwnerReference> intern(OwnerReference&& value);
  // Live templates, for tests and metrics.
  std::size_t templates() const;

 private:
  template <class T>
  struct Table {
    std::unordered_multimap<std::size_t, std::weak_ptr<const T>> entries;
    std::size_t sweep_at = 64;
  };
  template <class T>
  std::shared_ptr<const T> find_or_add(Table<T>& table, std::size_t hash, T value);

  mutable std::mutex mutex_;
  Table<PodTemplate> templates_;
  Table<OwnerReference> owners_;
};

}  // namespace kwatt::api
