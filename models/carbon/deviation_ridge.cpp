// One regression for all hours of the day: how far the next 24 hours will be from the usual day,
// from how far the last 24 were. It learns from 24 times as many examples as one regression for
// each hour, so it is good early, and where wind matters more than the hour. Its first lags may
// count differently over the day (a daily and a half-daily wave).
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "models/carbon/learner.hpp"
#include "models/carbon/recursive_ridge.hpp"

namespace kwatt::models::carbon {
namespace {

constexpr std::size_t kWaves = 2;  // a day and half a day
constexpr std::size_t kNear = 6;   // lags that may count differently over the day
constexpr std::size_t kMeans = 2;  // of the last day and the last three
constexpr std::size_t kPlain = kDay + kMeans;
constexpr std::size_t kWaved = kNear + kMeans;
constexpr std::size_t kHours = kPlain + 2 * kWaves * kWaved, kDays = kHours + kDay,
                      kInputs = kDays + 7;
constexpr double kRidge = 3;
constexpr double kForget = 0.9999;    // by the hour: half in ten months
constexpr double kUsualShare = 0.15;  // of each new day in the usual day
constexpr double kHourWeight = 0.3, kDayWeight = 0.2;
constexpr double kLeastMean = 1;  // grams

using Day = std::array<double, kDay>;

class DeviationRidge final : public Learner {
 public:
  std::string_view name() const override { return "deviation-ridge"; }
  std::size_t needs() const override { return kWeek; }
  void learn(const Hours& past) override {
    const std::size_t newest = past.size() - 1;
    double& usual = usual_[past.hour_of_day(newest)];
    const double value = past.grams[newest];
    usual = newest < kDay ? value : usual + kUsualShare * (value - usual);
    if (past.size() < kWeek) return;
    // What is seen now is an example once the next 24 hours are known.
    const std::size_t slot = past.size() % kDay;
    if (past.size() >= kWeek + kDay) {
      const Seen& then = seen_[slot];
      Day came{};
      for (std::size_t i = 0; i < kDay; ++i) {
        const std::size_t index = past.size() - kDay + i;
        came[i] = (past.grams[index] - then.usual[past.hour_of_day(index)]) / then.mean;
      }
      ridge_.learn(then.x, came);
    }
    seen_[slot] = look(past);
  }
  void predict(const Hours& past, std::span<double> out) const override {
    const Seen& now = seen_[past.size() % kDay];
    Day day{};
    ridge_.predict(now.x, day);
    for (std::size_t lead = 0; lead < out.size(); ++lead) {
      // Beyond a day what is special about today has passed.
      const double deviation = lead < kDay ? day[lead] * now.mean : 0;
      out[lead] = std::max(0.0, usual_[past.hour_of_day(past.size() + lead)] + deviation);
    }
  }

 private:
  struct Seen {
    std::array<double, kInputs> x{};
    Day usual{};
    double mean = kLeastMean;
  };

  static double mean_of(const Hours& past, std::size_t hours) {
    double sum = 0;
    for (std::size_t i = 1; i <= hours; ++i) sum += past.grams[past.size() - i];
    return sum / static_cast<double>(hours);
  }
  Seen look(const Hours& past) const {
    const std::size_t end = past.size();
    Seen out;
    out.usual = usual_;
    out.mean = std::max(kLeastMean, mean_of(past, kWeek));
    for (std::size_t i = 0; i < kDay; ++i) {
      const std::size_t index = end - 1 - i;
      out.x[i] = (past.grams[index] - usual_[past.hour_of_day(index)]) / out.mean;
    }
    out.x[kDay] = mean_of(past, kDay) / out.mean - 1;
    out.x[kDay + 1] = mean_of(past, 3 * kDay) / out.mean - 1;
    const std::size_t hour = past.hour_of_day(end);
    std::size_t next = kPlain;
    for (std::size_t wave = 1; wave <= kWaves; ++wave) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(wave * hour) / static_cast<double>(kDay);
      for (std::size_t i = 0; i < kWaved; ++i) {
        const double value = out.x[i < kNear ? i : kDay + i - kNear];
        out.x[next++] = value * std::cos(angle);
        out.x[next++] = value * std::sin(angle);
      }
    }
    out.x[kHours + hour] = kHourWeight;
    out.x[kDays + past.day_of_week(end)] = kDayWeight;
    return out;
  }

  RecursiveRidge ridge_{kInputs, kDay, kRidge, kForget};
  Day usual_{};                    // each hour's mean over the last days
  std::array<Seen, kDay> seen_{};  // of the last 24 hours, by their number modulo 24
};

}  // namespace

std::unique_ptr<Learner> make_deviation_ridge() {
  return std::make_unique<DeviationRidge>();
}

}  // namespace kwatt::models::carbon
