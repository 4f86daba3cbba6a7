#pragma once
// Carbon sources as users write them: one JSON file for all of them
// (docs/reference/carbon-sources.md says each field).
//
//   {"sources": [
//     {"name": "maps", "http": {"url": "https://…/history?zone={zone}", "list": "/history", …}},
//     {"name": "own", "prometheus": {"url": "http://127.0.0.1:9090", "query": "carbon"}},
//     {"name": "file", "csv": {"path": "intensity.csv"}}]}
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "telemetry/carbon_source.hpp"

namespace kwatt::telemetry {

struct CarbonCsvConfig {
  std::string path;
  models::carbon::CsvShape shape;
};
struct CarbonPrometheusConfig {
  std::string url, query, token_file, ca_file;
  std::string unit = "g/kWh";
  Duration timeout = std::chrono::seconds{10};
};
struct CarbonHttpConfig {
  std::string url, header, prefix, secret_file, ca_file;
  CarbonMapping mapping;
  Duration history = std::chrono::hours{48};
  Duration timeout = std::chrono::seconds{10};
};
struct CarbonSourceConfig {
  std::string name;
  std::variant<CarbonCsvConfig, CarbonPrometheusConfig, CarbonHttpConfig> from;
};

inline constexpr std::size_t kMostCarbonSources = 64;

// `file` for messages. Errors: parse, with "file: /sources/0/http/url: " and what is expected; a
// field that is not known is one. Names differ and are not empty.
Result<std::vector<CarbonSourceConfig>> parse_carbon_config(std::string_view json,
                                                            const std::string& file);

// What sources need of the world.
struct CarbonWorld {
  net::AllowList allowed;  // for HTTP and Prometheus
  std::function<Result<std::string>(const std::string& path)> read_file;
};
// Errors: those of make_carbon_service(); forbidden, a Prometheus that is not on the allow-list.
Result<std::unique_ptr<CarbonSource>> make_carbon_source(boost::asio::any_io_executor executor,
                                                         const CarbonSourceConfig& config,
                                                         const CarbonWorld& world);

}  // namespace kwatt::telemetry
