#pragma once
// FakeKubeClient: the one NodePower and the one Lease an agent talks about, with failures on
// demand.
#include <optional>
#include <string>
#include <vector>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "kube/client.hpp"

namespace kwatt::agent {

class FakeKubeClient final : public kube::Client {
 public:
  std::optional<api::NodePower> power = api::NodePower{};  // nullopt: 404
  std::optional<ErrorCode> failure;                        // of every call
  std::vector<api::AgentReport> reports;                   // that were written
  std::function<void()> on_patch;                          // before a patch is answered

  const api::AgentReport& report() const { return reports.back(); }

  kube::Task<Result<std::string>> get(const kube::Resource&, kube::Name) override {
    if (failure) co_return fail(*failure, "fake failure");
    if (!power) co_return fail(ErrorCode::not_found, "no NodePower");
    co_return api::encode(*power);
  }
  kube::Task<Result<std::string>> patch(const kube::Resource&, kube::Name, PatchType type,
                                        std::string field_manager, std::string subresource,
                                        std::string body) override {
    if (on_patch) on_patch();
    if (failure) co_return fail(*failure, "fake failure");
    if (!power) co_return fail(ErrorCode::not_found, "no NodePower");
    if (type != PatchType::apply || field_manager != "kwatt-agent" || subresource != "status") {
      co_return fail(ErrorCode::forbidden, "not what an agent may do");
    }
    api::NodePower applied;
    if (auto done = api::decode(body, applied); !done) co_return done.error();
    power->status.report = applied.status.report;  // one manager owns it all: replaced whole
    reports.push_back(applied.status.report);
    co_return body;
  }

  // What an agent never does.
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
  kube::Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string) override {
    return refuse<std::unique_ptr<net::BodyStream>>();
  }

 private:
  template <class T>
  static kube::Task<Result<T>> refuse() {
    co_return fail(ErrorCode::forbidden, "not what an agent may do");
  }
};

}  // namespace kwatt::agent
