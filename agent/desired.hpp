#pragma once
// What the annotations of a Node ask of its machine. PURE.
#include <optional>
#include <string>
#include <vector>

#include "api/meta.hpp"
#include "base/units.hpp"

namespace kwatt::agent {

// The things an agent can set, each asked for, refused and restored on its own.
enum class Lever { governor, frequency, preference, cap, uncore };

// An absent value means: the machine's original setting.
struct DesiredSettings {
  std::optional<std::string> governor;     // kwatt.dev/governor
  std::optional<Megahertz> max_frequency;  // kwatt.dev/max-frequency-mhz
  std::optional<std::string> preference;   // kwatt.dev/epp
  std::optional<Milliwatts> power_cap;     // kwatt.dev/power-cap-watts
  std::optional<Megahertz> max_uncore;     // kwatt.dev/max-uncore-mhz
  std::string request_id;                  // of kwatt.dev/request; "": none
  bool keep_cap = false;                   // kwatt.dev/request has "keepCap": true
  std::vector<Lever> unreadable;           // annotations that make no sense: leave it as it is
  std::vector<std::string> errors;         // one sentence for each of them
  bool operator==(const DesiredSettings&) const = default;

  bool empty() const {
    return !governor && !max_frequency && !preference && !power_cap && !max_uncore;
  }
};

// "" and "0" count as absent, as in a policy's frequency level. kwatt.dev/request is the JSON
// {"id","time","policy","keys"}; the optional "keepCap" marks a cap that belongs to a budget and
// must outlive the controller (safety: caps under budgetWatts stay).
DesiredSettings parse_desired(const api::StringMap& annotations);

// What is wanted when the controller gives no sign of life: nothing, but for a cap that must stay.
DesiredSettings without_controller(const DesiredSettings& desired);

}  // namespace kwatt::agent
