#include "planner/snapshot.hpp"

namespace kwatt::planner {

api::PowerState NodeView::power_state() const {
  if (machine == nullptr) return ready ? api::PowerState::On : api::PowerState::Unknown;
  // A fresh NodePower says Unknown until the driver was asked; a kubelet that reports proves On.
  const api::PowerState recorded = machine->status.power_state;
  if (recorded == api::PowerState::Unknown && ready) return api::PowerState::On;
  return recorded;
}

const api::Operation& NodeView::operation() const {
  static const api::Operation none;
  return machine != nullptr ? machine->status.operation : none;
}

const api::NodeMemory& NodeView::memory() const {
  static const api::NodeMemory none;
  return machine != nullptr ? machine->status.memory : none;
}

}  // namespace kwatt::planner
