#pragma once
// Physical quantities as distinct integer types, so that watts are never added to cores.
#include <compare>
#include <cstdint>

namespace kwatt {

// An integer with a unit. Explicit in, explicit out (`count()`); closed under + - and scaling.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t count) : count_(count) {}
  constexpr std::int64_t count() const { return count_; }
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity{-count_}; }
  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t f) { return Quantity{a.count_ * f}; }
  friend constexpr Quantity operator/(Quantity a, std::int64_t d) { return Quantity{a.count_ / d}; }

 private:
  std::int64_t count_ = 0;
};

using Milliwatts = Quantity<struct MilliwattsTag>;
using Millijoules = Quantity<struct MillijoulesTag>;
using Millicores = Quantity<struct MillicoresTag>;
using Bytes = Quantity<struct BytesTag>;
using Megahertz = Quantity<struct MegahertzTag>;
using Millicelsius = Quantity<struct MillicelsiusTag>;
using Permille =
    Quantity<struct PermilleTag>;  // utilization: 0..1000 of all CPUs, tenth of percent

constexpr Milliwatts watts(std::int64_t value) {
  return Milliwatts{value * 1000};
}
constexpr Permille percent(std::int64_t value) {
  return Permille{value * 10};
}

}  // namespace kwatt
