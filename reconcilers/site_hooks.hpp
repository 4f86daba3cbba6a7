#pragma once
// Starts machines at sites through the operator's hooks (docs/reference/site-hook.md): a program or
// an HTTP endpoint that the controller was given by name. Objects choose a name, never bring one.
#include <map>
#include <memory>
#include <string>

#include "hardware/process.hpp"
#include "net/client.hpp"

namespace kwatt::reconcilers {

struct HookCall {
  std::string site;
  std::string operation_id;    // the same whenever the call is repeated
  std::string recommendation;  // NAMESPACE/NAME, for the hook's own records
  std::string request_json;    // spec.resources, workloads and bandwidth
};

struct HookAnswer {
  bool ready = true;  // false: accepted, ask again
  std::string machine_id;
};

// Does this error say that the machine will not be started? Any other may have started it.
bool is_refusal(const Error& error);

class SiteHooks {
 public:
  // NAME → /PATH of a program, or an http(s) URL.
  SiteHooks(boost::asio::any_io_executor executor, std::map<std::string, std::string> hooks);
  ~SiteHooks();

  // Errors: not_found (no hook has this name), unsupported and out_of_range (refusals), others: not
  // this time.
  net::Task<Result<HookAnswer>> call(std::string hook, HookCall call);

 private:
  net::Task<Result<HookAnswer>> run(std::string path, HookCall call);
  net::Task<Result<HookAnswer>> post(std::string url, HookCall call);

  boost::asio::any_io_executor executor_;
  std::map<std::string, std::string> hooks_;
  std::map<std::string, std::shared_ptr<net::Client>> clients_;
};

// The answers of the two kinds of hook. Pure. Errors: protocol.
Result<HookAnswer> parse_hook_output(const hardware::Finished& finished);
Result<HookAnswer> parse_hook_response(const net::Response& response);

}  // namespace kwatt::reconcilers
