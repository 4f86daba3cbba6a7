// make_driver(): the explicit list of schemes.
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "hardware/command.hpp"
#include "hardware/driver.hpp"
#include "hardware/ipmi.hpp"
#include "hardware/lab.hpp"
#include "hardware/redfish.hpp"

namespace kwatt::hardware {
namespace {

using Make = std::unique_ptr<PowerDriver> (*)(boost::asio::any_io_executor, DriverConfig,
                                              const net::Url&);
struct Scheme {
  std::string_view name, transport, example;
  Make make;
  bool finds_machine = false;  // the address need not name the machine on its service
};
constexpr std::array<Scheme, 4> kSchemes{
    {{"redfish+https://", "https://", "redfish+https://10.0.0.7/redfish/v1/Systems/1",
      make_redfish_driver, true},
     {"redfish+http://", "http://", "redfish+http://10.0.0.7/redfish/v1/Systems/1",
      make_redfish_driver, true},
     {"lab://", "http://", "lab://127.0.0.1:8100/machines/node1", make_lab_driver},
     {"lab+http://", "http://", "lab+http://127.0.0.1:8100/machines/node1", make_lab_driver}}};

// Schemes that are not HTTP read their address themselves.
using MakeFromText = Result<std::unique_ptr<PowerDriver>> (*)(DriverConfig);
struct TextScheme {
  std::string_view name;
  MakeFromText make;
};
constexpr std::array<TextScheme, 2> kTextSchemes{
    {{"ipmi:", make_ipmi_driver}, {"command:", make_command_driver}}};

}  // namespace

Result<std::unique_ptr<PowerDriver>> make_driver(boost::asio::any_io_executor executor,
                                                 DriverConfig config) {
  for (const TextScheme& scheme : kTextSchemes) {
    if (config.address.starts_with(scheme.name)) return scheme.make(std::move(config));
  }
  for (const Scheme& scheme : kSchemes) {
    if (!config.address.starts_with(scheme.name)) continue;
    auto url =
        net::parse_url(std::string(scheme.transport) + config.address.substr(scheme.name.size()));
    if (!url) {
      Error error = url.error().with_context("bmc address");
      error.code = ErrorCode::invalid_argument;
      return error;
    }
    while (url->path.ends_with('/')) url->path.pop_back();
    if (url->path.empty() && !scheme.finds_machine) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("bmc address {} names no machine, as {} does", config.address,
                              scheme.example));
    }
    return scheme.make(std::move(executor), std::move(config), *url);
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("bmc address {} has none of the schemes redfish+https, redfish+http, "
                          "ipmi, command, lab",
                          config.address));
}

}  // namespace kwatt::hardware
