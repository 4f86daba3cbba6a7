#pragma once
// POST /metrics-ingest: samples pushed by the agents (JSON) and by Scaphandre (text/plain), each
// accepted only for the node that its token was issued on.
#include <functional>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "net/server.hpp"
#include "servers/token_reviewer.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::servers {

struct IngestDependencies {
  TokenReviewer& reviewer;
  // The agents' user, system:serviceaccount:NAMESPACE:NAME. Any pod can get a token of our audience
  // that is bound to its node; only the agent's ServiceAccount is believed.
  std::string agent_user;
  telemetry::SampleStore& samples;
  const Clock& clock;
  Metrics& metrics;
  // Whether this replica leads; a follower takes samples as well (its caches stay warm) and says so
  // in the reply, as it is no sign of life of a controller that acts, and closes the connection
  // (docs/adr/0005-agents-find-the-leader.md).
  std::function<bool()> leading;
  std::function<void(const std::string& node)> first_sample;  // a node that had none before
  // What the machine can draw at most; nullopt, or no function: not known.
  std::function<std::optional<Milliwatts>(const std::string& node)> machine_maximum = nullptr;
};

// 204 with Kwatt-Leading: true|false; 400 with the JSON path of what is wrong; 401, 403 (not an
// agent, or another node's samples), 413, 405, 404.
net::Handler ingest_handler(IngestDependencies dependencies);

}  // namespace kwatt::servers
