// The local copy: replacement, indexes, what subscribers are told.
#include <map>
#include <random>
#include <thread>

#include <doctest/doctest.h>

#include "kube/indexes.hpp"
#include "kube/store.hpp"

using namespace kwatt;
using namespace kwatt::kube;

namespace {

api::Pod pod(const std::string& name, const std::string& version, const std::string& node = "",
             const std::string& space = "default") {
  api::Pod made;
  made.namespace_name = space;
  made.name = name;
  made.resource_version = version;
  made.node_name = node;
  return made;
}

struct PodStore {
  PodStore() { store.subscribe(logger()); }

  Store<api::Pod>::Callback logger() {
    return [this](const Delta<api::Pod>& delta) {
      using Type = Delta<api::Pod>::Type;
      const auto text = [](const std::shared_ptr<const api::Pod>& p) {
        return p ? p->key() + "@" + p->resource_version : std::string("-");
      };
      static const std::map<Type, std::string> kNames = {{Type::added, "added"},
                                                         {Type::updated, "updated"},
                                                         {Type::deleted, "deleted"},
                                                         {Type::synced, "synced"}};
      std::string line = kNames.at(delta.type);
      if (delta.type != Type::synced) line += " " + text(delta.old) + " " + text(delta.now);
      if (delta.initial) line += " initial";
      log.push_back(line);
    };
  }
  void list(std::vector<api::Pod> pods) {
    store.begin_replace();
    for (auto& p : pods) store.add_to_replacement(std::move(p));
    store.commit_replacement();
  }
  std::vector<std::string> on_node(const std::string& node) const {
    std::vector<std::string> names;
    for (const auto& p : store.by_index(kPodsByNode, node)) names.push_back(p->name);
    return names;
  }

  Store<api::Pod> store{"pods", pod_indexes()};
  std::vector<std::string> log;
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(PodStore, "store: nothing counts before the first complete list") {
  store.begin_replace();
  store.add_to_replacement(pod("a", "1"));
  CHECK_FALSE(store.ready());
  CHECK(store.size() == 0);
  CHECK(store.get("default/a") == nullptr);
  CHECK(log.empty());
  store.commit_replacement();
  CHECK(store.ready());
  CHECK(store.get("default/a")->resource_version == "1");
  CHECK(log == Lines{"added - default/a@1 initial", "synced initial"});
}

TEST_CASE_FIXTURE(PodStore, "store: a list attempt that failed leaves nothing behind") {
  store.begin_replace();
  store.add_to_replacement(pod("half", "1"));
  list({pod("a", "2")});
  CHECK(store.size() == 1);
  CHECK(store.get("default/half") == nullptr);
}

TEST_CASE_FIXTURE(PodStore,
                  "store: a relist tells what came, changed and went, with the last state") {
  list({pod("a", "1"), pod("b", "2"), pod("c", "3")});
  const auto kept = store.get("default/a");
  log.clear();
  list({pod("d", "9"), pod("c", "8"), pod("a", "1")});
  CHECK(log == Lines{"deleted default/b@2 -", "updated default/c@3 default/c@8",
                     "added - default/d@9", "synced"});
  CHECK(store.get("default/a") == kept);  // the same object, not a copy
}

TEST_CASE_FIXTURE(PodStore, "store: changes after the list") {
  list({pod("a", "1")});
  log.clear();
  store.put(pod("a", "2"));
  store.put(pod("b", "3"));
  store.remove(pod("a", "4"));
  store.remove(pod("never", "5"));
  CHECK(log ==
        Lines{"updated default/a@1 default/a@2", "added - default/b@3", "deleted default/a@4 -"});
  CHECK(store.size() == 1);
}

TEST_CASE_FIXTURE(PodStore, "store: who subscribes late is told what is there") {
  list({pod("b", "2"), pod("a", "1")});
  log.clear();
  store.subscribe(logger());
  CHECK(log ==
        Lines{"added - default/a@1 initial", "added - default/b@2 initial", "synced initial"});
}

TEST_CASE_FIXTURE(PodStore, "store: objects stay as they were for whoever holds them") {
  list({pod("a", "1", "n1")});
  const auto held = store.get("default/a");
  const auto all = store.snapshot();
  store.put(pod("a", "2", "n2"));
  store.remove(pod("a", "3"));
  CHECK(held->node_name == "n1");
  CHECK(all.size() == 1);
  CHECK(store.snapshot().empty());
}

TEST_CASE_FIXTURE(PodStore,
                  "store: a snapshot is sorted, and the same one until something changes") {
  list({pod("b", "2"), pod("a", "1"), pod("z", "3", "", "aaa")});
  const auto first = store.snapshot();
  CHECK((first == store.snapshot()));
  Lines keys;
  for (const auto& p : first) keys.push_back(p->key());
  CHECK(keys == Lines{"aaa/z", "default/a", "default/b"});
  store.put(pod("c", "4"));
  CHECK((first != store.snapshot()));
}

TEST_CASE_FIXTURE(PodStore, "index: follows every change in the same step") {
  list({pod("b", "1", "n1"), pod("a", "2", "n1"), pod("c", "3", "n2"), pod("free", "4")});
  CHECK(on_node("n1") == Lines{"a", "b"});
  CHECK(on_node("n2") == Lines{"c"});
  CHECK(on_node("").empty());
  // A subscriber already sees the new index.
  Lines seen;
  store.subscribe([&](const Delta<api::Pod>& delta) {
    if (delta.type == Delta<api::Pod>::Type::updated) seen = on_node("n2");
  });
  store.put(pod("a", "5", "n2"));
  CHECK(seen == Lines{"a", "c"});
  CHECK(on_node("n1") == Lines{"b"});
  store.remove(pod("b", "6", "elsewhere"));
  CHECK(on_node("n1").empty());
  list({pod("x", "9", "n1")});
  CHECK(on_node("n1") == Lines{"x"});
  CHECK(on_node("n2").empty());
}

TEST_CASE_FIXTURE(PodStore, "index: pods by the uid of their controlling owner") {
  api::Pod owned = pod("a", "1");
  api::OwnerReference owner;
  owner.uid = "u-1";
  owned.owner = std::make_shared<const api::OwnerReference>(owner);
  list({std::move(owned), pod("bare", "2")});
  REQUIRE(store.by_index(kPodsByOwner, "u-1").size() == 1);
  CHECK(store.by_index(kPodsByOwner, "u-1")[0]->name == "a");
}

TEST_CASE("store: keys are namespace/name, or the name alone") {
  CHECK(KeyView{"ns", "a"}.text() == "ns/a");
  CHECK(KeyView{"", "a"}.text() == "a");
  CHECK(split_key("ns/a") == KeyView{"ns", "a"});
  CHECK(split_key("a") == KeyView{"", "a"});
  Store<api::Node> nodes("nodes");
  api::Node node;
  node.meta.name = "n1";
  nodes.begin_replace();
  nodes.add_to_replacement(node);
  nodes.commit_replacement();
  CHECK(nodes.get("n1") != nullptr);
  CHECK(nodes.get("x/n1") == nullptr);
}

TEST_CASE("store: the age counts from the last contact") {
  Store<api::Pod> store("pods");
  CHECK(store.last_contact() == MonotonicPoint{});
  store.touch(MonotonicPoint{std::chrono::seconds{7}});
  CHECK(store.last_contact() == MonotonicPoint{std::chrono::seconds{7}});
}

TEST_CASE("store: equals the model after any script of changes, indexes included") {
  for (const unsigned seed : {1U, 2U, 3U, 7U, 11U, 42U, 1001U, 31337U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    Store<api::Pod> store("pods", pod_indexes());
    std::map<std::string, api::Pod> model, mirror;  // mirror: what the deltas alone tell
    store.subscribe([&](const Delta<api::Pod>& delta) {
      if (delta.now) mirror[delta.now->key()] = *delta.now;
      if (delta.type == Delta<api::Pod>::Type::deleted) mirror.erase(delta.old->key());
    });
    for (int step = 0; step < 600; ++step) {
      const auto make = [&] {
        return pod("p" + std::to_string(below(20)), std::to_string(step),
                   below(4) == 0 ? "" : "n" + std::to_string(below(3)),
                   "ns" + std::to_string(below(2)));
      };
      const unsigned what = below(20);
      if (what == 0) {
        store.begin_replace();
        model.clear();
        for (unsigned i = below(15); i > 0; --i) {
          auto p = make();
          if (model.emplace(p.key(), p).second) store.add_to_replacement(std::move(p));
        }
        store.commit_replacement();
      } else if (what < 14) {
        auto p = make();
        model[p.key()] = p;
        store.put(std::move(p));
      } else {
        auto p = make();
        model.erase(p.key());
        store.remove(std::move(p));
      }
      REQUIRE(store.size() == model.size());
      REQUIRE(mirror.size() == model.size());
      // One assertion a step: thousands of them are what makes a sanitized run slow.
      std::map<std::string, std::vector<std::string>> by_node;
      bool same = true;
      for (const auto& [key, p] : model) {
        const auto stored = store.get(key);
        same = same && stored && stored->resource_version == p.resource_version &&
               mirror.at(key).resource_version == p.resource_version;
        if (!p.node_name.empty()) by_node[p.node_name].push_back(key);
      }
      REQUIRE(same);
      for (const std::string node : {"n0", "n1", "n2"}) {
        std::vector<std::string> indexed;
        for (const auto& p : store.by_index(kPodsByNode, node)) indexed.push_back(p->key());
        REQUIRE(indexed == by_node[node]);
      }
    }
  }
}

TEST_CASE("store: other threads read while the informer writes") {
  Store<api::Pod> store("pods", pod_indexes());
  std::atomic<bool> stop{false};
  std::atomic<long> read{0};
  std::thread reader([&] {
    while (!stop) {
      for (const auto& p : store.snapshot()) read += static_cast<long>(p->name.size());
      read += static_cast<long>(store.by_index(kPodsByNode, "n1").size());
      read += static_cast<long>(store.size()) + (store.get("default/p1") ? 1 : 0);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 3000; ++i) {
    if (i % 500 == 0) {
      store.begin_replace();
      store.add_to_replacement(pod("p0", std::to_string(i), "n0"));
      store.commit_replacement();
    }
    store.put(pod("p" + std::to_string(i % 50), std::to_string(i), "n" + std::to_string(i % 3)));
  }
  stop = true;
  reader.join();
  CHECK(store.size() == 50);
}
