#pragma once
// Which VM leaves an overloaded host? The choices of Beloglazov and Buyya, CCPE 24(13), 2012,
// section 5.2. Of equals the one that came first.
#include <memory>
#include <random>

#include "planner/consolidation/draft.hpp"

namespace kwatt::planner::consolidation {

class SelectionRule {
 public:
  virtual ~SelectionRule() = default;
  // kNone: no VM of the host can be moved.
  virtual std::uint32_t select(const Draft& draft, const DraftHost& host) = 0;
};

// MMT: the one that is copied first, having the least memory.
class MinimumMigrationTime : public SelectionRule {
 public:
  std::uint32_t select(const Draft& draft, const DraftHost& host) override;
};

// MU: the one that uses the least share of its own CPU.
class MinimumUtilization : public SelectionRule {
 public:
  std::uint32_t select(const Draft& draft, const DraftHost& host) override;
};

// RS: any, with equal chances; the sequence depends on the seed alone.
class RandomSelection : public SelectionRule {
 public:
  explicit RandomSelection(std::uint64_t seed) : random_(seed) {}
  std::uint32_t select(const Draft& draft, const DraftHost& host) override;

 private:
  std::mt19937_64 random_;
};

// MC: the one whose load the others' explains best (multiple correlation, R² of its regression on
// them). MMT where there are too few samples for that, or they depend on one another.
class MaximumCorrelation : public SelectionRule {
 public:
  std::uint32_t select(const Draft& draft, const DraftHost& host) override;

 private:
  MinimumMigrationTime fallback_;
};

}  // namespace kwatt::planner::consolidation
