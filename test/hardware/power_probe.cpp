// A machine's power by hand, through the product's own drivers: for tests against real services and
// for people who look for the mistake in an address.
//
//   power_probe [--credentials FILE] [--ca FILE] [--timeout 5s] [--id ID] [--allow ADDRESS]…
//               [--bmc-command NAME=PATH]… [--node NAME] ADDRESS COMMAND
//     COMMAND: state | on | shutdown | off | watts | limit [WATTS|none]
//   FILE holds user:password. Prints the answer; an error as "<code>: <text>" on stderr, status 1.
#include <algorithm>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "hardware/driver.hpp"
#include "hardware/sysfs_files.hpp"
#include "kube/credentials.hpp"

namespace {

using namespace kwatt;
using hardware::MachinePower;
using hardware::PowerDriver;
using hardware::Reset;

struct Command {
  std::string name, argument, id;
};

std::string_view word_of(MachinePower power) {
  switch (power) {
    case MachinePower::on:
      return "On";
    case MachinePower::off:
      return "Off";
    case MachinePower::powering_on:
      return "PoweringOn";
    case MachinePower::powering_off:
      return "PoweringOff";
    case MachinePower::unknown:
      break;
  }
  return "Unknown";
}

hardware::Task<Result<std::string>> run(PowerDriver& driver, Command command) {
  if (command.name == "state") {
    auto state = co_await driver.state();
    if (!state) co_return state.error();
    co_return std::string(word_of(*state));
  }
  if (command.name == "watts") {
    auto reading = co_await driver.power_reading();
    if (!reading) co_return reading.error();
    co_return *reading ? std::to_string((*reading)->count()) + " mW" : std::string("none");
  }
  if (command.name == "limit" && command.argument.empty()) {
    auto limit = co_await driver.power_limit();
    if (!limit) co_return limit.error();
    const auto text = [](const std::optional<Milliwatts>& watts) {
      return watts ? std::to_string(watts->count()) + " mW" : std::string("none");
    };
    co_return text(limit->limit) + " of " + text(limit->lowest) + " to " + text(limit->highest);
  }
  Result<void> done = fail(ErrorCode::invalid_argument, "unknown command " + command.name);
  if (command.name == "on") done = co_await driver.reset(Reset::on, command.id);
  if (command.name == "shutdown") {
    done = co_await driver.reset(Reset::graceful_shutdown, command.id);
  }
  if (command.name == "off") done = co_await driver.reset(Reset::force_off, command.id);
  if (command.name == "limit") {
    const auto value = hardware::parse_number(command.argument);
    std::optional<Milliwatts> limit;
    if (value) limit = watts(*value);
    if (value || command.argument == "none") {
      done = co_await driver.set_power_limit(limit, "op-1");
    } else {
      done = fail(ErrorCode::invalid_argument, "limit: a number of watts, or none");
    }
  }
  if (!done) co_return done.error();
  co_return std::string("ok");
}

hardware::Task<Result<std::string>> run_and_close(PowerDriver& driver, Command command) {
  auto answer = co_await run(driver, std::move(command));
  co_await driver.close();
  co_return answer;
}

int failed(const Error& error) {
  std::cerr << to_string(error.code) << ": " << error.text() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Talks to a machine's management controller through kwatt's drivers.",
               "power_probe");
  hardware::DriverConfig config;
  Command command;
  std::string credentials_file, ca_file, timeout = "5s";
  app.add_option("--credentials", credentials_file, "File with user:password");
  app.add_option("--ca", ca_file, "File with CA certificates");
  app.add_option("--timeout", timeout, "Of each request");
  app.add_option("--id", command.id, "Operation id to send along");
  std::vector<std::string> allowed, programs;
  app.add_option("--allow", allowed, "Only these numeric addresses")->expected(1)->take_all();
  app.add_option("--bmc-command", programs, "Programs of command:NAME")->expected(1)->take_all();
  app.add_option("--node", config.node, "Name of the Node");
  app.add_option("address", config.address)->required();
  app.add_option("command", command.name)->required();
  app.add_option("argument", command.argument);
  CLI11_PARSE(app, argc, argv);

  const auto limit = parse_go_duration(timeout);
  if (!limit) return failed(fail(ErrorCode::invalid_argument, "--timeout is not a duration"));
  config.timeout = *limit;
  if (!credentials_file.empty()) {
    auto text = kube::read_file(credentials_file);
    if (!text) return failed(text.error());
    while (text->ends_with('\n')) text->pop_back();
    const auto colon = text->find(':');
    if (colon == std::string::npos) {
      return failed(fail(ErrorCode::parse, "credentials: not user:password"));
    }
    config.credentials = hardware::Credentials{text->substr(0, colon), text->substr(colon + 1)};
  }
  if (!ca_file.empty()) {
    auto pem = kube::read_file(ca_file);
    if (!pem) return failed(pem.error());
    config.ca_pem = *pem;
  }

  if (!allowed.empty()) {
    config.address_allowed = [allowed](const std::string& address) {
      return std::find(allowed.begin(), allowed.end(), address) != allowed.end();
    };
  }
  for (const std::string& program : programs) {
    const auto equals = program.find('=');
    if (equals != std::string::npos) {
      config.commands[program.substr(0, equals)] = program.substr(equals + 1);
    }
  }

  boost::asio::io_context io{1};
  auto driver = hardware::make_driver(io.get_executor(), std::move(config));
  if (!driver) return failed(driver.error());
  std::optional<Result<std::string>> answer;
  const auto done = [&](std::exception_ptr failure, Result<std::string> result) {
    if (failure) std::rethrow_exception(failure);
    answer.emplace(std::move(result));
  };
  boost::asio::co_spawn(io, run_and_close(**driver, std::move(command)), done);
  while (!answer) io.run_one();
  if (!*answer) return failed(answer->error());
  std::cout << **answer << "\n";
  return 0;
}
