#pragma once
// The settings a machine had before kwatt touched it. PURE.
#include <optional>
#include <string>
#include <vector>

#include "api/node_power.hpp"
#include "hardware/cpufreq.hpp"
#include "hardware/powercap.hpp"
#include "hardware/uncore.hpp"

namespace kwatt::agent {

// All that an agent reads of its machine before it decides.
struct MachineState {
  hardware::CpuFrequencies cpu;
  std::vector<hardware::PowerZone> zones;
  // What the machine draws beside its CPU packages (whole machine minus packages, smoothed);
  // nullopt: not measured.
  std::optional<Milliwatts> non_package;
  std::vector<hardware::UncoreDie> uncore = {};  // that answer now
  // non_package is not known yet: limits made without it would be too high, so none is raised, and
  // neither the range of caps nor the cap in force can be told.
  bool measuring_outside = false;
};

struct PolicySettings {
  int index = 0;
  std::string governor, epp;
  std::int64_t min_khz = 0, max_khz = 0;
  bool operator==(const PolicySettings&) const = default;
};
struct ZoneSettings {
  std::string id;
  std::int64_t limit_uw = 0;
  bool enabled = false;
  bool operator==(const ZoneSettings&) const = default;
};
struct UncoreSettings {
  std::string id;
  std::int64_t min_khz = 0, max_khz = 0;
  bool operator==(const UncoreSettings&) const = default;
};

// Settings of one boot: another boot starts from the firmware's again, so they mean nothing then.
struct Original {
  std::string boot_id;
  std::vector<PolicySettings> policies;  // by rising index
  std::vector<ZoneSettings> zones;
  std::vector<UncoreSettings> uncore;
  bool operator==(const Original&) const = default;

  const PolicySettings* policy(int index) const;
  const ZoneSettings* zone(const std::string& id) const;
  const UncoreSettings* die(const std::string& id) const;
  // The same by kind, for code that treats all alike.
  const PolicySettings* find(const PolicySettings& alike) const { return policy(alike.index); }
  const ZoneSettings* find(const ZoneSettings& alike) const { return zone(alike.id); }
  const UncoreSettings* find(const UncoreSettings& alike) const { return die(alike.id); }
};

// Policies and zones that were away (offline, unplugged) when their levers were let go: they get
// their original settings when they come back, because the kernel gives them those they went with.
struct Owed {
  std::vector<int> policies;       // rising
  std::vector<std::string> zones;  // in order
  bool any() const { return !policies.empty() || !zones.empty(); }
  bool owes(int policy) const;
  bool owes(const std::string& zone) const;
  bool operator==(const Owed&) const = default;
};

// The levers on which the machine may differ from its original settings because of us. What is not
// held is not written back: people may change it while nobody asks for anything.
struct Held {
  bool governor = false, frequency = false, preference = false, cap = false, uncore = false;
  Owed owed = {};
  bool levers() const { return governor || frequency || preference || cap || uncore; }
  bool any() const { return levers() || owed.any(); }
  // The levers that both hold, and what the other one owes.
  Held both(const Held& other) const {
    return {governor && other.governor,     frequency && other.frequency,
            preference && other.preference, cap && other.cap,
            uncore && other.uncore,         other.owed};
  }
  bool covers(const Held& other) const {
    return (governor || !other.governor) && (frequency || !other.frequency) &&
           (preference || !other.preference) && (cap || !other.cap) && (uncore || !other.uncore);
  }
  bool operator==(const Held&) const = default;
};

Original capture(const MachineState& state, std::string boot_id);

// For status.report.original. The readable fields say it for the whole machine (rounded to MHz and
// watts); `exact` holds every policy and zone and what is held, for example
//   "cpu/0,2-3/powersave/800000/3200000/balance_performance zone/intel-rapl:0/125000000/1 held/cap"
// where policies with equal settings share an item; limits of the uncore frequency follow as
// "uncore/package_00_die_00/800000/2400000". Held levers: governor, frequency, epp, cap, uncore.
// What is owed follows as "owed/3,7" (policies) and "owed-zone/intel-rapl:1".
api::OriginalSettings to_report(const Original& original, const Held& held);
// Whether a report says that anything is held.
bool says_held(const api::OriginalSettings& report);

// The reverse. Where `exact` is missing or not understood, the readable fields are applied to what
// `state` shows (all policies alike, the cap evenly over the packages) and `held` is unknown.
struct StoredOriginal {
  Original original;
  std::optional<Held> held;
};
StoredOriginal from_report(const api::OriginalSettings& report, const MachineState& state);

}  // namespace kwatt::agent
