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

namespace kwatt::cli {

class FakeStream final : public net::BodyStream {
 public:
  FakeStream(int status, std::string body) : status_(status), body_(std::move(body)) {}
  int status() const override { return status_; }
  const net::Headers& headers() const override { return headers_; }
  net::Task<Result<std::string_view>> read_some(Duration) override {
    if (read_) co_return std::string_view();
    read_ = true;
    co_return std::string_view(body_);
  }
  net::Task<Result<std::string>> read_all(std::size_t, Duration) override { co_return body_; }

 private:
  int status_;
  std::string body_;
  net::Headers headers_;
  bool read_ = false;
};

// What tests fill, and look at afterwards; outlives the clients made for it.
struct FakeCluster {
  std::map<std::string, std::string> objects;  // "/api/v1/nodes/a" → JSON
  struct Patch {
    std::string path, body;
    bool operator==(const Patch&) const = default;
  };
  std::vector<Patch> patches;
  std::vector<std::string> lists;  // paths with queries
  std::function<void()> on_get;    // before a get is answered
  std::optional<Error> failure;    // of every call

  template <class T>
  void add(const kube::Resource& resource, const T& object,
           const std::string& namespace_name = {}) {
    objects[kube::path_of(resource, namespace_name, object.meta.name)] = api::encode(object);
  }
};

class FakeApi final : public kube::Client {
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
  kube::Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string path_and_query) override {
    cluster_.lists.push_back(path_and_query);
    if (cluster_.failure) co_return *cluster_.failure;
    const std::string prefix = path_and_query.substr(0, path_and_query.find('?')) + "/";
    std::string items;
    for (const auto& [path, json] : cluster_.objects) {
      if (path.starts_with(prefix)) items += (items.empty() ? "" : ",") + json;
    }
    std::unique_ptr<net::BodyStream> stream = std::make_unique<FakeStream>(
        200, R"({"kind":"List","metadata":{"resourceVersion":"1"},"items":[)" + items + "]}");
    co_return std::move(stream);
  }

  kube::Task<Result<std::string>> create(const kube::Resource&, std::string, std::string) override {
    return refuse<std::string>();
  }
  kube::Task<Result<std::string>> replace(const kube::Resource&, kube::Name, std::string) override {
    return refuse<std::string>();
  }
  kube::Task<Result<std::string>> replace_status(const kube::Resource&, kube::Name,
                                                 std::string) override {
    return refuse<std::string>();
  }
  kube::Task<Result<void>> remove(const kube::Resource&, kube::Name, std::string) override {
    return refuse<void>();
  }
  kube::Task<Result<void>> evict(kube::Name, std::string) override { return refuse<void>(); }

 private:
  template <class T>
  static kube::Task<Result<T>> refuse() {
    co_return fail(ErrorCode::forbidden, "not what this program may do");
  }
  Result<std::string> find(const std::string& path) const {
    if (cluster_.failure) return *cluster_.failure;
    const auto found = cluster_.objects.find(path);
    if (found == cluster_.objects.end()) return fail(ErrorCode::not_found, "GET " + path);
    return found->second;
  }

  FakeCluster& cluster_;
};

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
                return connection;
              }};
  Called called;
  called.status = run(arguments, world);
  called.out = out.str();
  called.err = err.str();
  return called;
}

}  // namespace kwatt::cli
