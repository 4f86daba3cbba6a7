#pragma once
// FakeApi: objects as JSON by path, and the patches that were sent. Stands in for an API server.
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "api/encode.hpp"
#include "cli/program.hpp"
#include "test/support/stub_client.hpp"

namespace kwatt::cli {

// What tests fill, and look at afterwards; outlives the clients made for it.
struct FakeCluster {
  std::map<std::string, std::string> objects;  // "/api/v1/nodes/a" → JSON
  struct Patch {
    std::string path, body;
    bool operator==(const Patch&) const = default;
  };
  std::vector<Patch> patches;
  std::vector<Patch> posts;        // creates
  std::vector<std::string> lists;  // paths with queries
  std::function<void()> on_get;    // before a get is answered
  std::optional<Error> failure;    // of every call
  // What is no object: answers to Session::fetch, and what was asked.
  net::Response fetched;
  std::vector<std::string> fetches;
  net::Headers fetch_headers;  // of the last one
  net::Request sent;           // by Session::send, the last one; answered like a fetch

  template <class T>
  void add(const kube::Resource& resource, const T& object,
           const std::string& namespace_name = {}) {
    objects[kube::path_of(resource, namespace_name, object.meta.name)] = api::encode(object);
  }
};

class FakeApi final : public test::StubClient {
 public:
  explicit FakeApi(FakeCluster& cluster) : cluster_(cluster) {}

  kube::Task<Result<std::string>> get(const kube::Resource& resource, kube::Name name) override {
    if (cluster_.on_get) cluster_.on_get();
    co_return find(kube::path_of(resource, name.namespace_name, name.name));
  }
  kube::Task<Result<std::string>> patch(const kube::Resource& resource, kube::Name name,
                                        PatchType type, std::string, std::string subresource,
                                        std::string body) override {
    const std::string path = kube::path_of(resource, name.namespace_name, name.name, subresource);
    auto there = find(path);
    if (!there) co_return there;
    if (type != PatchType::merge) co_return fail(ErrorCode::forbidden, "only merge patches");
    cluster_.patches.push_back({path, body});
    co_return there;
  }
  // What a create answers stands in `objects`, under the path of the collection.
  kube::Task<Result<std::string>> create(const kube::Resource& resource, std::string namespace_name,
                                         std::string body) override {
    const std::string path = kube::path_of(resource, namespace_name);
    auto there = find(path);
    if (there) cluster_.posts.push_back({path, body});
    co_return there;
  }
  kube::Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string path_and_query) override {
    cluster_.lists.push_back(path_and_query);
    if (cluster_.failure) co_return *cluster_.failure;
    const std::string prefix = path_and_query.substr(0, path_and_query.find('?')) + "/";
    std::string items;
    for (const auto& [path, json] : cluster_.objects) {
      if (path.starts_with(prefix)) items += (items.empty() ? "" : ",") + json;
    }
    auto body = std::make_shared<test::MemoryBody>();
    body->add(R"({"kind":"List","metadata":{"resourceVersion":"1"},"items":[)" + items + "]}");
    body->end();
    std::unique_ptr<net::BodyStream> stream =
        std::make_unique<test::MemoryStream>(200, std::move(body));
    co_return std::move(stream);
  }

 private:
  Result<std::string> find(const std::string& path) const {
    if (cluster_.failure) return *cluster_.failure;
    const auto found = cluster_.objects.find(path);
    if (found == cluster_.objects.end()) return fail(ErrorCode::not_found, "GET " + path);
    return found->second;
  }

  FakeCluster& cluster_;
};

inline net::Task<Result<net::Response>> fetched(FakeCluster& cluster, std::string path,
                                                net::Headers headers) {
  cluster.fetches.push_back(std::move(path));
  cluster.fetch_headers = std::move(headers);
  if (cluster.failure) co_return *cluster.failure;
  co_return cluster.fetched;
}

inline net::Task<Result<net::Response>> answered(FakeCluster& cluster, net::Request request) {
  cluster.sent = std::move(request);
  if (cluster.failure) co_return *cluster.failure;
  co_return cluster.fetched;
}

// One call of the program.
struct Called {
  int status = 0;
  std::string out, err;
};
inline Called call(FakeCluster& cluster, const Clock& clock,
                   const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  World world{out, err, clock,
              [&](boost::asio::any_io_executor, const kube::FindConfig&,
                  const Clock&) -> Result<Connection> {
                Connection connection;
                connection.client = std::make_unique<FakeApi>(cluster);
                connection.namespace_name = "shop";
                connection.fetch = [&cluster](std::string path, net::Headers headers) {
                  return fetched(cluster, std::move(path), std::move(headers));
                };
                connection.send = [&cluster](net::Request request, Duration) {
                  return answered(cluster, std::move(request));
                };
                return connection;
              }};
  Called called;
  called.status = run(arguments, world);
  called.out = out.str();
  called.err = err.str();
  return called;
}

}  // namespace kwatt::cli
