#pragma once
// What `estimate` asks and shows. Pure.
#include <string>
#include <vector>

#include "net/http.hpp"

namespace kwatt::cli {

struct EstimateOptions {
  std::string parameters = "500,5";           // CPU of each workload in millicores, how many
  std::string what = "pc";                    // power consumption, the only one there is
  std::string estimator = "default/default";  // NAMESPACE/NAME
  std::string address;                        // URL; "": through the API server's service proxy
  std::string header;                         // "X-API-KEY: …"
  std::string api_key_file;
  std::string controller_namespace = "kwatt-system";
  std::string output = "list";  // list (as WAO's CLI prints) or json
  bool verbose = false;
};

struct EstimateAsk {
  std::string path;  // below the address
  std::string body;
};
// Errors: invalid_argument, naming the option.
Result<EstimateAsk> estimate_ask(const EstimateOptions& options);
// Through the API server: /api/v1/namespaces/…/services/http:kwatt-estimator:http/proxy + path.
std::string estimate_proxy_path(const EstimateOptions& options, const std::string& path);
// The line that asks the same. A key is not shown.
std::string curl_line(const std::string& address, const EstimateAsk& ask, bool with_key);
// What is printed of an answer. Errors: parse (no estimate in it); of an answer other than 200 its
// code and message.
Result<std::string> estimate_text(const net::Response& response, const EstimateOptions& options);
// As Go prints a []float64: [5 9 13 +Inf].
std::string go_list(const std::vector<double>& values);

}  // namespace kwatt::cli
