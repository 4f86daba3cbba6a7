#include "hardware/ipmi.hpp"

#include <algorithm>
#include <sstream>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "hardware/ipmi_messages.hpp"
#include "hardware/process.hpp"
#include "net/resolve.hpp"

namespace kwatt::hardware {
namespace {

constexpr std::string_view kScheme = "ipmi://";
constexpr std::uint16_t kDefaultPort = 623;
// ipmitool repeats each lost packet so often and so many seconds later.
constexpr const char* kRetries = "3";
constexpr const char* kRetrySeconds = "2";
constexpr Duration kLongest = std::chrono::seconds{30};

std::string_view word_of(Reset reset) {
  switch (reset) {
    case Reset::on:
      return "on";
    case Reset::graceful_shutdown:
      return "soft";
    case Reset::force_off:
      return "off";
  }
  return "";
}

bool reached(Reset reset, MachinePower power) {
  return power == (reset == Reset::on ? MachinePower::on : MachinePower::off);
}

class IpmiDriver final : public PowerDriver {
 public:
  IpmiDriver(DriverConfig config, net::Origin origin)
      : config_(std::move(config)),
        origin_(std::move(origin)),
        timeout_(std::min(config_.timeout, kLongest)) {}

  Task<Result<MachinePower>> state() override {
    auto out = co_await run("chassis power status");
    if (!out) co_return out.error();
    co_return ipmi::parse_power(*out);
  }

  Task<Result<void>> reset(Reset reset, std::string) override {
    auto out = co_await run(fmt::format("chassis power {}", word_of(reset)));
    if (out) co_return Result<void>{};
    // Asked to do what is done already, some controllers refuse.
    const Error error = out.error();
    if (error.code == ErrorCode::conflict || error.code == ErrorCode::protocol) {
      const auto now = co_await state();
      if (now && reached(reset, *now)) co_return Result<void>{};
    }
    co_return error;
  }

  Task<Result<std::optional<Milliwatts>>> power_reading() override {
    if (has_dcmi_) {
      auto out = co_await run("dcmi power reading");
      if (out) {
        auto reading = ipmi::parse_reading(*out);
        if (!reading || *reading) co_return reading;
      } else if (out.error().code != ErrorCode::unsupported) {
        co_return out.error();
      } else {
        has_dcmi_ = false;  // a controller does not learn it later
      }
    }
    auto sensors = co_await run("-c sdr list full");
    if (!sensors) co_return sensors.error();
    co_return ipmi::sensor_reading(*sensors);
  }

  // DCMI tells the limit, but not the range that it may have.
  Task<Result<PowerLimit>> power_limit() override {
    const auto now = co_await limit_now();
    if (!now) co_return now.error();
    PowerLimit limit;
    if (now->active) limit.limit = now->power;
    co_return limit;
  }

  Task<Result<void>> set_power_limit(std::optional<Milliwatts> limit,
                                     std::string /*operation_id*/) override {
    if (!limit) co_return co_await deactivate();
    const std::int64_t watts = limit->count() / 1000;  // never more than asked for
    if (watts < 1 || watts > 65534) {
      co_return fail(ErrorCode::out_of_range,
                     fmt::format("a power limit of {} W cannot be said in IPMI", watts));
    }
    auto set = co_await run(fmt::format("dcmi power set_limit limit {}", watts));
    if (!set) co_return set.error();
    auto activated = co_await run("dcmi power activate");
    if (!activated) co_return activated.error();
    auto now = co_await limit_now();
    if (!now) co_return now.error();
    if (!now->active || now->power.count() != watts * 1000) {
      co_return fail(
          ErrorCode::protocol,
          fmt::format("the management controller accepted a limit of {} W, but says {}", watts,
                      now->active ? fmt::format("{} W", now->power.count() / 1000)
                                  : "that none is active"));
    }
    co_return Result<void>{};
  }

 private:
  Task<Result<ipmi::Limit>> limit_now() {
    auto out = co_await run("dcmi power get_limit");
    if (!out) co_return out.error();
    co_return ipmi::parse_limit(*out);
  }

  Task<Result<void>> deactivate() {
    auto done = co_await run("dcmi power deactivate");
    if (done) co_return Result<void>{};
    const Error error = done.error();
    if (error.code == ErrorCode::unsupported) co_return error;
    const auto now = co_await limit_now();
    if (now && !now->active) co_return Result<void>{};
    co_return error;
  }

  // `words`: a command of ipmitool, separated by blanks.
  Task<Result<std::string>> run(std::string words) {
    if (!config_.credentials) {
      co_return fail(ErrorCode::unauthorized,
                     "IPMI needs a user and a password: set spec.bmc.credentialsSecretRef");
    }
    auto addresses =
        co_await net::allowed_addresses(origin_.host, config_.address_allowed, timeout_);
    if (!addresses) co_return addresses.error();
    const std::string what = "ipmitool " + words;
    Program program("ipmitool", {"-I", "lanplus", "-C", "3", "-H", addresses->front(), "-p",
                                 std::to_string(origin_.port), "-U", config_.credentials->user,
                                 "-E", "-N", kRetrySeconds, "-R", kRetries});
    // Only -v tells a wrong password from a silent controller; with sensors it changes the table.
    if (!words.starts_with("-c")) program.arguments.emplace_back("-v");
    std::istringstream stream(words);
    for (std::string word; stream >> word;) program.arguments.push_back(word);
    program.environment.emplace_back("IPMI_PASSWORD", config_.credentials->password);
    program.timeout = timeout_;
    auto finished = co_await run_program(std::move(program));
    if (!finished) co_return finished.error().with_context(what);
    if (finished->exit_code != 0) co_return ipmi::error_of(*finished, what);
    co_return std::move(finished->out);
  }

  DriverConfig config_;
  net::Origin origin_;
  Duration timeout_;
  bool has_dcmi_ = true;
};

}  // namespace

Result<std::unique_ptr<PowerDriver>> make_ipmi_driver(DriverConfig config) {
  std::string_view rest(config.address);
  const bool complete = rest.starts_with(kScheme);
  if (complete) rest.remove_prefix(kScheme.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (!complete || rest.empty() || rest.find_first_of("/?#@") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("bmc address {} is not ipmi://HOST or ipmi://HOST:PORT, such as "
                            "ipmi://10.0.0.7",
                            config.address));
  }
  const auto colon = rest.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (rest.front() != '[' || rest[colon - 1] == ']');
  auto url = net::parse_url(
      fmt::format("http://{}{}", rest, has_port ? "" : fmt::format(":{}", kDefaultPort)));
  if (!url) {
    Error error = url.error().with_context("bmc address");
    error.code = ErrorCode::invalid_argument;
    return error;
  }
  return std::unique_ptr<PowerDriver>(std::make_unique<IpmiDriver>(std::move(config), url->origin));
}

}  // namespace kwatt::hardware
