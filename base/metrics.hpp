#pragma once
// Metric families for Prometheus, over prometheus-cpp. Thread-safe.
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kwatt {

using Labels = std::map<std::string, std::string>;

// One registry per program, made in its wiring. Families appear at their first use; the same name
// and labels always give the same series. Names follow Prometheus' rules (base unit, _total).
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void add(const std::string& name, const std::string& help, const Labels& labels, double by = 1);
  void set(const std::string& name, const std::string& help, const Labels& labels, double value);
  // Observes into a histogram with these upper bounds (those of the family's first use count).
  void observe(const std::string& name, const std::string& help, const Labels& labels, double value,
               const std::vector<double>& upper_bounds);
  // Forgets one gauge series, for example of a node that is gone.
  void remove_gauge(const std::string& name, const Labels& labels);

  // The text exposition format, version 0.0.4.
  std::string render() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt
