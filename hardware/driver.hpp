#pragma once
// Power of one machine through its management controller. One driver per scheme of
// NodePower.spec.bmc.address; make_driver() is the explicit registry.
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "net/client.hpp"

namespace kwatt::hardware {

template <class T>
using Task = net::Task<T>;

// As the machine itself says (DSP0268 PowerState, without the vendor states).
enum class MachinePower { unknown, on, off, powering_on, powering_off };

// Only idempotent resets: repeating one after a lost reply does no harm (never a power cycle).
enum class Reset { on, graceful_shutdown, force_off };

// A limit that the machine's controller enforces by itself, without the operating system.
struct PowerLimit {
  std::optional<Milliwatts> limit;            // in force; nullopt: none
  std::optional<Milliwatts> lowest, highest;  // what it takes, where it says so
};

struct Credentials {
  std::string user, password;  // never logged, never in argv
};

// All calls: errors `unavailable`/`timeout` (BMC not reachable), `unauthorized`, `forbidden` (TLS,
// allow-list), `protocol` (answer not understood, server_text has it), `unsupported` (the machine
// does not offer this). Bounded in time. One call at a time per driver.
class PowerDriver {
 public:
  virtual ~PowerDriver() = default;
  virtual Task<Result<MachinePower>> state() = 0;
  // Returns when the machine accepted the command, not when the state is reached. `operation_id`
  // goes along where the protocol can carry it (header Kwatt-Operation-Id), for audit.
  virtual Task<Result<void>> reset(Reset reset, std::string operation_id) = 0;
  // Present draw; nullopt where the machine has no sensor.
  virtual Task<Result<std::optional<Milliwatts>>> power_reading() = 0;
  // nullopt: no limit. Errors: also out_of_range, conflict (somebody else wrote first).
  // `operation_id`: as with reset().
  virtual Task<Result<void>> set_power_limit(std::optional<Milliwatts> limit,
                                             std::string operation_id) = 0;
  // The limit in force. Errors: unsupported where the machine has no limit of its own, which is
  // also the answer of a driver that does not override this; its caps are then left to the agent.
  virtual Task<Result<PowerLimit>> power_limit();
  // Gives back what the driver holds at the machine's controller (a session). The last call.
  virtual Task<void> close();
};

struct DriverConfig {
  std::string address;  // NodePower.spec.bmc.address
  std::optional<Credentials> credentials;
  std::string ca_pem;                           // "": system roots
  Duration timeout = std::chrono::seconds{60};  // of each request; a call makes a handful
  // Asked with the resolved address before connecting (the controller's allow-list); empty: any.
  net::Client::AddressFilter address_allowed = {};
  std::string node = {};  // the Node that the machine is, for peers that know it by this name
  std::map<std::string, std::string> commands = {};  // programs of command:NAME, by NAME
};

// redfish+https://HOST[:PORT][/redfish/v1/Systems/ID] redfish.hpp (redfish+http: without TLS)
// lab://HOST:PORT/machines/NAME                       lab.hpp (lab+http: the same)
// ipmi://HOST[:PORT]                                  ipmi.hpp, through ipmitool
// command:NAME[/ANYTHING]                             command.hpp, a program of the operator
//
// wol: and metal3: go through the Kubernetes API (reconcilers/drivers.hpp).
//
// Errors: invalid_argument with the known schemes when the address is not one of them, or when the
// rest of it is not such a URL.
Result<std::unique_ptr<PowerDriver>> make_driver(boost::asio::any_io_executor executor,
                                                 DriverConfig config);

}  // namespace kwatt::hardware
