#pragma once
// CapacityBuffers as pods that wait: the room they ask for is kept free, or woken, by the same
// what-if that serves real pods. Pure.
#include <memory>
#include <vector>

#include "api/core.hpp"

namespace kwatt::reconcilers {

// At most so many pods stand for one buffer; a buffer that asks for more has no more kept.
inline constexpr std::int64_t kMostPerBuffer = 1000;

// How many pods of this shape the buffer asks for: its replicas, as far as its limits allow;
// without replicas as many as the limits hold; 0 for one that asks for neither or is a cloud's own
// kind.
std::int64_t wanted_pods(const api::CapacityBuffer& buffer, const api::PodTemplate& shape);

// The pods that stand for it: unbound, unschedulable, of the lowest priority, marked with
// planner::names::kBuffer.
std::vector<std::shared_ptr<const api::Pod>> buffer_pods(
    const api::CapacityBuffer& buffer, const std::shared_ptr<const api::PodTemplate>& shape);

}  // namespace kwatt::reconcilers
