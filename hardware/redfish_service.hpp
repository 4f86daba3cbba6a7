#pragma once
// One Redfish service: requests with limits, authentication and the pauses it asks for (DSP0266).
#include <chrono>
#include <memory>
#include <string>

#include "hardware/driver.hpp"

namespace kwatt::hardware::redfish {

// With credentials, a session is opened where the service root names a Sessions collection
// (DSP0266, session login authentication): its token is used again, replaced once when the service
// answers 401, and given back by close(). A service without sessions gets basic authentication.
// Refused credentials are not tried a second way: services lock accounts. Without credentials
// nothing is sent. After a 503 or 429 with Retry-After nothing is sent before that time; every call
// until then is `unavailable` at once. One call at a time.
class Service {
 public:
  Service(boost::asio::any_io_executor executor, const DriverConfig& config, net::Origin origin);

  // The answer, whatever its status. Errors: of the connection, unauthorized, and unavailable
  // within a pause.
  Task<Result<net::Response>> send(std::string method, std::string target, std::string body,
                                   net::Headers headers);
  // The answer if it is 2xx, else error_of it with the path as context.
  Task<Result<net::Response>> get(std::string path);
  Task<void> close();

 private:
  enum class Login { unknown, none, basic, session };
  using Moment = std::chrono::steady_clock::time_point;

  Task<Result<net::Response>> exchange(std::string method, std::string target, std::string body,
                                       net::Headers headers);
  Task<Result<void>> log_in();
  Task<Result<void>> open_session();
  void heed(const net::Response& answer);

  std::optional<Credentials> credentials_;
  net::Limits limits_;
  std::shared_ptr<bool> address_refused_ = std::make_shared<bool>(false);
  net::Client client_;
  Login login_ = Login::unknown;
  std::string sessions_path_;         // of the collection
  std::string token_, session_path_;  // of our session
  std::optional<Moment> not_before_;
};

}  // namespace kwatt::hardware::redfish
