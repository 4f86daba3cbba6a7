#pragma once
// Where carbon intensities come from: a CSV file, a Prometheus server, or any HTTP service that
// answers in JSON. A source serves many zones; each is asked for by its name there.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/carbon/intensity_csv.hpp"
#include "net/allow_list.hpp"
#include "telemetry/carbon_mapping.hpp"
#include "telemetry/prometheus_client.hpp"

namespace kwatt::telemetry {

// Used from one strand; one fetch of a zone at a time.
class CarbonSource {
 public:
  virtual ~CarbonSource() = default;
  virtual const std::string& name() const = 0;
  // What the source has of the zone, oldest first: a day or two, or only the newest value.
  // Bounded in time and size. Errors, each with the source's name before it: not_found (the source
  // has no such zone, or its answer no value), io (a file), unauthorized, forbidden (the
  // allow-list, or the peer), too_many_requests, timeout, unavailable, parse, protocol.
  virtual net::Task<Result<std::vector<models::carbon::Reading>>> fetch(std::string zone,
                                                                        TimePoint now) = 0;
};

// `read` gives the whole file anew, so that it may be replaced while kwatt runs.
struct CarbonFile {
  std::string path;
  models::carbon::CsvShape shape;
  std::function<Result<std::string>(const std::string& path)> read;
};
std::unique_ptr<CarbonSource> make_carbon_file(std::string name, CarbonFile file);

// The newest value only. {zone} in the query is replaced by the zone, whose characters must be
// letters, digits, '-', '_' and '.'. The query gives one series, or one for each zone of which the
// label kwatt_zone, zone or region names it.
std::unique_ptr<CarbonSource> make_carbon_prometheus(boost::asio::any_io_executor executor,
                                                     std::string name, PrometheusServer server,
                                                     std::string query, const std::string& unit);

// {zone}, {from} and {to} in the URL are replaced: the zone percent-encoded, times such as
// 2026-11-20T21:00Z, of which `from` is `history` back.
struct CarbonService {
  std::string url;
  CarbonMapping mapping;
  std::string header;  // "auth-token"; "": none is sent
  std::string prefix;  // "Bearer "
  Duration history = std::chrono::hours{48};
  std::function<Result<std::string>()> secret = {};  // asked before each request
  net::AllowList allowed;                            // checked by name, and again by address
  Duration timeout = std::chrono::seconds{10};
  net::Client::TlsSource tls = {};
};
// Errors: invalid_argument (URL, mapping; a secret over plain HTTP), forbidden (allow-list), each
// with what to do.
Result<std::unique_ptr<CarbonSource>> make_carbon_service(boost::asio::any_io_executor executor,
                                                          std::string name, CarbonService service);

}  // namespace kwatt::telemetry
