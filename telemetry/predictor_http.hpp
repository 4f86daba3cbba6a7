#pragma once
// Private to telemetry/. What predictors over HTTP share: where they are, and what their refusals
// mean.
#include <string>
#include <string_view>

#include "telemetry/predictor.hpp"

namespace kwatt::telemetry {

// A model at a server, as its URL says.
struct ModelPlace {
  net::Origin origin;
  std::string prefix;   // a path before the protocol's own, "" mostly; percent-encoded
  std::string model;    // percent-decoded
  std::string version;  // "": the server's choice
  // prefix + "/v1/models/" + model + ["/versions/" + version], percent-encoded.
  std::string path(std::string_view root) const;
};

// `root`: "/v1/models/" or "/v2/models/"; `verb`: what may stand behind, ":predict" or "/infer".
// Errors: invalid_argument, with what is wrong and how it should look.
Result<ModelPlace> parse_model_url(const std::string& url, std::string_view root,
                                   std::string_view verb);

class HttpModel {
 public:
  // Errors: forbidden (not on the allow-list).
  static Result<HttpModel> make(boost::asio::any_io_executor executor, std::string name,
                                const ModelPlace& place, PredictorSettings settings);

  // Sends and gives the body of a 200. Errors: see Predictor; the name of the predictor first.
  net::Task<Result<std::string>> ask(std::string method, std::string target, std::string body);
  const std::string& name() const { return name_; }

 private:
  HttpModel(std::string name, std::string model, net::Limits limits,
            std::shared_ptr<bool> address_refused, net::Client client);
  std::string name_, model_;
  net::Limits limits_;
  std::shared_ptr<bool> address_refused_;
  net::Client client_;
};

}  // namespace kwatt::telemetry
