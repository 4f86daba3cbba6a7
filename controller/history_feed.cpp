#include "controller/history_feed.hpp"

#include "api/state_words.hpp"
#include "net/run.hpp"
#include "telemetry/minute.hpp"

namespace kwatt::controller {
namespace {

using std::chrono::minutes;

}  // namespace

HistoryFeed::HistoryFeed(telemetry::History* history, const kube::Store<api::Node>& nodes,
                         const telemetry::SampleStore& samples, const Clock& clock)
    : history_(history), nodes_(nodes), samples_(samples), clock_(clock) {}

void HistoryFeed::decided(const std::string& node, const api::NodeDecision& decision) {
  if (history_ == nullptr) return;
  telemetry::DecisionRow row;
  row.at = clock_.now();
  row.node = node;
  row.policy = decision.policy;
  row.action = to_string(decision.desired);
  row.reason = decision.reason;
  row.message = decision.message;
  history_->add(std::move(row));
}

void HistoryFeed::operation(const std::string& node, const api::Operation& operation,
                            const reconcilers::OperationEvent& event) {
  if (history_ == nullptr) return;
  telemetry::OperationRow row;
  row.at = clock_.now();
  row.node = node;
  row.policy = operation.policy;
  row.id = operation.id;
  row.kind = event.kind;
  row.phase = event.phase;
  row.reason = event.reason;
  row.message = event.message;
  history_->add(std::move(row));
}

void HistoryFeed::energy(const std::vector<reconcilers::NodeEnergy>& sums) {
  if (history_ == nullptr) return;
  std::vector<telemetry::HistoryRow> rows;
  rows.reserve(sums.size());
  for (const reconcilers::NodeEnergy& sum : sums) {
    rows.emplace_back(telemetry::EnergyRow{sum.hour, sum.node, sum.policy, sum.energy.actual,
                                           sum.energy.baseline, sum.covered, sum.measured});
  }
  history_->add(std::move(rows));
}

void HistoryFeed::samples(TimePoint minute) {
  std::vector<telemetry::HistoryRow> rows;
  nodes_.for_each([&](const std::shared_ptr<const api::Node>& node) {
    const std::string& name = node->meta.name;
    if (auto row = telemetry::sample_row(name, samples_.samples(name), minute)) {
      rows.emplace_back(std::move(*row));
    }
  });
  history_->add(std::move(rows));
}

kube::Task<void> HistoryFeed::run(
    std::function<std::vector<reconcilers::NodeEnergy>()> take_energy) {
  if (history_ == nullptr) co_return;
  TimePoint written = std::chrono::floor<minutes>(clock_.now() - kSamplesLate);
  for (;;) {
    // The minute that is over, give or take late samples; after a clock that jumped, the newest.
    const TimePoint now = clock_.now();
    const TimePoint over = std::chrono::floor<minutes>(now - kSamplesLate);
    const Duration until_next = over + minutes{1} + kSamplesLate - now;
    co_await net::sleep(until_next);
    const TimePoint minute = std::chrono::floor<minutes>(clock_.now() - kSamplesLate) - minutes{1};
    if (minute == written) continue;
    written = minute;
    samples(minute);
    energy(take_energy());
  }
}

}  // namespace kwatt::controller
