#include "reconcilers/drivers.hpp"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "kube/base64.hpp"

namespace kwatt::reconcilers {
namespace {

// Rotated credentials count after this long even if the old ones are still accepted.
constexpr auto kKeep = std::chrono::minutes{5};

// Only lets a caller ask whether an address is understood; nothing is connected.
hardware::DriverConfig probe_of(const std::string& address) {
  hardware::DriverConfig config;
  config.address = address;
  return config;
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
                 std::string secret_namespace, const Clock& clock)
    : executor_(std::move(executor)),
      client_(client),
      secret_namespace_(std::move(secret_namespace)),
      clock_(clock) {}

Drivers::~Drivers() = default;

bool Drivers::understands(const std::string& address) {
  const auto known = understood_.find(address);
  if (known != understood_.end()) return known->second;
  const bool yes = hardware::make_driver(executor_, probe_of(address)).has_value();
  understood_.emplace(address, yes);
  return yes;
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

  hardware::DriverConfig config;
  config.address = bmc.address;
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
  entries_[name] = {bmc, clock_.monotonic(), driver};
  co_return driver;
}

}  // namespace kwatt::reconcilers
