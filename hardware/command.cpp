#include "hardware/command.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "hardware/excerpt.hpp"

namespace kwatt::hardware {
namespace {

constexpr std::string_view kScheme = "command:";
constexpr double kImplausibleWatts = 1e6;
constexpr std::size_t kOutputLimit = 4096;
// Exit codes of the contract; any other one means that it did not work this time.
constexpr int kUnsupported = 3, kUnauthorized = 4, kOutOfRange = 5;

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Error bad_answer(std::string_view verb, std::string_view wanted, const std::string& out) {
  return fail(ErrorCode::protocol,
              fmt::format("the program's answer to {} is not {}", verb, wanted), excerpt(out));
}

std::string_view verb_of(Reset reset) {
  switch (reset) {
    case Reset::on:
      return "on";
    case Reset::graceful_shutdown:
      return "soft-off";
    case Reset::force_off:
      return "off";
  }
  return "";
}

class CommandDriver final : public PowerDriver {
 public:
  CommandDriver(DriverConfig config, std::string path)
      : config_(std::move(config)), path_(std::move(path)) {}

  Task<Result<MachinePower>> state() override {
    auto out = co_await run("state", "", "");
    if (!out) co_return out.error();
    co_return parse_command_state(*out);
  }

  Task<Result<void>> reset(Reset reset, std::string operation_id) override {
    auto out = co_await run(std::string(verb_of(reset)), "", std::move(operation_id));
    if (!out) co_return out.error();
    co_return Result<void>{};
  }

  Task<Result<std::optional<Milliwatts>>> power_reading() override {
    auto out = co_await run("power", "", "");
    if (out) co_return parse_command_power(*out);
    if (out.error().code == ErrorCode::unsupported) co_return std::optional<Milliwatts>{};
    co_return out.error();
  }

  Task<Result<void>> set_power_limit(std::optional<Milliwatts> limit,
                                     std::string operation_id) override {
    const std::string watts = limit ? std::to_string(limit->count() / 1000) : std::string{};
    auto out = co_await run(limit ? "limit" : "unlimit", watts, std::move(operation_id));
    if (!out) co_return out.error();
    co_return Result<void>{};
  }

 private:
  Task<Result<std::string>> run(std::string verb, std::string argument, std::string operation_id) {
    const std::string what = fmt::format("{} {}", path_, verb);
    Program program(path_, {verb, config_.node});
    if (!argument.empty()) program.arguments.push_back(argument);
    auto& environment = program.environment;
    environment.emplace_back("KWATT_ADDRESS", config_.address);
    if (!operation_id.empty()) environment.emplace_back("KWATT_OPERATION_ID", operation_id);
    if (config_.credentials) {
      environment.emplace_back("KWATT_USER", config_.credentials->user);
      environment.emplace_back("KWATT_PASSWORD", config_.credentials->password);
    }
    program.timeout = config_.timeout;
    program.output_limit = kOutputLimit;
    auto finished = co_await run_program(std::move(program));
    if (!finished) co_return finished.error().with_context(what);
    if (finished->exit_code != 0) co_return command_error(*finished, what);
    co_return std::move(finished->out);
  }

  DriverConfig config_;
  std::string path_;
};

}  // namespace

Result<MachinePower> parse_command_state(const std::string& out) {
  const std::string word = trimmed(out);
  if (word == "on") return MachinePower::on;
  if (word == "off") return MachinePower::off;
  if (word == "powering-on") return MachinePower::powering_on;
  if (word == "powering-off") return MachinePower::powering_off;
  if (word == "unknown") return MachinePower::unknown;
  return bad_answer("state", "on, off, powering-on, powering-off or unknown", out);
}

Result<std::optional<Milliwatts>> parse_command_power(const std::string& out) {
  const std::string word = trimmed(out);
  if (word == "none") return std::optional<Milliwatts>{};
  double watts = 0;
  const char* end = word.data() + word.size();
  const auto [last, error] = std::from_chars(word.data(), end, watts, std::chars_format::fixed);
  if (error != std::errc{} || last != end || !std::isfinite(watts)) {
    return bad_answer("power", "a number of watts, or none", out);
  }
  if (watts < 0 || watts > kImplausibleWatts) {
    return fail(ErrorCode::protocol,
                fmt::format("the power meter says {} W, which no machine draws", watts));
  }
  return std::optional{Milliwatts{std::llround(watts * 1000)}};
}

Error command_error(const Finished& finished, std::string_view what) {
  const std::string said = excerpt(finished.err);
  switch (finished.exit_code) {
    case kUnsupported:
      return fail(ErrorCode::unsupported, fmt::format("{}: not offered by this machine", what),
                  said);
    case kUnauthorized:
      return fail(ErrorCode::unauthorized, fmt::format("{}: the credentials are refused", what),
                  said);
    case kOutOfRange:
      return fail(ErrorCode::out_of_range, fmt::format("{}: outside what it offers", what), said);
    default:
      return fail(ErrorCode::unavailable,
                  fmt::format("{} failed with exit code {}", what, finished.exit_code), said);
  }
}

Result<std::unique_ptr<PowerDriver>> make_command_driver(DriverConfig config) {
  std::string_view rest(config.address);
  rest.remove_prefix(std::min(rest.size(), kScheme.size()));
  const std::string name(rest.substr(0, rest.find('/')));
  if (name.empty()) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("bmc address {} is not command:NAME or command:NAME/ANYTHING", config.address));
  }
  const auto program = config.commands.find(name);
  if (program == config.commands.end()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("bmc address {}: no program is called {}; the controller gets it with "
                            "--bmc-command {}=/path/of/program",
                            config.address, name, name));
  }
  std::string path = program->second;
  return std::unique_ptr<PowerDriver>(
      std::make_unique<CommandDriver>(std::move(config), std::move(path)));
}

}  // namespace kwatt::hardware
