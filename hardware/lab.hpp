#pragma once
// The power API of the simulated machine room (lab/README.md): plain HTTP and JSON.
#include <memory>
#include <optional>
#include <string>

#include "hardware/driver.hpp"

namespace kwatt::hardware {

// The parts of a power document that a driver needs. Errors: protocol.
struct LabPower {
  MachinePower power = MachinePower::unknown;
  std::optional<double> watts;  // as the meter says it, which may be nonsense
};
Result<LabPower> parse_lab_power(const std::string& body);

// nullopt: no meter. Errors: protocol for what no machine draws (negative, above 1 MW).
Result<std::optional<Milliwatts>> reading_of(const LabPower& power);

std::unique_ptr<PowerDriver> make_lab_driver(boost::asio::any_io_executor executor,
                                             DriverConfig config, const net::Url& url);

}  // namespace kwatt::hardware
