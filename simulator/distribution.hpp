#pragma once
// Many values in little memory: quantiles within 1 %, everything else exact. Buckets grow by a
// constant factor (C. Masson et al., "DDSketch", VLDB 2019), so that two million waiting times take
// a few kilobytes.
#include <cstdint>
#include <map>
#include <vector>

namespace kwatt::simulator {

class Distribution {
 public:
  // Not negative; anything below 0 counts as 0.
  void add(std::int64_t value);
  std::uint64_t count() const { return count_; }
  double mean() const;  // 0 without values
  std::int64_t minimum() const { return count_ == 0 ? 0 : minimum_; }
  std::int64_t maximum() const { return maximum_; }
  // share 0…1; 0 without values. Relative error at most 1 %.
  double quantile(double share) const;

  struct Step {
    double value = 0;
    double share = 0;  // of the values that are at most this
  };
  // The cumulative distribution, by value, at most `limit` steps; the last share is 1.
  std::vector<Step> cdf(std::size_t limit = 200) const;

 private:
  std::map<std::int32_t, std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::int64_t minimum_ = 0, maximum_ = 0;
};

}  // namespace kwatt::simulator
