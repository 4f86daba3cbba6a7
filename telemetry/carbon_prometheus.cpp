// Carbon intensity as somebody else's exporter has it in Prometheus.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "telemetry/carbon_source.hpp"

namespace kwatt::telemetry {
namespace {

using models::carbon::Reading;

constexpr std::string_view kZone = "{zone}";

bool may_stand_in_query(std::string_view zone) {
  return !zone.empty() && std::all_of(zone.begin(), zone.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::vector<std::string> zone_labels() {
  return {"kwatt_zone", "zone", "region"};
}

class CarbonPrometheus final : public CarbonSource {
 public:
  CarbonPrometheus(boost::asio::any_io_executor executor, std::string name, PrometheusServer server,
                   std::string query, double grams)
      : name_(std::move(name)),
        query_(std::move(query)),
        grams_(grams),
        client_(std::move(executor), std::move(server)) {}
  const std::string& name() const override { return name_; }

  net::Task<Result<std::vector<Reading>>> fetch(std::string zone, TimePoint now) override {
    std::string query = query_;
    for (auto at = query.find(kZone); at != std::string::npos; at = query.find(kZone, at)) {
      if (!may_stand_in_query(zone)) {
        co_return fail(
            ErrorCode::invalid_argument,
            fmt::format("{}: zone \"{}\" has characters that no query may get", name_, zone));
      }
      query.replace(at, kZone.size(), zone);
      at += zone.size();
    }
    auto series = co_await client_.query(std::move(query), zone_labels());
    if (!series) co_return series.error().with_context(name_);
    co_return value_of(*series, zone, now);
  }

 private:
  Result<std::vector<Reading>> value_of(const std::vector<Series>& all, const std::string& zone,
                                        TimePoint now) const {
    const Series* found = nullptr;
    for (const Series& one : all) {
      const std::array<std::string_view, 3> labels{one.label("kwatt_zone"), one.label("zone"),
                                                   one.label("region")};
      const bool named = std::find(labels.begin(), labels.end(), zone) != labels.end();
      if (!named && (all.size() > 1 || query_.find(kZone) == std::string::npos)) {
        // A single series that carries no zone at all is of whatever zone is asked for.
        const bool silent = std::all_of(labels.begin(), labels.end(),
                                        [](std::string_view label) { return label.empty(); });
        if (all.size() > 1 || !silent) continue;
      }
      if (found != nullptr) {
        return fail(ErrorCode::parse,
                    fmt::format("{}: more than one series for zone \"{}\"", name_, zone));
      }
      found = &one;
    }
    if (found == nullptr) {
      return fail(ErrorCode::not_found, fmt::format("{}: no series for zone \"{}\" in {} that came",
                                                    name_, zone, all.size()));
    }
    const double grams = found->value * grams_;
    const auto problem = found->is_number ? models::carbon::grams_problem(grams)
                                          : std::string_view("it is not a number");
    if (!problem.empty()) {
      return fail(ErrorCode::parse,
                  fmt::format("{}: carbon intensity of zone \"{}\": {}", name_, zone, problem));
    }
    return std::vector<Reading>{{now, grams}};
  }

  std::string name_, query_;
  double grams_;
  PrometheusClient client_;
};

}  // namespace

std::unique_ptr<CarbonSource> make_carbon_prometheus(boost::asio::any_io_executor executor,
                                                     std::string name, PrometheusServer server,
                                                     std::string query, const std::string& unit) {
  return std::make_unique<CarbonPrometheus>(std::move(executor), std::move(name), std::move(server),
                                            std::move(query), grams_in(unit).value_or(1));
}

}  // namespace kwatt::telemetry
