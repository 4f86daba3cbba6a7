#pragma once
// A store that keeps itself equal to the API server: reflector + decoder + store for one resource.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/reflector.hpp"
#include "kube/store.hpp"

namespace kwatt::kube {

template <class T>
class Informer {
 public:
  // Errors: parse. Called with the raw JSON of one object.
  using Decode = std::function<Result<T>(std::string_view json)>;

  // `client`, `clock` and `metrics` outlive it. The store's name is the resource's plural.
  Informer(Client& client, WatchTarget target, Decode decode, const Clock& clock, Metrics& metrics,
           std::vector<Index<T>> indexes = {}, ReflectorOptions options = {})
      : store_(target.resource.plural, std::move(indexes)),
        sink_(store_, std::move(decode)),
        reflector_(client, std::move(target), options, sink_, clock, metrics) {}

  Store<T>& store() { return store_; }
  const Store<T>& store() const { return store_; }

  // Runs until cancelled; ends with operation_aborted. Call once, on the strand that owns the
  // store.
  Task<void> run() { return reflector_.run(); }

 private:
  class Sink final : public ReflectorSink {
   public:
    Sink(Store<T>& store, Decode decode) : store_(store), decode_(std::move(decode)) {}
    void list_started() override { store_.begin_replace(); }
    Result<void> list_item(std::string_view json) override {
      Result<T> object = decode_(json);
      if (!object) return object.error();
      store_.add_to_replacement(std::move(*object));
      return {};
    }
    void list_complete() override { store_.commit_replacement(); }
    Result<std::string> change(Change change, std::string_view json) override {
      Result<T> object = decode_(json);
      if (!object) return object.error();
      std::string version = kube::resource_version_of(*object);
      change_ = change;
      pending_ = std::move(*object);
      return version;
    }
    void apply() override {
      if (!pending_) return;
      T object = std::move(*pending_);
      pending_.reset();
      if (change_ == Change::put) {
        store_.put(std::move(object));
      } else {
        store_.remove(std::move(object));
      }
    }
    void contact(MonotonicPoint now) override { store_.touch(now); }
    std::size_t size() const override { return store_.size(); }

   private:
    Store<T>& store_;
    Decode decode_;
    Change change_ = Change::put;
    std::optional<T> pending_;
  };

  Store<T> store_;
  Sink sink_;
  Reflector reflector_;
};

// Waits until all stores had their first complete list: no decision before that.
// Errors: timeout, naming the stores that are missing.
Task<Result<void>> wait_until_ready(std::vector<const StoreState*> stores, Duration timeout);

}  // namespace kwatt::kube
