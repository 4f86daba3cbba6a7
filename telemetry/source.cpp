#include "telemetry/source.hpp"

#include <utility>

namespace kwatt::telemetry {
namespace {

constexpr std::array<std::string_view, 11> kSources{
    "agent",           "bmc",         "ipmi-exporter", "prometheus", "node-exporter-hwmon",
    "kepler-platform", "kepler-psys", "scaphandre",    "kepler",     "node-exporter-rapl",
    "metrics.k8s.io"};
constexpr std::array<std::string_view, 6> kRejections{
    "not_a_number", "out_of_range", "stale", "several_series", "no_label", "unknown_node"};

// "node1:9100" and "[fd00::1]:9100" without the port; other texts as they are.
std::string_view host_part(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    return end == std::string_view::npos ? text : text.substr(1, end - 1);
  }
  const auto colon = text.find(':');
  const bool one = colon != std::string_view::npos && text.find(':', colon + 1) == text.npos;
  return one ? text.substr(0, colon) : text;
}

}  // namespace

std::string_view to_string(Source source) {
  return kSources.at(static_cast<std::size_t>(source));
}

std::string_view to_string(Rejection rejection) {
  return kRejections.at(static_cast<std::size_t>(rejection));
}

void NodeDirectory::add(std::string name, const std::string& internal_ip, Millicores cpu) {
  if (!internal_ip.empty()) {
    // Two nodes of one address (as in test beds) are not told apart by it.
    const auto [at, fresh] = by_address_.emplace(internal_ip, name);
    if (!fresh) at->second.clear();
  }
  Entry entry{name, cpu};
  nodes_.insert_or_assign(std::move(name), std::move(entry));
}

const NodeDirectory::Entry* NodeDirectory::find_exactly(std::string_view text) const {
  if (const auto node = nodes_.find(text); node != nodes_.end()) return &node->second;
  const auto address = by_address_.find(text);
  if (address == by_address_.end() || address->second.empty()) return nullptr;
  const auto node = nodes_.find(address->second);
  return node == nodes_.end() ? nullptr : &node->second;
}

const NodeDirectory::Entry* NodeDirectory::find(std::string_view text) const {
  if (const Entry* entry = find_exactly(text)) return entry;
  const std::string_view host = host_part(text);
  return host == text ? nullptr : find_exactly(host);
}

void Fetched::reject(Rejection why, std::string sentence) {
  // A machine of another cluster is described only if nothing worse comes.
  const bool first = example.empty() || (why != Rejection::unknown_node && faulty() == 0);
  if (first) example = std::move(sentence);
  ++rejected[why];
}

std::size_t Fetched::faulty() const {
  std::size_t count = 0;
  for (const auto& [why, times] : rejected) {
    if (why != Rejection::unknown_node) count += times;
  }
  return count;
}

}  // namespace kwatt::telemetry
