#pragma once
// The arithmetic of place_batch(): how many pods of each shape are where, what room is left, and
// what it costs. Internal to placement/batch*.cpp.
#include <array>
#include <cstdint>
#include <vector>

#include "placement/batch.hpp"
#include "placement/filters/filters.hpp"

namespace kwatt::placement {

// Pods that are alike to every node: the same amounts, the same expected use, the same open nodes.
struct Shape {
  filters::Amounts need;
  std::int64_t use = 0;            // millicores
  std::vector<std::uint8_t> open;  // by node
  std::vector<std::size_t> pods;   // positions in the batch
};

// A node with what does not change during the search. Power in milliwatts; floating point, because
// a search compares millions of sums and the integers are only for the result.
struct Machine {
  filters::Amounts free;  // at the start
  std::array<double, 11> watts{};
  double wake = 0;                  // paid once something is placed on a node that sleeps
  std::int64_t base = 0, full = 0;  // millicores in use before, and of the whole machine
};

class BatchState {
 public:
  BatchState(const std::vector<Shape>& shapes, const std::vector<Machine>& machines);

  std::size_t nodes() const { return machines_->size(); }
  std::size_t shapes() const { return shapes_->size(); }
  const Shape& shape(std::size_t s) const { return (*shapes_)[s]; }
  const Machine& machine(std::size_t n) const { return (*machines_)[n]; }

  std::int64_t count(std::size_t s, std::size_t n) const { return counts_[n * shapes() + s]; }
  std::int64_t pods_on(std::size_t n) const { return pods_[n]; }
  std::int64_t load(std::size_t n) const { return load_[n]; }  // millicores placed here
  const filters::Amounts& free(std::size_t n) const { return free_[n]; }
  // How many of the shape's pods are placed nowhere.
  std::int64_t left(std::size_t s) const { return left_[s]; }

  // Open to the shape, and room for one more.
  bool takes(std::size_t s, std::size_t n) const {
    return shape(s).open[n] != 0 && load_[n] + machine(n).base + shape(s).use <= machine(n).full &&
           filters::node_resources_fit::passes(shape(s).need, free_[n]);
  }
  // How many more it takes, at most `wanted`.
  std::int64_t takes_up_to(std::size_t s, std::size_t n, std::int64_t wanted) const;

  void put(std::size_t s, std::size_t n, std::int64_t k);   // from left()
  void take(std::size_t s, std::size_t n, std::int64_t k);  // back to left()

  // Changed since the last settle(). Two nodes that are not have nothing to give each other that a
  // descent would not have found.
  bool touched(std::size_t n) const { return touched_[n] != 0; }
  void settle() { touched_.assign(touched_.size(), 0); }

  // The node's part of the increase if it held `load` in `pods` pods of ours.
  double cost(std::size_t n, std::int64_t load, std::int64_t pods) const;
  double cost(std::size_t n) const { return cost_[n]; }
  double total() const;
  std::int64_t unplaced() const;
  // More pods placed, else less power by more than rounding.
  bool better_than(const BatchState& other) const;

 private:
  const std::vector<Shape>* shapes_;
  const std::vector<Machine>* machines_;
  std::vector<std::int32_t> counts_;  // by node, then shape
  std::vector<std::int64_t> left_, load_, pods_;
  std::vector<filters::Amounts> free_;
  std::vector<double> cost_;
  std::vector<std::uint8_t> touched_;
};

// Greedy: the pods that are left, largest first, each where a millicore costs the least watts on
// the way to the node's best load (or as far as what is left could load it). `closed` nodes take
// none; on `favoured` ones waking is not counted; empty: none. `aligned`: a node is the dearer, the
// more unequal the shares of its free cpu, memory and pod count are that a pod takes, so that small
// pods do not use up the pod count of large machines.
struct FillRule {
  std::vector<std::uint8_t> closed, favoured;
  bool aligned = false;
};
void fill(BatchState& state, const FillRule& rule);
// Moves of one or more pods of a shape and swaps, while they save power.
void descend(BatchState& state);
// Empties and refills nodes in a fixed order, `rounds` times without success at most.
void search(BatchState& state, std::int64_t rounds);

}  // namespace kwatt::placement
