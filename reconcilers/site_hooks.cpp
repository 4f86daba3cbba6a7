#include "reconcilers/site_hooks.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/patch.hpp"
#include "hardware/command.hpp"
#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr int kNotYet = 6;  // beside the exit codes that command: drivers know
constexpr std::size_t kOutputLimit = 4096;
constexpr std::size_t kLongestId = 253;
constexpr Duration kTimeout = std::chrono::seconds{60};

Result<std::string> machine_id(std::string text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  const bool plain =
      !text.empty() && text.size() <= kLongestId &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (plain) return text;
  return fail(ErrorCode::protocol,
              fmt::format("the hook's answer is no id of a machine (1 to {} printable characters "
                          "without blanks)",
                          kLongestId),
              hardware::excerpt(text));
}

}  // namespace

bool is_refusal(const Error& error) {
  return error.code == ErrorCode::unsupported || error.code == ErrorCode::out_of_range;
}

Result<HookAnswer> parse_hook_output(const hardware::Finished& finished) {
  if (finished.exit_code == kNotYet) return HookAnswer{false, ""};
  if (finished.exit_code != 0) return hardware::command_error(finished, "the hook");
  auto id = machine_id(finished.out);
  if (!id) return id.error();
  return HookAnswer{true, std::move(*id)};
}

Result<HookAnswer> parse_hook_response(const net::Response& response) {
  const int status = response.status;
  const std::string said = hardware::excerpt(response.body);
  if (status == 202) return HookAnswer{false, ""};
  if (status == 200 || status == 201) {
    const auto document = hardware::parse_json(response.body);
    const std::string_view id =
        document ? hardware::text_at(*document, {"machineID"}) : std::string_view{};
    auto known = machine_id(std::string(id));
    if (!known) return known.error();
    return HookAnswer{true, std::move(*known)};
  }
  // Of the request itself, so that it would be refused again.
  if (status == 400 || status == 404 || status == 422 || status == 501) {
    return fail(ErrorCode::unsupported, fmt::format("the hook refuses with HTTP {}", status), said);
  }
  if (status == 409 || status == 507) {
    return fail(ErrorCode::out_of_range, fmt::format("the hook has no room (HTTP {})", status),
                said);
  }
  return fail(status == 401 || status == 403 ? ErrorCode::unauthorized : ErrorCode::unavailable,
              fmt::format("the hook answers HTTP {}", status), said);
}

SiteHooks::SiteHooks(boost::asio::any_io_executor executor,
                     std::map<std::string, std::string> hooks)
    : executor_(std::move(executor)), hooks_(std::move(hooks)) {}
SiteHooks::~SiteHooks() = default;

net::Task<Result<HookAnswer>> SiteHooks::call(std::string hook, HookCall call) {
  const auto found = hooks_.find(hook);
  if (found == hooks_.end()) {
    co_return fail(ErrorCode::not_found,
                   fmt::format("site {}: no hook is called \"{}\"; the controller gets it with "
                               "--site-hook {}=/path/of/program or a URL",
                               call.site, hook, hook.empty() ? "NAME" : hook));
  }
  std::string target = found->second;
  if (target.starts_with('/')) co_return co_await run(std::move(target), std::move(call));
  co_return co_await post(std::move(target), std::move(call));
}

net::Task<Result<HookAnswer>> SiteHooks::run(std::string path, HookCall call) {
  hardware::Program program(path, {"create", call.site});
  auto& environment = program.environment;
  environment.emplace_back("KWATT_SITE", call.site);
  environment.emplace_back("KWATT_OPERATION_ID", call.operation_id);
  environment.emplace_back("KWATT_RECOMMENDATION", call.recommendation);
  environment.emplace_back("KWATT_REQUEST", call.request_json);
  program.timeout = kTimeout;
  program.output_limit = kOutputLimit;
  auto finished = co_await hardware::run_program(std::move(program));
  if (!finished) co_return finished.error().with_context(path);
  co_return parse_hook_output(*finished);
}

net::Task<Result<HookAnswer>> SiteHooks::post(std::string root, HookCall call) {
  auto url = net::parse_url(root);
  if (!url) co_return url.error().with_context("--site-hook");
  auto& known = clients_[root];
  if (known == nullptr) {
    known = std::make_shared<net::Client>(executor_, url->origin, net::Client::TlsSource{});
  }
  const auto client = known;
  api::MergePatch body;
  body.set({"site"}, call.site)
      .set({"operationID"}, call.operation_id)
      .set({"recommendation"}, call.recommendation)
      .set({"request"}, api::JsonValue::raw(call.request_json));
  net::Request request("POST", url->path);
  request.headers.set("Content-Type", "application/json");
  request.headers.set("Kwatt-Operation-Id", call.operation_id);
  request.headers.set("Idempotency-Key", call.operation_id);
  request.body = body.text();
  net::Limits limits;
  limits.header = limits.total = kTimeout;
  limits.body_bytes = 64 * 1024;
  auto response = co_await client->send(std::move(request), limits);
  if (!response) co_return response.error();
  co_return parse_hook_response(*response);
}

}  // namespace kwatt::reconcilers
