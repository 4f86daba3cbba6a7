#pragma once
// One power driver per machine, made from NodePower.spec.bmc and the Secrets it names, kept while
// neither changes. Schemes of hardware/driver.hpp, and those that go through the Kubernetes API:
//   wol:MAC                  wake_on_lan.hpp
//   metal3://NAMESPACE/NAME  metal3.hpp
#include <map>
#include <memory>
#include <string>

#include "api/node_power.hpp"
#include "base/clock.hpp"
#include "hardware/allow_list.hpp"
#include "hardware/driver.hpp"
#include "kube/client.hpp"
#include "reconcilers/stores.hpp"

namespace kwatt::reconcilers {

// What the controller's operator allows all machines.
struct DriverSettings {
  const Stores* stores = nullptr;  // for wake-on-LAN; without it wol: is not understood
  std::map<std::string, std::string> commands = {};  // programs of command:NAME, by NAME
};

// Single-threaded, on the controller's strand.
class Drivers {
 public:
  // Secrets are read from `secret_namespace` (the controller's own) and from nowhere else. Only
  // BMCs that `allowed` covers are connected to.
  Drivers(boost::asio::any_io_executor executor, kube::Client& client, std::string secret_namespace,
          const Clock& clock, hardware::AllowList allowed, DriverSettings settings = {});
  ~Drivers();

  // Why no driver can be had for this address: it is not understood, or not allowed; "": it can.
  // Never asks the machine.
  std::string problem(const std::string& address);

  // The machine's driver. Errors: invalid_argument (address), forbidden (not allowed), not_found
  // (no address, or a Secret or a key in it is missing; the sentence names them), and what reading
  // the Secret may give. The pointer stays valid as long as it is held.
  kube::Task<Result<std::shared_ptr<hardware::PowerDriver>>> get(
      std::shared_ptr<const api::NodePower> machine);

  // After `unauthorized`: the next get() reads the Secret again.
  void forget(const std::string& machine);

  // At the end: gives back the sessions that the drivers hold, within a few seconds.
  kube::Task<void> close();

 private:
  struct Entry {
    api::BmcSpec spec;
    MonotonicPoint made;
    std::shared_ptr<hardware::PowerDriver> driver;
  };
  hardware::DriverConfig config_of(const std::string& address) const;
  // Drivers that need no Secret. nullptr: another scheme.
  Result<std::unique_ptr<hardware::PowerDriver>> through_the_api(const std::string& node,
                                                                 const std::string& address);
  std::string look_for_problem(const std::string& address);
  kube::Task<Result<std::map<std::string, std::string>>> secret(std::string name);

  boost::asio::any_io_executor executor_;
  kube::Client& client_;
  std::string secret_namespace_;
  const Clock& clock_;
  hardware::AllowList allowed_;
  DriverSettings settings_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> problems_;  // by address
};

// The keys of a Secret's data, base64-decoded. Errors: parse.
Result<std::map<std::string, std::string>> decode_secret(std::string_view json);

}  // namespace kwatt::reconcilers
