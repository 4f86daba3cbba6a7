#pragma once
// Redfish (DSP0266, DSP0268) over HTTPS.
#include <memory>

#include "hardware/driver.hpp"

namespace kwatt::hardware {

// `url` is the ComputerSystem, or the service itself (no path, /redfish/v1 or its Systems
// collection): then its only system is taken, and a service with several is invalid_argument with
// their paths. Power and limit are taken from EnvironmentMetrics of the chassis, else from its
// Power, else (reading only) from the power supplies of its PowerSubsystem. Links are followed on
// the same service only; redirects are refused; answers are limited to 1 MiB. The reset target and
// what it offers are read before every reset, because services change the offer with the state. A
// refusal (400, 409) of a reset to a state the machine is in already counts as done. Sessions and
// pauses: redfish_service.hpp.
std::unique_ptr<PowerDriver> make_redfish_driver(boost::asio::any_io_executor executor,
                                                 DriverConfig config, const net::Url& url);

}  // namespace kwatt::hardware
