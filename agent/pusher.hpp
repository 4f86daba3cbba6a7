#pragma once
// Pushes samples to the controller: POST <controller-url>/metrics-ingest (telemetry/ingest_format).
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "net/client.hpp"
#include "telemetry/ingest_format.hpp"

namespace kwatt::agent {

struct PusherOptions {
  net::Url url;            // of the controller
  std::string ca_file;     // "": the system's roots
  std::string token_file;  // "": no Authorization header
  std::string node, boot_id;
};

// Keeps at most telemetry::kMaximumSamples; the oldest go first while nobody takes them. Not
// thread-safe.
class Pusher {
 public:
  Pusher(boost::asio::any_io_executor executor, PusherOptions options);

  void add(telemetry::AgentSample sample);
  std::size_t waiting() const { return samples_.size(); }

  // Sends what waits (also nothing: that still asks for a sign of life). ok: a controller took it;
  // true if it leads, and only then it is a sign of life. A batch that it calls wrong (400, 413,
  // 422) is dropped, or it would be sent for ever. Errors: io (token file), of the client, and what
  // the status means.
  net::Task<Result<bool>> push();

 private:
  Result<std::string> authorization() const;
  void drop(std::size_t sent);

  PusherOptions options_;
  net::Client client_;
  std::deque<telemetry::AgentSample> samples_;
  std::uint64_t dropped_ = 0;  // ever, from the front: tells how many of a batch are still here
};

}  // namespace kwatt::agent
