#include "cli/words.hpp"

namespace kwatt::cli {

std::string_view word(api::PowerState state) {
  switch (state) {
    case api::PowerState::On:
      return "On";
    case api::PowerState::Off:
      return "Off";
    case api::PowerState::PoweringOn:
      return "PoweringOn";
    case api::PowerState::PoweringOff:
      return "PoweringOff";
    case api::PowerState::Draining:
      return "Draining";
    case api::PowerState::WakeFailed:
      return "WakeFailed";
    case api::PowerState::Unknown:
      break;
  }
  return "Unknown";
}

std::string_view word(api::OperationKind kind) {
  switch (kind) {
    case api::OperationKind::PowerOff:
      return "PowerOff";
    case api::OperationKind::PowerOn:
      return "PowerOn";
    case api::OperationKind::Migrate:
      return "Migrate";
    case api::OperationKind::SetFrequency:
      return "SetFrequency";
    case api::OperationKind::SetCap:
      return "SetCap";
    case api::OperationKind::Release:
      return "Release";
    case api::OperationKind::None:
      break;
  }
  return "None";
}

std::string_view word(api::Mode mode) {
  return mode == api::Mode::Enforce ? "Enforce" : "Recommend";
}

std::string_view phrase(api::PowerState state) {
  switch (state) {
    case api::PowerState::On:
      return "on";
    case api::PowerState::Off:
      return "off";
    case api::PowerState::PoweringOn:
      return "being switched on";
    case api::PowerState::PoweringOff:
      return "being switched off";
    case api::PowerState::Draining:
      return "being emptied";
    case api::PowerState::WakeFailed:
      return "down after a wake that failed";
    case api::PowerState::Unknown:
      break;
  }
  return "in an unknown power state";
}

std::string_view phrase(api::OperationKind kind) {
  switch (kind) {
    case api::OperationKind::PowerOff:
      return "power-off";
    case api::OperationKind::PowerOn:
      return "power-on";
    case api::OperationKind::Migrate:
      return "migration";
    case api::OperationKind::SetFrequency:
      return "change of frequency";
    case api::OperationKind::SetCap:
      return "change of the cap";
    case api::OperationKind::Release:
      return "release";
    case api::OperationKind::None:
      break;
  }
  return "operation";
}

}  // namespace kwatt::cli
