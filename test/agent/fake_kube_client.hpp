#pragma once
// FakeKubeClient: the one NodePower and the one Lease an agent talks about, with failures on
// demand. An agent does nothing else.
#include <optional>
#include <string>
#include <vector>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "test/support/stub_client.hpp"

namespace kwatt::agent {

class FakeKubeClient final : public test::StubClient {
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
};

}  // namespace kwatt::agent
