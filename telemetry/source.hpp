#pragma once
// Who measured a machine, and how those who do not push are asked.
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"
#include "net/client.hpp"

namespace kwatt::telemetry {

// In the order in which they are believed when several measure the same thing; but what covers the
// whole machine always goes before what covers CPU packages only.
enum class Source {
  agent,          // our own, pushed
  bmc,            // the machine's management controller, read by the controller
  ipmi_exporter,  // this one to node_exporter_rapl: through Prometheus
  prometheus,     // the operator's own query
  node_exporter_hwmon,
  kepler_platform,
  kepler_psys,
  scaphandre,  // also pushed as text
  kepler,
  node_exporter_rapl,
  metrics_api,  // metrics.k8s.io: utilization, no power
};
// A stable word, for options, metrics and conditions: "agent", "kepler-platform", "metrics.k8s.io".
std::string_view to_string(Source source);

// One reading as it arrives. Utilization is frequency-invariant, `busy` the plain busy fraction;
// sources that know no frequency give the same for both.
struct Sample {
  TimePoint at;
  Permille utilization, busy;  // say nothing without has_utilization
  std::optional<Milliwatts> power;
  Source source = Source::agent;
  Duration period{0};  // how often the source measures; 0: told from the samples themselves
  bool has_utilization = true;
  bool whole_machine = true;  // of power; false: CPU packages (and memory) only
};

// The Nodes of the cluster under the names that sources have for them. Built anew for each fetch,
// then only read.
class NodeDirectory {
 public:
  struct Entry {
    std::string name;
    Millicores cpu;  // allocatable
  };
  void add(std::string name, const std::string& internal_ip, Millicores cpu);
  // The node that `text` names: its own name, its InternalIP, or one of them as "host:port".
  // nullptr: none of this cluster.
  const Entry* find(std::string_view text) const;
  std::size_t size() const { return nodes_.size(); }

 private:
  const Entry* find_exactly(std::string_view text) const;
  std::map<std::string, Entry, std::less<>> nodes_;
  std::map<std::string, std::string, std::less<>> by_address_;
};

// Why a reading in an answer was not taken. Each is a word in metrics.
enum class Rejection {
  not_a_number,    // NaN, an infinity, or text
  out_of_range,    // negative, or more than any machine draws
  stale,           // measured long ago, or nobody can say when
  several_series,  // more than one value for a node: which is right?
  no_label,        // none of the labels that name the node
  unknown_node,    // names no node of this cluster
};
std::string_view to_string(Rejection rejection);

struct NodeReading {
  std::string node;
  Sample sample;
};

// A good answer. Rejected readings are counted, and one of them is described for people.
struct Fetched {
  std::vector<NodeReading> readings;  // at most one for each node, sorted by node
  std::map<Rejection, std::size_t> rejected;
  std::string example;  // a sentence on the first rejected reading; "": none

  void reject(Rejection why, std::string sentence);
  // Readings of other clusters' machines are nobody's mistake; all others are.
  std::size_t faulty() const;
};

// A source that is asked, for all nodes at once. Used from one strand; one fetch at a time.
class PollSource {
 public:
  virtual ~PollSource() = default;
  virtual Source source() const = 0;
  virtual Duration period() const = 0;  // between two fetches
  // Bounded in time and size. Errors: those of net::Client and, by what the peer said,
  // unauthorized, forbidden, not_found (no such API, or an answer without any reading),
  // invalid_argument (the query), timeout, unavailable, parse (not an answer of this API).
  virtual net::Task<Result<Fetched>> fetch(std::shared_ptr<const NodeDirectory> nodes,
                                           TimePoint now) = 0;
};

}  // namespace kwatt::telemetry
