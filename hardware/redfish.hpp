#pragma once
// Redfish over HTTPS with basic authentication.
#include <memory>

#include "hardware/driver.hpp"

namespace kwatt::hardware {

// `url` is the ComputerSystem. Links are followed on the same service only; redirects are refused;
// answers are limited to 1 MiB. The reset target and what it offers are read before every reset,
// because services change the offer with the state. A refusal (400, 409) of a reset to a state the
// machine is in already counts as done. Without credentials no Authorization header is sent.
std::unique_ptr<PowerDriver> make_redfish_driver(boost::asio::any_io_executor executor,
                                                 DriverConfig config, const net::Url& url);

}  // namespace kwatt::hardware
