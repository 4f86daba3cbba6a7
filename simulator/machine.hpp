#pragma once
// One machine of the simulated cluster: what is on it, how fast it runs, what it draws, and what it
// has used so far. Between two changes nothing changes, so energy is exact: power × time, summed in
// microjoules.
//
// Speed and power at less than full frequency follow the model of lab/physics.py: with φ = f/f_max,
// P = P(0) + (P(busy) − P(0))·(0.4·φ + 0.6·φ³), where P() is the machine's curve. A job's cores are
// busy all the time at whatever speed, and it advances at φ; services want work done, and keep
// slower cores busy for longer.
#include <cstdint>
#include <optional>
#include <string>

#include "models/energy_account.hpp"
#include "models/power_curve.hpp"
#include "simulator/workload.hpp"

namespace kwatt::simulator {

struct MachineSpec {
  std::string name, zone;
  Amount capacity;
  models::PowerModel power;
  std::int64_t min_mhz = 1200, max_mhz = 3200;
  bool starts_off = false;
};

enum class MachineState { off, booting, on, stopping };
std::string_view to_string(MachineState state);  // "Off" "Booting" "On" "Stopping"

// What one machine has used and done since the start.
struct MachineAccount {
  models::Whole energy;  // millijoules, and microjoules as the rest
  double grams_co2 = 0;
  std::int64_t on_ms = 0, busy_ms = 0;  // on; with work on it
  double cpu_ms = 0;                    // millicores given to work × ms, for the utilization
  std::int64_t overload_ms = 0;         // on, while its work wanted more than it could do
  std::int64_t boots = 0, shutdowns = 0;
  std::int64_t tasks = 0;  // started here
};

class Machine {
 public:
  explicit Machine(const MachineSpec& spec);

  const MachineSpec& spec() const { return *spec_; }
  MachineState state() const { return state_; }
  const Amount& used() const { return used_; }  // by what runs or is on its way here
  Amount free() const;
  // Of the CPU: what the work keeps busy, over the capacity; 0…1000.
  Permille busy() const;
  // The same in work done: busy × speed.
  Permille utilization() const;
  Permille speed() const { return speed_; }
  Milliwatts power() const { return power_; }
  std::int64_t tasks() const { return tasks_; }  // on it now
  const MachineAccount& account() const { return account_; }
  std::int64_t cap_watts() const { return cap_watts_; }
  std::int64_t limit_mhz() const { return limit_mhz_; }

  // Charges the time since the last call at the present power, at this intensity. Must be called
  // before every change below; time never goes back.
  void settle(std::int64_t now_ms, double grams_per_kwh);

  // Room for one task: taken when it is assigned, given back when it is gone.
  void reserve(const Amount& need);
  void release(const Amount& need);
  // What the tasks keep busy: cores of jobs; work that services want, as cores at full speed.
  void change_busy(Millicores jobs_by, Millicores services_by);

  void begin_boot();      // off → booting
  void end_boot();        // booting → on; what is left of the boot energy is charged
  void begin_shutdown();  // on → stopping
  void end_shutdown();    // stopping → off

  // 0: none. A limit below min_mhz is min_mhz; a cap that cannot be held is held as far as the
  // lowest frequency goes.
  void limit_frequency(std::int64_t mhz);
  void cap(std::int64_t watts);

 private:
  Milliwatts draw(Permille speed) const;
  void update();

  const MachineSpec* spec_;
  MachineState state_ = MachineState::on;
  Amount used_;
  Millicores jobs_busy_, services_want_;
  std::int64_t tasks_ = 0;
  std::int64_t limit_mhz_ = 0, cap_watts_ = 0;
  Permille speed_ = percent(100);
  Milliwatts power_;
  std::int64_t settled_ms_ = 0;
  std::int64_t transition_uj_ = 0;  // charged of the present boot or shutdown
  MachineAccount account_;
};

}  // namespace kwatt::simulator
