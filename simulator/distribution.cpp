#include "simulator/distribution.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::simulator {
namespace {

// (growth − 1) / (growth + 1) is the error of a bucket's middle.
constexpr double kGrowth = 1.02;
constexpr std::int32_t kZero = -1;  // the bucket of 0

std::int32_t bucket_of(std::int64_t value) {
  if (value <= 0) return kZero;
  return static_cast<std::int32_t>(
      std::ceil(std::log(static_cast<double>(value)) / std::log(kGrowth)));
}

double middle_of(std::int32_t bucket) {
  if (bucket == kZero) return 0;
  return 2 * std::pow(kGrowth, bucket) / (1 + kGrowth);
}

}  // namespace

void Distribution::add(std::int64_t value) {
  value = std::max<std::int64_t>(0, value);
  ++buckets_[bucket_of(value)];
  minimum_ = count_ == 0 ? value : std::min(minimum_, value);
  maximum_ = std::max(maximum_, value);
  ++count_;
  sum_ += static_cast<double>(value);
}

double Distribution::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double Distribution::quantile(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(count_ - 1);
  std::uint64_t seen = 0;
  for (const auto& [bucket, count] : buckets_) {
    seen += count;
    if (static_cast<double>(seen) > wanted) {
      return std::clamp(middle_of(bucket), static_cast<double>(minimum_),
                        static_cast<double>(maximum_));
    }
  }
  return static_cast<double>(maximum_);
}

std::vector<Distribution::Step> Distribution::cdf(std::size_t limit) const {
  std::vector<Step> steps;
  std::uint64_t seen = 0;
  for (const auto& [bucket, count] : buckets_) {
    seen += count;
    steps.push_back({std::clamp(middle_of(bucket), static_cast<double>(minimum_),
                                static_cast<double>(maximum_)),
                     static_cast<double>(seen) / static_cast<double>(count_)});
  }
  if (limit < 2 || steps.size() <= limit) return steps;
  std::vector<Step> fewer;
  for (std::size_t i = 0; i < limit; ++i) {
    fewer.push_back(steps[i * (steps.size() - 1) / (limit - 1)]);
  }
  return fewer;
}

}  // namespace kwatt::simulator
