#pragma once
// The policies that FGD's simulator compares, scored as it scores them: whole numbers from 0 to
// 100, the highest wins, the first node of equals. To prove that our inflation experiment is the
// same as theirs, and to be compared with; kwatt's own is GpuFill
// (placement/strategies/gpu_fill.hpp).
#include <memory>
#include <span>

#include "placement/strategies/strategy.hpp"
#include "simulator/traces/openb.hpp"

namespace kwatt::simulator {

// Tetris' dot product of what the pod asks for and what the node has free, CPU and GPU by the
// largest machine; the smaller, the better, as in that simulator.
std::unique_ptr<placement::strategies::Strategy> make_gpu_dot_product();
// Least CPU and GPU left, half and half.
std::unique_ptr<placement::strategies::Strategy> make_gpu_best_fit();
// Fragmentation gradient descent. `typical`: the list of which the most frequent kinds that make up
// 95 % of it are the typical pods; model numbers are given out as inflate() does, for `nodes`.
std::unique_ptr<placement::strategies::Strategy> make_fgd(std::span<const OpenbNode> nodes,
                                                          std::span<const OpenbPod> typical);

}  // namespace kwatt::simulator
