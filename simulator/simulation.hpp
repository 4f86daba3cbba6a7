#pragma once
// The event loop: machines, work that comes and goes, a strategy that places it, and what all that
// costs. Everything is decided by the input and the seeds: the same input gives the same run, to
// the byte.
//
//   auto sim = Simulation::create(machines, std::move(strategy), settings);
//   (*sim)->add(services);
//   if (auto done = (*sim)->run(jobs); !done) …;     // until all jobs have ended
//   (*sim)->run_until(hours{48});                    // and on, so that runs cover the same time
//   Outcome outcome = (*sim)->outcome();
//
// Several events at one moment come in a fixed order: ends of jobs, machines that are up or down,
// carbon intensity, services, arrivals, then the strategy, once, and last the controller.
//
// Not modelled: the network, the draw of GPUs beyond the machine's curve, failures.
#include <functional>
#include <memory>
#include <queue>
#include <span>

#include "placement/strategies/strategy.hpp"
#include "simulator/intensity.hpp"
#include "simulator/outcome.hpp"

namespace kwatt::simulator {

namespace strategies = placement::strategies;

using MachineId = std::uint32_t;
using WorkId = std::uint32_t;  // of a job or service that has come and not gone; reused

// How the carbon forecast of strategies is made. actual: the series itself, a forecast that is
// never wrong. yesterday: what was so at the same hour of the day before, the newest value where
// that is before the series: past data only.
enum class Forecast { actual, yesterday };

struct Settings {
  TimePoint start = TimePoint{std::chrono::sys_days{std::chrono::year{2026} / 1 / 5}};
  Intensities intensities;
  Forecast forecast = Forecast::yesterday;
  Prices prices;
  // The strategy is asked so often, and 0: whenever work has come or room came free.
  Duration decide_every{0};
  std::size_t window = 10'000;                  // jobs it is shown at once, the oldest
  Duration max_delay = std::chrono::hours{24};  // a job is not held back longer on purpose
  // Machines without work so long are switched off, and on again when the strategy places
  // something there; nullopt: nobody switches anything. At least `min_awake` stay on.
  std::optional<Duration> idle_off_after;
  std::int64_t min_awake = 0;
  // Eviction: the task ends after `stop`; its replacement needs `pod_start` to begin, and a service
  // time to copy its memory in addition if `migration_bytes_per_second` is not 0. A job begins from
  // nothing.
  Duration stop = std::chrono::seconds{5}, pod_start = std::chrono::seconds{5};
  std::int64_t migration_bytes_per_second = 0;
};

// A task that begins, for logs of the schedule.
struct Started {
  TimePoint at;
  std::string_view job, machine, strategy;
  double grams_per_kwh = 0;  // of the machine's electricity at that moment
};
using OnStarted = std::function<void(const Started&)>;

class Simulation;

// Who acts on machines while the simulation runs; see planned.hpp.
class Controller {
 public:
  virtual ~Controller() = default;
  // Called at the start and then when it said so; returns when to come again. Errors end the run.
  virtual Result<Duration> act(Simulation& simulation) = 0;
};

class Simulation {
 public:
  // Work that is here. Queued, then on machines.
  struct Work {
    enum class Phase : std::uint8_t {
      gone,
      queued,
      starting,
      running,
      leaving
    } phase = Phase::gone;
    bool service = false;
    std::string name;
    Job job;  // of a service: arrival, need and name
    std::uint32_t service_index = 0;
    std::int64_t queued_ms = 0, started_ms = -1;
    std::int64_t left = 0;  // work that is left: ms × permille of speed
    std::int64_t touched_ms = 0;
    std::int64_t speed = 0;        // permille at which it advances now
    std::uint32_t generation = 0;  // of its events
    MachineId machine = 0;         // of the first task
    strategies::GpuSet gpus = 0;
    std::vector<std::pair<MachineId, strategies::GpuSet>> others;  // of a gang
    Millicores busy;           // of each task, as it counts on its machine now
    std::uint64_t serial = 0;  // of its arrival; never reused
    bool was_evicted = false;
    bool held = false;               // it waits for low carbon, on purpose
    std::optional<MachineId> wants;  // where an evicted one is to go
  };

  // Errors: invalid_argument: no machines, a name that is there twice, a machine without CPU,
  // more than 64 zones, a step of 0.
  static Result<std::unique_ptr<Simulation>> create(std::vector<MachineSpec> machines,
                                                    std::unique_ptr<strategies::Strategy> strategy,
                                                    Settings settings);
  ~Simulation();

  // Before run(). Errors: invalid_argument, naming the service.
  Result<void> add(std::vector<Service> services);
  void set_controller(std::unique_ptr<Controller> controller);
  void on_started(OnStarted listener) { on_started_ = std::move(listener); }
  // Called now and then with the simulated time, for progress; false ends the run (cancelled).
  void on_progress(std::function<bool(Duration, std::uint64_t jobs)> listener) {
    on_progress_ = std::move(listener);
  }

  // Until `source` is empty and every job has ended or cannot, or up to `until`. Errors: of the
  // source, cancelled.
  Result<void> run(JobSource& source, std::optional<Duration> until = {});
  // On to this moment; nothing new arrives. Nothing if it has passed.
  Result<void> run_until(Duration time);
  // What was so far.
  Outcome outcome() const;

  // ---- what a controller sees and does
  TimePoint now() const { return settings_.start + Duration{now_ms_}; }
  Duration elapsed() const { return Duration{now_ms_}; }
  const Settings& settings() const { return settings_; }
  std::size_t size() const { return machines_.size(); }
  const Machine& machine(MachineId id) const { return machines_[id]; }
  const std::vector<WorkId>& on_machine(MachineId id) const { return on_machine_[id]; }
  const Work& work(WorkId id) const { return work_[id]; }
  std::vector<WorkId> queued() const;  // in order of arrival
  double intensity(MachineId id) const { return zones_[zone_of_[id]].grams_per_kwh; }
  Duration until_ready(MachineId id) const;  // of a machine that boots or stops; 0 otherwise

  // Nothing if the machine is not Off (boot), or not On or not empty (shut_down).
  void boot(MachineId id);
  void shut_down(MachineId id);
  // Does the strategy place anything here? All machines that are On, to begin with.
  void set_open(MachineId id, bool open);
  void limit_frequency(MachineId id, std::int64_t mhz);
  void cap(MachineId id, std::int64_t watts);
  // The task ends after settings.stop and queues again. `to`: where it wants to go, if anywhere;
  // the first decision with room there sends it there.
  void evict(WorkId id, std::optional<MachineId> to);

 private:
  enum class Kind : std::uint8_t {
    job_end,
    evicted,
    machine_up,
    machine_down,
    work_start,
    intensity,
    service_sample,
    service_end,
    arrival,
    idle_off,
    decide,
    control,
  };
  struct Event {
    std::int64_t at;
    Kind kind;
    std::uint32_t id;
    std::uint32_t generation;
    std::uint64_t serial;
    bool operator>(const Event& o) const {
      if (at != o.at) return at > o.at;
      if (kind != o.kind) return kind > o.kind;
      return serial > o.serial;
    }
  };
  struct Zone {
    std::string name;
    const Intensity* series = nullptr;
    double grams_per_kwh = 0;
    Milliwatts power;  // of its machines
    std::vector<MachineId> machines;
    std::vector<double> forecast;
  };

  struct ServiceWork {
    double wanted = 0, undelivered = 0;  // millicore·ms; undelivered: while it moved
  };
  struct ServiceState {
    WorkId work = 0;
    bool here = false;
    std::size_t sample = 0;
    ServiceWork sum;
    Millicores want;  // of now
    bool begun = false;
    std::int64_t since_ms = 0;
  };

  Simulation(std::vector<MachineSpec> machines, std::unique_ptr<strategies::Strategy> strategy,
             strategies::Cluster cluster, Settings settings);

  void push(std::int64_t at, Kind kind, std::uint32_t id = 0, std::uint32_t generation = 0);
  Result<void> loop(std::optional<std::int64_t> until);
  Result<void> handle(const Event& event);
  void advance(std::int64_t to);
  bool finished() const;
  Result<void> pull();  // the next job of the source

  // Every change of a machine goes through here, so that energy and levels stay exact.
  template <class Change>
  void change(MachineId id, Change&& what);
  Level level() const;

  // simulation_work.cpp
  WorkId new_work();
  void arrive(Job&& job);
  void enqueue(WorkId id);
  void decide();
  void assign(WorkId id, std::span<const strategies::Assignment> members);
  void begin(WorkId id);
  void touch(Work& work);
  void reschedule(WorkId id);
  void finish_job(WorkId id);
  void leave(WorkId id);
  void free_places(WorkId id);
  void reject(Work& work, std::string reason);
  void sample(std::uint32_t service_index);
  void end_service(std::uint32_t service_index);
  ServiceWork service_work(std::uint32_t service_index) const;  // up to now
  void account(std::uint32_t service_index);
  void grant_wishes();
  void take_out(std::size_t first, std::size_t count, const std::vector<std::uint8_t>& gone);
  void want_decision(std::int64_t at);
  bool ever_fits(const strategies::Job& job) const;
  template <class Visit>
  void each_place(const Work& work, Visit&& visit) const;

  // simulation_machines.cpp
  void machine_up(MachineId id);
  void machine_down(MachineId id);
  void set_cluster_state(MachineId id);
  void note_idle(MachineId id);
  void idle_off(MachineId id, std::uint32_t generation);
  void speed_changed(MachineId id);
  void intensity_changed(std::uint32_t zone);
  void make_forecast(Zone& zone) const;

  Settings settings_;
  std::vector<MachineSpec> specs_;
  std::vector<Machine> machines_;
  std::vector<std::uint32_t> zone_of_;
  std::vector<Zone> zones_;
  std::vector<std::int64_t> ready_ms_;  // of booting and stopping machines
  std::vector<std::uint8_t> open_;
  std::vector<std::uint32_t> idle_generation_;
  std::vector<std::vector<WorkId>> on_machine_;
  strategies::Cluster cluster_;
  std::unique_ptr<strategies::Strategy> strategy_;
  std::unique_ptr<Controller> controller_;

  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t event_serial_ = 0, arrivals_ = 0;
  std::int64_t now_ms_ = 0, progress_ms_ = 0;  // progress: the last begin or end of a job
  JobSource* source_ = nullptr;                // within run()
  std::optional<Job> coming_;                  // the next of the source
  bool source_empty_ = true;
  std::vector<Work> work_;
  std::vector<WorkId> free_work_;
  // The queue: jobs as the strategy sees them, ids beside them; those before head_ are gone.
  std::vector<strategies::Job> queue_;
  std::size_t head_ = 0, seen_ = 0;
  std::int64_t decide_at_ = -1;             // the pending decision; -1: none
  TimePoint carbon_at_ = TimePoint::max();  // the first job held back for carbon may start
  strategies::Decision decision_;
  std::vector<strategies::CarbonForecast> forecasts_;

  std::vector<Service> services_;
  std::vector<ServiceState> service_states_;
  std::uint64_t running_jobs_ = 0, queued_jobs_ = 0;
  std::uint64_t services_to_end_ = 0;  // with an end that has not come
  std::uint64_t wishes_ = 0;           // queued works that want to go somewhere

  std::int64_t used_cpu_ = 0, machines_on_ = 0;
  Outcome outcome_;
  OnStarted on_started_;
  std::function<bool(Duration, std::uint64_t)> on_progress_;
};

}  // namespace kwatt::simulator
