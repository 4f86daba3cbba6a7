#include "reconcilers/drivers.hpp"

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "kube/base64.hpp"
#include "net/run.hpp"
#include "reconcilers/metal3.hpp"
#include "reconcilers/wake_on_lan.hpp"

namespace kwatt::reconcilers {
namespace {

// Rotated credentials count after this long even if the old ones are still accepted.
constexpr auto kKeep = std::chrono::minutes{5};

// How long the drivers may take to give back their sessions.
constexpr Duration kClosing = std::chrono::seconds{3};

// Keeps the driver until it is closed.
kube::Task<void> closed(std::shared_ptr<hardware::PowerDriver> driver) {
  co_await driver->close();
}

}  // namespace

Result<std::map<std::string, std::string>> decode_secret(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return fail(ErrorCode::parse, "the Secret is not a JSON object");
  }
  std::map<std::string, std::string> out;
  const auto data = document.FindMember("data");
  if (data == document.MemberEnd() || !data->value.IsObject()) return out;
  for (const auto& member : data->value.GetObject()) {
    if (!member.value.IsString()) continue;
    auto decoded = kube::decode_base64({member.value.GetString(), member.value.GetStringLength()});
    if (!decoded) {
      return fail(ErrorCode::parse,
                  fmt::format("data.{} of the Secret is not base64", member.name.GetString()));
    }
    out.emplace(std::string(member.name.GetString(), member.name.GetStringLength()),
                std::move(*decoded));
  }
  return out;
}

Drivers::Drivers(boost::asio::any_io_executor executor, kube::Client& client,
                 std::string secret_namespace, const Clock& clock, hardware::AllowList allowed,
                 DriverSettings settings)
    : executor_(std::move(executor)),
      client_(client),
      secret_namespace_(std::move(secret_namespace)),
      clock_(clock),
      allowed_(std::move(allowed)),
      settings_(std::move(settings)) {}

Drivers::~Drivers() = default;

hardware::DriverConfig Drivers::config_of(const std::string& address) const {
  hardware::DriverConfig config;
  config.address = address;
  config.commands = settings_.commands;
  return config;
}

Result<std::unique_ptr<hardware::PowerDriver>> Drivers::through_the_api(
    const std::string& node, const std::string& address) {
  if (address.starts_with("metal3:")) {
    auto host = parse_metal3_address(address);
    if (!host) return host.error();
    return make_metal3_driver(client_, std::move(*host));
  }
  if (address.starts_with("wol:") && settings_.stores != nullptr) {
    auto mac = hardware::parse_wake_address(address);
    if (!mac) return mac.error();
    return make_wake_on_lan_driver(client_, *settings_.stores, clock_, node, *mac);
  }
  return std::unique_ptr<hardware::PowerDriver>();
}

std::string Drivers::problem(const std::string& address) {
  const auto known = problems_.find(address);
  if (known != problems_.end()) return known->second;
  return problems_.emplace(address, look_for_problem(address)).first->second;
}

std::string Drivers::look_for_problem(const std::string& address) {
  const auto through_api = through_the_api("", address);
  if (!through_api) return through_api.error().message;
  if (*through_api != nullptr) return "";
  const auto made = hardware::make_driver(executor_, config_of(address));
  return made ? allowed_.refusal(address) : made.error().message;
}

void Drivers::forget(const std::string& machine) {
  const auto found = entries_.find(machine);
  if (found == entries_.end()) return;
  // Its session would stay open at the BMC until it times out there, and BMCs have few.
  boost::asio::co_spawn(executor_, closed(found->second.driver), boost::asio::detached);
  entries_.erase(found);
}

kube::Task<void> Drivers::close() {
  const auto open = std::exchange(entries_, {});
  auto left = std::make_shared<std::size_t>(open.size());
  auto all_closed = std::make_shared<net::Signal>();
  for (const auto& [name, entry] : open) {
    boost::asio::co_spawn(executor_, closed(entry.driver),
                          [left, all_closed](const std::exception_ptr&) {
                            if (--*left == 0) all_closed->notify_all();
                          });
  }
  if (*left > 0) (void)co_await all_closed->wait_for(kClosing);
}

kube::Task<Result<std::map<std::string, std::string>>> Drivers::secret(std::string name) {
  const auto body = co_await client_.get(kube::resources::secrets(), {secret_namespace_, name});
  if (!body) {
    co_return body.error().with_context(fmt::format("Secret {}/{}", secret_namespace_, name));
  }
  co_return decode_secret(*body);
}

kube::Task<Result<std::shared_ptr<hardware::PowerDriver>>> Drivers::get(
    std::shared_ptr<const api::NodePower> machine) {
  const std::string name = machine->meta.name;
  const api::BmcSpec& bmc = machine->spec.bmc;
  if (bmc.address.empty()) {
    co_return fail(ErrorCode::not_found,
                   fmt::format("NodePower {} has no spec.bmc.address: set it to let kwatt switch "
                               "the machine",
                               name));
  }
  const auto kept = entries_.find(name);
  if (kept != entries_.end() && kept->second.spec == bmc &&
      clock_.monotonic() - kept->second.made < kKeep) {
    co_return kept->second.driver;
  }

  auto through_api = through_the_api(name, bmc.address);
  if (!through_api) {
    co_return through_api.error().with_context(fmt::format("NodePower {}", name));
  }
  if (*through_api != nullptr) {
    std::shared_ptr<hardware::PowerDriver> made = std::move(*through_api);
    entries_[name] = {bmc, clock_.monotonic(), made};
    co_return made;
  }
  if (auto refusal = allowed_.refusal(bmc.address); !refusal.empty()) {
    co_return fail(ErrorCode::forbidden, std::move(refusal));
  }
  hardware::DriverConfig config = config_of(bmc.address);
  config.node = name;
  config.address_allowed = allowed_.filter(bmc.address);
  if (!bmc.credentials_secret_ref.name.empty()) {
    auto keys = co_await secret(bmc.credentials_secret_ref.name);
    if (!keys) co_return keys.error();
    const auto user = keys->find("username");
    const auto password = keys->find("password");
    if (user == keys->end() || password == keys->end()) {
      co_return fail(ErrorCode::not_found,
                     fmt::format("Secret {}/{} needs the keys username and password",
                                 secret_namespace_, bmc.credentials_secret_ref.name));
    }
    config.credentials = hardware::Credentials{user->second, password->second};
  }
  if (!bmc.ca_secret_ref.name.empty()) {
    auto keys = co_await secret(bmc.ca_secret_ref.name);
    if (!keys) co_return keys.error();
    const auto ca = keys->find("ca.crt");
    if (ca == keys->end()) {
      co_return fail(ErrorCode::not_found, fmt::format("Secret {}/{} needs the key ca.crt",
                                                       secret_namespace_, bmc.ca_secret_ref.name));
    }
    config.ca_pem = ca->second;
  }
  auto made = hardware::make_driver(executor_, std::move(config));
  if (!made) {
    co_return made.error().with_context(fmt::format("NodePower {}: spec.bmc.address", name));
  }
  std::shared_ptr<hardware::PowerDriver> driver = std::move(*made);
  forget(name);
  entries_[name] = {bmc, clock_.monotonic(), driver};
  co_return driver;
}

}  // namespace kwatt::reconcilers
