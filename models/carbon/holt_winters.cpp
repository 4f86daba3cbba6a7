// y = level + damped trend + season of the hour, each corrected by a share of every error. The
// shares are those of a slow daily season with a level that follows within half a day.
#include <algorithm>
#include <array>

#include "models/carbon/learner.hpp"

namespace kwatt::models::carbon {
namespace {

constexpr double kLevel = 0.2, kTrend = 0.02, kSeason = 0.1, kDamping = 0.9;

class HoltWinters final : public Learner {
 public:
  std::string_view name() const override { return "holt-winters"; }
  std::size_t needs() const override { return 2 * kDay; }
  void learn(const Hours& past) override {
    const std::size_t newest = past.size() - 1;
    const double value = past.grams[newest];
    if (past.size() <= kDay) {  // the first day is the first season
      level_ += (value - level_) / static_cast<double>(past.size());
      season_[past.hour_of_day(newest)] = value;
      if (past.size() == kDay) {
        for (double& one : season_) one -= level_;
      }
      return;
    }
    double& season = season_[past.hour_of_day(newest)];
    const double error = value - (level_ + kDamping * trend_ + season);
    level_ += kDamping * trend_ + kLevel * error;
    trend_ = kDamping * trend_ + kTrend * error;
    season += kSeason * error;
  }
  void predict(const Hours& past, std::span<double> out) const override {
    double trend = trend_, level = level_;
    for (std::size_t lead = 0; lead < out.size(); ++lead) {
      trend *= kDamping;
      level += trend;
      out[lead] = std::max(0.0, level + season_[past.hour_of_day(past.size() + lead)]);
    }
  }

 private:
  double level_ = 0, trend_ = 0;
  std::array<double, kDay> season_{};
};

}  // namespace

std::unique_ptr<Learner> make_holt_winters() {
  return std::make_unique<HoltWinters>();
}

}  // namespace kwatt::models::carbon
