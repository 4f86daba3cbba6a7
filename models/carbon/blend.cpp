// Several learners at once. Each is weighed, for each lead of a day, by the square of the inverse
// of its mean squared error over about the last month: the better of two that differ by 10 % gets
// 55 % of the weight, one that is three times as wrong next to none. Only errors of forecasts that
// have come due count, so the weights, too, are of the past alone. Combinations beat their members
// (Bates & Granger, Operational Research Quarterly 20(4), 1969).
#include <array>

#include "models/carbon/learner.hpp"

namespace kwatt::models::carbon {
namespace {

constexpr double kForget = 0.999;     // by the hour
constexpr double kJudged = kWeek;     // hours of errors before a learner has a say
constexpr double kLeastError = 1e-6;  // grams squared: a perfect one must not divide by zero

using Day = std::array<double, kDay>;

struct Member {
  std::unique_ptr<Learner> learner;
  std::array<Day, kDay> said{};  // the forecasts of the last 24 hours, by their number modulo 24
  Day error{};                   // discounted sum of squares, by lead
  double weight = 0;             // discounted count of whole forecasts judged
  std::size_t since = 0;         // hours in the past when it first said something; 0: never
};

class Blend final : public Learner {
 public:
  Blend() {
    for (auto make :
         {+[] { return make_seasonal_naive(kDay); }, +[] { return make_seasonal_naive(kWeek); },
          &make_holt_winters, &make_lag_ridge, &make_deviation_ridge}) {
      members_.push_back({make()});
    }
  }
  std::string_view name() const override { return "blend"; }
  std::size_t needs() const override { return kDay; }
  void learn(const Hours& past) override {
    for (Member& one : members_) {
      judge(one, past);
      one.learner->learn(past);
      if (past.size() < one.learner->needs()) continue;
      if (one.since == 0) one.since = past.size();
      one.learner->predict(past, one.said[past.size() % kDay]);
    }
  }
  void predict(const Hours& past, std::span<double> out) const override {
    std::vector<double> said(out.size());
    std::vector<double> sum(out.size(), 0), weight(out.size(), 0);
    for (const Member& one : members_) {
      if (!has_say(one)) continue;
      one.learner->predict(past, said);
      for (std::size_t lead = 0; lead < out.size(); ++lead) {
        const double error = one.error[lead % kDay] / one.weight + kLeastError;
        const double share = 1 / (error * error);
        sum[lead] += share * said[lead];
        weight[lead] += share;
      }
    }
    if (weight.empty() || weight.front() == 0) {  // nobody is known well: tomorrow as today
      members_.front().learner->predict(past, out);
      return;
    }
    for (std::size_t lead = 0; lead < out.size(); ++lead) out[lead] = sum[lead] / weight[lead];
  }

 private:
  static bool has_say(const Member& one) { return one.weight > 0.9 * kJudged; }
  // The newest hour is what each of the last 24 forecasts said something about.
  static void judge(Member& one, const Hours& past) {
    if (one.since == 0) return;
    const double value = past.grams.back();
    for (std::size_t lead = 0; lead < kDay; ++lead) {
      const std::size_t at = past.size() - 1 - lead;  // hours known when it was said
      if (at < one.since) break;
      const double off = one.said[at % kDay][lead] - value;
      one.error[lead] = one.error[lead] * kForget + off * off;
    }
    if (past.size() >= one.since + kDay) one.weight = one.weight * kForget + 1;
  }

  std::vector<Member> members_;
};

}  // namespace

std::unique_ptr<Learner> make_blend() {
  return std::make_unique<Blend>();
}

}  // namespace kwatt::models::carbon
