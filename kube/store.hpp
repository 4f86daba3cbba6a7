#pragma once
// The local copy of all objects of one resource: one writer (the informer), many readers.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace kwatt::kube {

// An object's place: "namespace/name" as text, "name" if cluster-scoped. Sorted by both.
struct KeyView {
  std::string_view namespace_name, name;
  auto operator<=>(const KeyView&) const = default;
  bool operator==(const KeyView&) const = default;
  std::string text() const;
};
KeyView split_key(std::string_view key);

template <class T>
KeyView key_of(const T& object) {
  if constexpr (requires { object.meta.name; }) {
    return {object.meta.namespace_name, object.meta.name};
  } else {
    return {object.namespace_name, object.name};
  }
}
template <class T>
const std::string& resource_version_of(const T& object) {
  if constexpr (requires { object.meta.name; }) {
    return object.meta.resource_version;
  } else {
    return object.resource_version;
  }
}

// What every store tells regardless of its type; safe from any thread.
class StoreState {
 public:
  explicit StoreState(std::string name) : name_(std::move(name)) {}
  virtual ~StoreState() = default;
  StoreState(const StoreState&) = delete;
  StoreState& operator=(const StoreState&) = delete;

  const std::string& name() const { return name_; }
  // True from the first complete list on. Absence means nothing before that.
  bool ready() const { return ready_.load(); }
  // When the API server last gave a sign on this resource: a complete list, a watch that was
  // accepted, an event or a bookmark. The age of the cache is counted from here.
  MonotonicPoint last_contact() const { return MonotonicPoint{contact_.load()}; }
  void touch(MonotonicPoint now) { contact_.store(now.time_since_epoch()); }
  virtual std::size_t size() const = 0;

 protected:
  std::atomic<bool> ready_{false};

 private:
  std::string name_;
  std::atomic<std::chrono::nanoseconds> contact_{};
};

// One change. `synced` (without objects) follows every complete list.
template <class T>
struct Delta {
  enum class Type { added, updated, deleted, synced };
  Type type = Type::synced;
  // Part of the first list, or of the replay for a late subscriber: reconcile it with low priority.
  bool initial = false;
  std::shared_ptr<const T> old;  // updated, deleted (the last known state)
  std::shared_ptr<const T> now;  // added, updated
};

// A secondary index: objects by the text that `value` finds in them ("": not in this index).
template <class T>
struct Index {
  std::string name;
  std::function<std::string_view(const T&)> value;
};

// Objects are never changed after they were put in: hold the pointers as long as you like.
// get, by_index, snapshot, size: from any thread. for_each, subscribe and everything under
// "writer": only on the thread (strand) that runs the informer; callbacks run there, too.
template <class T>
class Store final : public StoreState {
 public:
  using Pointer = std::shared_ptr<const T>;
  using List = std::vector<Pointer>;
  using Callback = std::function<void(const Delta<T>&)>;

  explicit Store(std::string name, std::vector<Index<T>> indexes = {})
      : StoreState(std::move(name)), indexes_(std::move(indexes)), buckets_(indexes_.size()) {}

  // `key` is "namespace/name" or "name". nullptr: absent (or not ready yet).
  Pointer get(std::string_view key) const { return get(split_key(key)); }
  Pointer get(KeyView key) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : *found;
  }

  // The objects that the index (by its position at construction) files under `value`, sorted.
  List by_index(std::size_t index, std::string_view value) const {
    const std::lock_guard lock(mutex_);
    const auto& buckets = buckets_.at(index);
    const auto found = buckets.find(value);
    return found == buckets.end() ? List{} : found->second;
  }

  std::size_t size() const override {
    const std::lock_guard lock(mutex_);
    return objects_.size();
  }

  // An immutable list that lives as long as this: `for (const auto& pod : store.snapshot())` is
  // safe, as it would not be with `*pointer_to_list()`.
  class Snapshot {
   public:
    explicit Snapshot(std::shared_ptr<const List> list) : list_(std::move(list)) {}
    auto begin() const { return list_->begin(); }
    auto end() const { return list_->end(); }
    std::size_t size() const { return list_->size(); }
    bool empty() const { return list_->empty(); }
    // The very same list, not an equal one.
    bool operator==(const Snapshot& other) const = default;

   private:
    std::shared_ptr<const List> list_;
  };
  // All objects, sorted by namespace and name. Cheap: built once per change.
  Snapshot snapshot() const {
    const std::lock_guard lock(mutex_);
    if (snapshot_ == nullptr) {
      snapshot_ = std::make_shared<const List>(objects_.begin(), objects_.end());
    }
    return Snapshot(snapshot_);
  }

  // In order. `visit` must not write to this store.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Pointer& object : objects_) visit(object);
  }

  // Called for every change from now on, for as long as the store lives. If the store is ready, the
  // present objects are replayed first as added, then synced.
  void subscribe(Callback callback) {
    if (ready()) {
      for (const Pointer& object : objects_) {
        callback({Delta<T>::Type::added, true, nullptr, object});
      }
      callback({Delta<T>::Type::synced, true, nullptr, nullptr});
    }
    callbacks_.push_back(std::move(callback));
  }

  // ---- writer: the informer
  // Starts a fresh temporary copy for one attempt to list.
  void begin_replace() { pending_.clear(); }
  void add_to_replacement(T object) {
    // An object we know already keeps its place in memory: a relist does not double the store.
    const auto known = objects_.find(key_of(object));
    if (known != objects_.end() &&
        kube::resource_version_of(**known) == kube::resource_version_of(object)) {
      pending_.insert(pending_.end(), *known);
      return;
    }
    pending_.insert(pending_.end(), std::make_shared<const T>(std::move(object)));
  }
  // Puts the temporary copy in place of the old one, at once for every reader, and tells the
  // subscribers what is different.
  void commit_replacement() {
    const bool first = !ready();
    Objects old;
    {
      const std::lock_guard lock(mutex_);
      old = std::exchange(objects_, std::move(pending_));
      pending_.clear();
      snapshot_.reset();
      for (auto& buckets : buckets_) buckets.clear();
      for (const Pointer& object : objects_) {
        for (std::size_t i = 0; i < indexes_.size(); ++i) append(i, object);
      }
      for (auto& buckets : buckets_) {
        for (auto& [value, bucket] : buckets) bucket.shrink_to_fit();
      }
    }
    ready_.store(true);
    announce_difference(old, first);
    emit({Delta<T>::Type::synced, first, nullptr, nullptr});
  }
  // ADDED or MODIFIED.
  void put(T object) {
    auto now = std::make_shared<const T>(std::move(object));
    Pointer old;
    {
      const std::lock_guard lock(mutex_);
      old = extract(key_of(*now));
      insert(now);
    }
    const auto type = old ? Delta<T>::Type::updated : Delta<T>::Type::added;
    emit({type, false, std::move(old), std::move(now)});
  }
  // DELETED, with the state the server sent along.
  void remove(T last_state) {
    Pointer old;
    {
      const std::lock_guard lock(mutex_);
      old = extract(key_of(last_state));
    }
    if (!old) return;
    auto last = std::make_shared<const T>(std::move(last_state));
    emit({Delta<T>::Type::deleted, false, std::move(last), nullptr});
  }

 private:
  struct Less {
    using is_transparent = void;
    static KeyView key(const Pointer& object) { return key_of(*object); }
    static KeyView key(KeyView view) { return view; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return key(a) < key(b);
    }
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Objects = std::set<Pointer, Less>;
  using Buckets = std::unordered_map<std::string, List, TextHash, std::equal_to<>>;

  void emit(const Delta<T>& delta) const {
    for (const Callback& callback : callbacks_) callback(delta);
  }

  // Both are sorted alike: one walk over both finds what came, changed and went.
  void announce_difference(const Objects& old, bool first) const {
    auto before = old.begin();
    for (auto now = objects_.begin(); now != objects_.end() || before != old.end();) {
      const Less less;
      if (now == objects_.end() || (before != old.end() && less(*before, *now))) {
        emit({Delta<T>::Type::deleted, false, *before++, nullptr});
      } else if (before == old.end() || less(*now, *before)) {
        emit({Delta<T>::Type::added, first, nullptr, *now++});
      } else {
        if (*before != *now) emit({Delta<T>::Type::updated, false, *before, *now});
        ++before;
        ++now;
      }
    }
  }

  void append(std::size_t index, const Pointer& object) {
    const std::string_view value = indexes_[index].value(*object);
    if (!value.empty()) buckets_[index][std::string(value)].push_back(object);
  }

  void insert(const Pointer& object) {
    objects_.insert(object);
    snapshot_.reset();
    for (std::size_t i = 0; i < indexes_.size(); ++i) {
      const std::string_view value = indexes_[i].value(*object);
      if (value.empty()) continue;
      List& bucket = buckets_[i][std::string(value)];
      bucket.insert(std::lower_bound(bucket.begin(), bucket.end(), object, Less{}), object);
    }
  }

  Pointer extract(KeyView key) {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return nullptr;
    Pointer object = *found;
    for (std::size_t i = 0; i < indexes_.size(); ++i) {
      const std::string_view value = indexes_[i].value(*object);
      if (value.empty()) continue;
      const auto bucket = buckets_[i].find(value);
      List& list = bucket->second;
      list.erase(std::lower_bound(list.begin(), list.end(), object, Less{}));
      if (list.empty()) buckets_[i].erase(bucket);
    }
    objects_.erase(found);
    snapshot_.reset();
    return object;
  }

  std::vector<Index<T>> indexes_;
  mutable std::mutex mutex_;  // everything below up to the blank line, against other threads
  Objects objects_;
  std::vector<Buckets> buckets_;
  mutable std::shared_ptr<const List> snapshot_;

  Objects pending_;
  std::vector<Callback> callbacks_;
};

}  // namespace kwatt::kube
