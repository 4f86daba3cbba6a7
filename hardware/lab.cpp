#include "hardware/lab.hpp"

#include <algorithm>
#include <cmath>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"

namespace kwatt::hardware {
namespace {

constexpr double kImplausibleWatts = 1e6;

std::string_view word_of(Reset reset) {
  switch (reset) {
    case Reset::on:
      return "On";
    case Reset::graceful_shutdown:
      return "GracefulShutdown";
    case Reset::force_off:
      return "ForceOff";
  }
  return "";
}

ErrorCode code_of(int status) {
  switch (status) {
    case 401:
      return ErrorCode::unauthorized;
    case 404:
      return ErrorCode::not_found;
    case 409:
      return ErrorCode::conflict;
    case 503:
      return ErrorCode::unavailable;
    default:
      return ErrorCode::protocol;
  }
}

class LabDriver final : public PowerDriver {
 public:
  LabDriver(boost::asio::any_io_executor executor, const DriverConfig& config, const net::Url& url)
      : base_(url.path),
        limits_{.connect = std::min<Duration>(config.timeout, std::chrono::seconds{10}),
                .header = config.timeout,
                .total = config.timeout,
                .header_bytes = 16 * 1024,
                .body_bytes = 64 * 1024},
        client_(std::move(executor), url.origin, {}, config.address_allowed) {}

  Task<Result<MachinePower>> state() override {
    auto power = co_await call("GET", "/power", {}, {});
    if (!power) co_return power.error();
    co_return power->power;
  }

  Task<Result<void>> reset(Reset reset, std::string operation_id) override {
    auto power = co_await call("POST", "/power", fmt::format(R"({{"reset":"{}"}})", word_of(reset)),
                               std::move(operation_id));
    if (!power) co_return power.error();
    co_return Result<void>{};
  }

  Task<Result<std::optional<Milliwatts>>> power_reading() override {
    auto power = co_await call("GET", "/power", {}, {});
    if (!power) co_return power.error();
    co_return reading_of(*power);
  }

  Task<Result<void>> set_power_limit(std::optional<Milliwatts> limit,
                                     std::string operation_id) override {
    std::string watts = "null";
    if (limit) {
      watts = fmt::format("{}.{:03}", limit->count() / 1000, limit->count() % 1000);
    }
    auto power = co_await call("PUT", "/cap", fmt::format(R"({{"watts":{}}})", watts),
                               std::move(operation_id));
    if (power) co_return Result<void>{};
    Error error = power.error();
    if (limit && error.code == ErrorCode::invalid_argument) error.code = ErrorCode::out_of_range;
    co_return error;
  }

 private:
  Task<Result<LabPower>> call(std::string method, std::string_view path, std::string body,
                              std::string operation_id) {
    net::Request request;
    request.method = std::move(method);
    request.target = base_ + std::string(path);
    request.body = std::move(body);
    if (!request.body.empty()) request.headers.set("Content-Type", "application/json");
    if (!operation_id.empty()) request.headers.set("Kwatt-Operation-Id", operation_id);
    auto answer = co_await client_.send(std::move(request), limits_);
    if (!answer) co_return answer.error();
    if (answer->status / 100 != 2) co_return error_of(*answer);
    co_return parse_lab_power(answer->body);
  }

  static Error error_of(const net::Response& response) {
    std::string words;
    if (const auto document = parse_json(response.body)) {
      words = std::string(text_at(*document, {"error"}));
    }
    Error error =
        fail(response.status == 400 ? ErrorCode::invalid_argument : code_of(response.status),
             fmt::format("the lab answered HTTP {}", response.status),
             words.empty() ? excerpt(response.body) : words);
    const auto seconds = response.headers.get("Retry-After");
    if (const auto pause = parse_go_duration(std::string(seconds) + "s")) {
      if (*pause >= Duration{0}) error.retry_after = *pause;
    }
    return error;
  }

  std::string base_;
  net::Limits limits_;
  net::Client client_;
};

}  // namespace

Result<LabPower> parse_lab_power(const std::string& body) {
  const auto document = parse_json(body);
  if (!document) {
    Error error = document.error();
    error.code = ErrorCode::protocol;
    return error;
  }
  LabPower power;
  const std::string_view state = text_at(*document, {"state"});
  if (state == "On") {
    power.power = MachinePower::on;
  } else if (state == "Off") {
    power.power = MachinePower::off;
  } else if (state == "PoweringOn") {
    power.power = MachinePower::powering_on;
  } else if (state == "PoweringOff") {
    power.power = MachinePower::powering_off;
  } else {
    return fail(ErrorCode::protocol, "the answer is not a power document", excerpt(body));
  }
  power.watts = number_at(*document, {"watts"});
  return power;
}

Result<std::optional<Milliwatts>> reading_of(const LabPower& power) {
  if (!power.watts) return std::optional<Milliwatts>{};
  if (*power.watts < 0 || *power.watts > kImplausibleWatts) {
    return fail(ErrorCode::protocol,
                fmt::format("the power meter says {} W, which no machine draws", *power.watts));
  }
  return std::optional{Milliwatts{std::llround(*power.watts * 1000)}};
}

std::unique_ptr<PowerDriver> make_lab_driver(boost::asio::any_io_executor executor,
                                             // NOLINTNEXTLINE(performance-unnecessary-value-param)
                                             DriverConfig config, const net::Url& url) {
  return std::make_unique<LabDriver>(std::move(executor), config, url);
}

}  // namespace kwatt::hardware
