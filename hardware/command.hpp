#pragma once
// Machines that only a program of the operator can switch (docs/reference/bmc-command.md).
#include <memory>
#include <string>

#include "hardware/driver.hpp"
#include "hardware/process.hpp"

namespace kwatt::hardware {

// command:NAME[/ANYTHING]. NAME is looked up in config.commands: an object can choose one of the
// operator's programs, never bring one. ANYTHING is for the program, which gets the whole address.
// Errors: invalid_argument (not such an address, or no program has this name).
Result<std::unique_ptr<PowerDriver>> make_command_driver(DriverConfig config);

// The program's answers. Errors: protocol (not a word or number of the contract).
Result<MachinePower> parse_command_state(const std::string& out);
Result<std::optional<Milliwatts>> parse_command_power(const std::string& out);
// The meaning of an exit code other than 0, with the program's own words.
Error command_error(const Finished& finished, std::string_view what);

}  // namespace kwatt::hardware
