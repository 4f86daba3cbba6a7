#include "test/support/kernel/machine.hpp"

#include <sstream>

namespace kernel_rules {

Machine::Machine(MachineSpec spec, std::function<double()> seconds)
    : cpus_(sys_, spec.cpu),
      power_(sys_, cpus_, spec.power, spec.cpu.packages, std::move(seconds)) {
  cpus_.on_change([this] { power_.cpus_changed(); });
}

bool Machine::command(const std::string& line) {
  std::istringstream words(line);
  std::string verb, text;
  std::int64_t number = 0;
  words >> verb;
  const bool takes_path = verb == "hide" || verb == "unhide" || verb == "break" || verb == "refuse";
  if (takes_path || verb == "energy") {
    if (!(words >> text)) return false;
    if (verb == "hide") sys_.hide(text);
    if (verb == "unhide") sys_.unhide(text);
    if (verb == "hide" || verb == "unhide") return true;
    if (!(words >> number)) return false;
    if (verb == "break") sys_.break_at(text, static_cast<int>(number));
    if (verb == "refuse") sys_.refuse(text, static_cast<int>(number));
    if (verb == "energy") power_.set_energy(text, number);
    return true;
  }
  if (!(words >> number)) return false;
  const int index = static_cast<int>(number);
  if (verb == "lock-rapl") {
    power_.lock(number != 0);
  } else if (verb == "clamp-rapl") {
    power_.clamp(number);
  } else if (verb == "unplug") {
    cpus_.unplug(index);
  } else if (verb == "plug") {
    cpus_.plug(index);
  } else if (verb == "temperature") {
    if (!(words >> number)) return false;
    power_.set_temperature(index, static_cast<int>(number));
  } else {
    return false;
  }
  return true;
}

}  // namespace kernel_rules
