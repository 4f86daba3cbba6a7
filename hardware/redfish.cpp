#include "hardware/redfish.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "hardware/redfish_messages.hpp"

namespace kwatt::hardware {
namespace {

using redfish::Power;
using redfish::System;

std::string basic_authorization(const Credentials& credentials) {
  const std::string plain = credentials.user + ":" + credentials.password;
  std::string encoded(4 * ((plain.size() + 2) / 3) + 1, '\0');  // EVP writes a final NUL
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                   reinterpret_cast<const unsigned char*>(plain.data()),
                                   static_cast<int>(plain.size()));
  encoded.resize(static_cast<std::size_t>(size));
  return "Basic " + encoded;
}

net::Limits limits_of(Duration timeout) {
  return {.connect = std::min<Duration>(timeout, std::chrono::seconds{10}),
          .header = timeout,
          .total = timeout,
          .header_bytes = 16 * 1024,
          .body_bytes = 1024 * 1024};
}

net::TlsConfig trusting(const std::string& ca_pem) {
  net::TlsConfig tls;
  tls.ca_pem = ca_pem;
  return tls;
}

bool reached(Reset reset, MachinePower power) {
  return power == (reset == Reset::on ? MachinePower::on : MachinePower::off);
}

class RedfishDriver final : public PowerDriver {
 public:
  RedfishDriver(boost::asio::any_io_executor executor, DriverConfig config, const net::Url& url)
      : system_path_(url.path),
        limits_(limits_of(config.timeout)),
        client_(
            std::move(executor), url.origin, [ca = config.ca_pem] { return trusting(ca); },
            config.address_allowed) {
    if (config.credentials) authorization_ = basic_authorization(*config.credentials);
  }

  Task<Result<MachinePower>> state() override {
    auto system = co_await read_system();
    if (!system) co_return system.error();
    co_return system->power;
  }

  Task<Result<void>> reset(Reset reset, std::string operation_id) override {
    auto system = co_await read_system();
    if (!system) co_return system.error();
    if (system->allowed.empty() && !system->action_info.empty()) {
      auto info = co_await get(system->action_info);
      if (!info) co_return info.error();
      auto types = redfish::parse_reset_types(info->body);
      if (!types) co_return types.error().with_context("reset ActionInfo");
      system->allowed = std::move(*types);
    }
    auto type = redfish::reset_type(*system, reset);
    if (!type) co_return type.error();
    net::Headers headers;
    if (!operation_id.empty()) headers.set("Kwatt-Operation-Id", operation_id);
    auto answer =
        co_await send("POST", system->reset_target, redfish::reset_body(*type), std::move(headers));
    if (!answer) co_return answer.error();
    const auto error = redfish::error_of(*answer);
    if (!error) co_return Result<void>{};
    const bool refused = answer->status == 400 || answer->status == 409;
    if (refused && reached(reset, system->power)) co_return Result<void>{};
    co_return error->with_context("reset " + *type);
  }

  Task<Result<std::optional<Milliwatts>>> power_reading() override {
    auto power = co_await read_power();
    if (power) co_return redfish::reading_of(power->resource);
    // A service without power telemetry has no sensor, which is no failure.
    if (power.error().code == ErrorCode::unsupported) co_return std::optional<Milliwatts>{};
    co_return power.error();
  }

  Task<Result<void>> set_power_limit(std::optional<Milliwatts> limit) override {
    auto power = co_await read_power();
    if (!power) co_return power.error();
    if (!power->resource.limitable) {
      co_return fail(ErrorCode::unsupported, "the machine has no PowerControl to limit");
    }
    net::Headers headers;
    if (!power->etag.empty()) headers.set("If-Match", power->etag);
    auto answer =
        co_await send("PATCH", power->path, redfish::limit_body(limit), std::move(headers));
    if (!answer) co_return answer.error();
    auto error = redfish::error_of(*answer);
    if (!error) co_return Result<void>{};
    // The limit is the only thing in the request that can be a wrong value.
    if (answer->status == 400 || answer->status == 422) error->code = ErrorCode::out_of_range;
    co_return error->with_context("power limit");
  }

 private:
  struct PowerResource {
    Power resource;
    std::string path, etag;
  };

  Task<Result<net::Response>> send(std::string method, std::string target, std::string body,
                                   net::Headers headers) {
    headers.set("Accept", "application/json");
    headers.set("OData-Version", "4.0");
    if (!body.empty()) headers.set("Content-Type", "application/json");
    if (!authorization_.empty()) headers.set("Authorization", authorization_);
    net::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.headers = std::move(headers);
    request.body = std::move(body);
    co_return co_await client_.send(std::move(request), limits_);
  }

  Task<Result<net::Response>> get(std::string path) {
    auto answer = co_await send("GET", path, {}, {});
    if (!answer) co_return answer.error();
    if (auto error = redfish::error_of(*answer)) co_return error->with_context(path);
    co_return answer;
  }

  Task<Result<System>> read_system() {
    auto answer = co_await get(system_path_);
    if (!answer) co_return answer.error();
    auto system = redfish::parse_system(answer->body);
    // HTML with status 200 is how some controllers say that they are busy or need a login.
    if (!system) co_return as_protocol(system.error(), system_path_);
    co_return system;
  }

  Task<Result<PowerResource>> read_power() {
    auto system = co_await read_system();
    if (!system) co_return system.error();
    if (power_path_.empty()) {
      auto found = co_await find_power(system->chassis);
      if (!found) co_return found.error();
      power_path_ = std::move(*found);
    }
    auto answer = co_await get(power_path_);
    if (!answer) {
      if (answer.error().code != ErrorCode::not_found) co_return answer.error();
      co_return no_power();
    }
    auto power = redfish::parse_power(answer->body);
    if (!power) co_return as_protocol(power.error(), power_path_);
    PowerResource resource{std::move(*power), power_path_, std::string{}};
    const auto header = answer->headers.get("ETag");
    resource.etag = header.empty() ? resource.resource.etag : std::string(header);
    co_return resource;
  }

  Task<Result<std::string>> find_power(std::string chassis) {
    if (chassis.empty()) co_return no_power();
    auto answer = co_await get(chassis);
    if (!answer) {
      if (answer.error().code != ErrorCode::not_found) co_return answer.error();
      co_return no_power();
    }
    auto link = redfish::parse_power_link(answer->body);
    if (!link) co_return as_protocol(link.error(), chassis);
    if (link->empty()) co_return no_power();
    co_return link;
  }

  static Error no_power() {
    return fail(ErrorCode::unsupported, "the machine's chassis has no Power resource");
  }

  static Error as_protocol(Error error, std::string_view where) {
    error.code = ErrorCode::protocol;
    return error.with_context(where);
  }

  std::string system_path_;
  std::string power_path_;  // found once; a service does not move it
  std::string authorization_;
  net::Limits limits_;
  net::Client client_;
};

}  // namespace

std::unique_ptr<PowerDriver> make_redfish_driver(boost::asio::any_io_executor executor,
                                                 DriverConfig config, const net::Url& url) {
  return std::make_unique<RedfishDriver>(std::move(executor), std::move(config), url);
}

}  // namespace kwatt::hardware
