#include "api/state_words.hpp"

namespace kwatt::api {

std::string_view phrase(PowerState state) {
  switch (state) {
    case PowerState::On:
      return "on";
    case PowerState::Off:
      return "off";
    case PowerState::PoweringOn:
      return "being switched on";
    case PowerState::PoweringOff:
      return "being switched off";
    case PowerState::Draining:
      return "being emptied";
    case PowerState::WakeFailed:
      return "down after a wake that failed";
    case PowerState::Unknown:
      break;
  }
  return "in an unknown power state";
}

std::string_view phrase(OperationKind kind) {
  switch (kind) {
    case OperationKind::PowerOff:
      return "power-off";
    case OperationKind::PowerOn:
      return "power-on";
    case OperationKind::Migrate:
      return "migration";
    case OperationKind::SetFrequency:
      return "frequency change";
    case OperationKind::SetCap:
      return "cap change";
    case OperationKind::Release:
      return "release";
    case OperationKind::None:
      break;
  }
  return "operation";
}

}  // namespace kwatt::api
