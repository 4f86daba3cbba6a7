#include "base/metrics.hpp"

#include <mutex>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace kwatt {

struct Metrics::Impl {
  mutable std::mutex mutex;
  prometheus::Registry registry;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters;
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges;
  std::map<std::string, prometheus::Family<prometheus::Histogram>*> histograms;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::add(const std::string& name, const std::string& help, const Labels& labels,
                  double by) {
  const std::lock_guard lock(impl_->mutex);
  auto*& family = impl_->counters[name];
  if (family == nullptr) {
    family = &prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry);
  }
  family->Add(labels).Increment(by);
}

void Metrics::set(const std::string& name, const std::string& help, const Labels& labels,
                  double value) {
  const std::lock_guard lock(impl_->mutex);
  auto*& family = impl_->gauges[name];
  if (family == nullptr) {
    family = &prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry);
  }
  family->Add(labels).Set(value);
}

void Metrics::observe(const std::string& name, const std::string& help, const Labels& labels,
                      double value, const std::vector<double>& upper_bounds) {
  const std::lock_guard lock(impl_->mutex);
  auto*& family = impl_->histograms[name];
  if (family == nullptr) {
    family = &prometheus::BuildHistogram().Name(name).Help(help).Register(impl_->registry);
  }
  family->Add(labels, upper_bounds).Observe(value);
}

void Metrics::remove_gauge(const std::string& name, const Labels& labels) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->gauges.find(name);
  if (found == impl_->gauges.end()) return;
  found->second->Remove(&found->second->Add(labels));
}

std::string Metrics::render() const {
  const std::lock_guard lock(impl_->mutex);
  return prometheus::TextSerializer{}.Serialize(impl_->registry.Collect());
}

}  // namespace kwatt
