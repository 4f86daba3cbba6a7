#include "hardware/redfish.hpp"

#include <algorithm>
#include <array>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hardware/redfish_messages.hpp"
#include "hardware/redfish_power.hpp"
#include "hardware/redfish_service.hpp"

namespace kwatt::hardware {
namespace {

using redfish::Power;
using redfish::System;

// How many systems an error lists, and how many power supplies are asked.
constexpr std::size_t kMostListed = 16;
constexpr std::size_t kMostSupplies = 8;

bool reached(Reset reset, MachinePower power) {
  return power == (reset == Reset::on ? MachinePower::on : MachinePower::off);
}

// The address leads to the service, not to one of its systems.
bool names_no_system(std::string_view path) {
  constexpr std::array<std::string_view, 4> kAbove{"", "/redfish", "/redfish/v1",
                                                   "/redfish/v1/Systems"};
  return std::find(kAbove.begin(), kAbove.end(), path) != kAbove.end();
}

Error as_protocol(Error error, std::string_view where) {
  error.code = ErrorCode::protocol;
  return error.with_context(where);
}

// Where a reading or a limit is found.
enum class Model { none, environment, power, supplies };

class RedfishDriver final : public PowerDriver {
 public:
  RedfishDriver(boost::asio::any_io_executor executor, const DriverConfig& config,
                const net::Url& url)
      : system_path_(names_no_system(url.path) ? "" : url.path),
        service_(std::move(executor), config, url.origin) {}

  Task<Result<MachinePower>> state() override {
    auto system = co_await read_system();
    if (!system) co_return system.error();
    co_return system->power;
  }

  Task<Result<void>> reset(Reset reset, std::string operation_id) override {
    auto system = co_await read_system();
    if (!system) co_return system.error();
    if (system->allowed.empty() && !system->action_info.empty()) {
      auto info = co_await service_.get(system->action_info);
      if (!info) co_return info.error();
      auto types = redfish::parse_reset_types(info->body);
      if (!types) co_return types.error().with_context("reset ActionInfo");
      system->allowed = std::move(*types);
    }
    auto type = redfish::reset_type(*system, reset);
    if (!type) co_return type.error();
    net::Headers headers;
    if (!operation_id.empty()) headers.set("Kwatt-Operation-Id", operation_id);
    auto answer = co_await service_.send("POST", system->reset_target, redfish::reset_body(*type),
                                         std::move(headers));
    if (!answer) co_return answer.error();
    const auto error = redfish::error_of(*answer);
    if (!error) co_return Result<void>{};
    const bool refused = answer->status == 400 || answer->status == 409;
    if (refused && reached(reset, system->power)) co_return Result<void>{};
    co_return error->with_context("reset " + *type);
  }

  Task<Result<std::optional<Milliwatts>>> power_reading() override {
    if (auto found = co_await locate(); !found) co_return found.error();
    if (meter_ == Model::none) co_return std::optional<Milliwatts>{};
    if (meter_ == Model::supplies) co_return co_await read_supplies();
    auto power = co_await read_power(meter_, meter_path_);
    if (!power) co_return power.error();
    co_return redfish::reading_of(power->resource);
  }

  Task<Result<PowerLimit>> power_limit() override {
    auto power = co_await read_limiter();
    if (!power) co_return power.error();
    co_return redfish::limit_of(power->resource);
  }

  Task<Result<void>> set_power_limit(std::optional<Milliwatts> limit,
                                     std::string operation_id) override {
    auto power = co_await read_limiter();
    if (!power) co_return power.error();
    const bool modern = limiter_ == Model::environment;
    const std::string body = modern
                                 ? redfish::environment_limit_body(limit, power->resource.has_mode)
                                 : redfish::power_limit_body(limit);
    net::Headers headers;
    if (!power->etag.empty()) headers.set("If-Match", power->etag);
    if (!operation_id.empty()) headers.set("Kwatt-Operation-Id", operation_id);
    auto answer = co_await service_.send("PATCH", limiter_path_, body, std::move(headers));
    if (!answer) co_return answer.error();
    auto error = redfish::error_of(*answer);
    if (!error) co_return Result<void>{};
    // The limit is the only thing in the request that can be a wrong value.
    if (answer->status == 400 || answer->status == 422) error->code = ErrorCode::out_of_range;
    co_return error->with_context("power limit");
  }

  Task<void> close() override { co_await service_.close(); }

 private:
  struct PowerResource {
    Power resource;
    std::string etag;
  };

  // The path of the machine's ComputerSystem; found once where the address does not name it.
  Task<Result<std::string>> system_path() {
    if (!system_path_.empty()) co_return system_path_;
    auto root = co_await service_.get("/redfish/v1/");
    if (!root) co_return root.error();
    auto parsed = redfish::parse_root(root->body);
    if (!parsed) co_return as_protocol(parsed.error(), "/redfish/v1/");
    if (parsed->systems.empty()) {
      co_return fail(ErrorCode::unsupported, "the Redfish service has no Systems");
    }
    auto list = co_await service_.get(parsed->systems);
    if (!list) co_return list.error();
    auto members = redfish::parse_members(list->body);
    if (!members) co_return as_protocol(members.error(), parsed->systems);
    if (members->empty()) {
      co_return fail(ErrorCode::not_found, "the Redfish service has no system");
    }
    if (members->size() > 1) {
      const std::size_t count = members->size();
      if (count > kMostListed) members->resize(kMostListed);
      co_return fail(
          ErrorCode::invalid_argument,
          fmt::format("the Redfish service has {} systems; the address must name one of {}{}",
                      count, fmt::join(*members, ", "), count > kMostListed ? ", …" : ""));
    }
    system_path_ = members->front();
    co_return system_path_;
  }

  Task<Result<System>> read_system() {
    auto path = co_await system_path();
    if (!path) co_return path.error();
    auto answer = co_await service_.get(*path);
    if (!answer) co_return answer.error();
    auto system = redfish::parse_system(answer->body);
    // HTML with status 200 is how some controllers say that they are busy or need a login.
    if (!system) co_return as_protocol(system.error(), *path);
    co_return system;
  }

  // A resource that need not be there: nullopt on 404.
  Task<Result<std::optional<std::string>>> get_if_there(std::string path) {
    auto answer = co_await service_.get(std::move(path));
    if (answer) co_return std::optional{std::move(answer->body)};
    if (answer.error().code == ErrorCode::not_found) co_return std::optional<std::string>{};
    co_return answer.error();
  }

  Task<Result<PowerResource>> read_power(Model model, std::string path) {
    auto answer = co_await service_.get(path);
    if (!answer) co_return answer.error();
    auto power = model == Model::environment ? redfish::parse_environment(answer->body)
                                             : redfish::parse_power(answer->body);
    if (!power) co_return as_protocol(power.error(), path);
    PowerResource resource{std::move(*power), std::string{}};
    const auto header = answer->headers.get("ETag");
    resource.etag = header.empty() ? resource.resource.etag : std::string(header);
    co_return resource;
  }

  Task<Result<PowerResource>> read_limiter() {
    if (auto found = co_await locate(); !found) co_return found.error();
    if (limiter_ == Model::none) {
      co_return fail(ErrorCode::unsupported, "the machine's controller offers no power limit");
    }
    auto power = co_await read_power(limiter_, limiter_path_);
    if (power && !power->resource.limitable) {
      co_return fail(ErrorCode::unsupported,
                     "the machine's controller does not offer its power limit any more");
    }
    co_return power;
  }

  // Finds out once which resources have the reading and the limit; a service does not move them.
  Task<Result<void>> locate() {
    if (located_) co_return Result<void>{};
    auto system = co_await read_system();
    if (!system) co_return system.error();
    for (std::string chassis : system->chassis) {
      if (auto looked = co_await look_at(std::move(chassis)); !looked) co_return looked.error();
      if (meter_ != Model::none && limiter_ != Model::none) break;
    }
    located_ = true;
    co_return Result<void>{};
  }

  Task<Result<void>> look_at(std::string path) {
    auto body = co_await get_if_there(path);
    if (!body) co_return body.error();
    if (!*body) co_return Result<void>{};
    auto chassis = redfish::parse_chassis(**body);
    if (!chassis) co_return as_protocol(chassis.error(), path);
    if (auto looked = co_await try_model(Model::environment, chassis->environment); !looked) {
      co_return looked.error();
    }
    if (meter_ == Model::none || limiter_ == Model::none) {
      if (auto looked = co_await try_model(Model::power, chassis->power); !looked) {
        co_return looked.error();
      }
    }
    if (meter_ == Model::none && !chassis->subsystem.empty()) {
      co_return co_await find_supplies(chassis->subsystem);
    }
    co_return Result<void>{};
  }

  Task<Result<void>> try_model(Model model, std::string path) {
    if (path.empty()) co_return Result<void>{};
    auto power = co_await read_power(model, path);
    if (!power) {
      if (power.error().code == ErrorCode::not_found) co_return Result<void>{};
      co_return power.error();
    }
    if (meter_ == Model::none && power->resource.metered) {
      meter_ = model;
      meter_path_ = path;
    }
    if (limiter_ == Model::none && power->resource.limitable) {
      limiter_ = model;
      limiter_path_ = path;
    }
    co_return Result<void>{};
  }

  Task<Result<void>> find_supplies(std::string subsystem) {
    auto body = co_await get_if_there(subsystem);
    if (!body) co_return body.error();
    if (!*body) co_return Result<void>{};
    auto collection = redfish::parse_supplies_link(**body);
    if (!collection) co_return as_protocol(collection.error(), subsystem);
    if (collection->empty()) co_return Result<void>{};
    auto list = co_await get_if_there(*collection);
    if (!list) co_return list.error();
    if (!*list) co_return Result<void>{};
    auto supplies = redfish::parse_members(**list);
    if (!supplies) co_return as_protocol(supplies.error(), *collection);
    // A sum over some of the supplies would be a wrong reading.
    if (supplies->empty() || supplies->size() > kMostSupplies) co_return Result<void>{};
    std::vector<std::string> metrics;
    for (const std::string& supply : *supplies) {
      auto unit = co_await get_if_there(supply);
      if (!unit) co_return unit.error();
      if (!*unit) co_return Result<void>{};
      auto link = redfish::parse_metrics_link(**unit);
      if (!link) co_return as_protocol(link.error(), supply);
      if (link->empty()) co_return Result<void>{};
      metrics.push_back(std::move(*link));
    }
    meter_ = Model::supplies;
    supplies_ = std::move(metrics);
    co_return Result<void>{};
  }

  // The sum of all supplies' inputs; nullopt unless every one of them tells.
  Task<Result<std::optional<Milliwatts>>> read_supplies() {
    Milliwatts sum;
    for (const std::string& path : supplies_) {
      auto answer = co_await service_.get(path);
      if (!answer) co_return answer.error();
      auto metrics = redfish::parse_supply_metrics(answer->body);
      if (!metrics) co_return as_protocol(metrics.error(), path);
      auto reading = redfish::reading_of(*metrics);
      if (!reading) co_return reading.error();
      if (!*reading) co_return std::optional<Milliwatts>{};
      sum += **reading;
    }
    co_return std::optional{sum};
  }

  std::string system_path_;  // "": to be found
  redfish::Service service_;
  bool located_ = false;
  Model meter_ = Model::none, limiter_ = Model::none;
  std::string meter_path_, limiter_path_;
  std::vector<std::string> supplies_;  // their metrics
};

}  // namespace

std::unique_ptr<PowerDriver> make_redfish_driver(
    boost::asio::any_io_executor executor,
    // NOLINTNEXTLINE(performance-unnecessary-value-param)
    DriverConfig config, const net::Url& url) {
  return std::make_unique<RedfishDriver>(std::move(executor), config, url);
}

}  // namespace kwatt::hardware
