#pragma once
// From a framework's totals to what an extender may answer: whole numbers from 0 to 10, which
// kube-scheduler multiplies by the extender's weight. Eleven steps are few for thousands of nodes,
// so they are not a scale but a ranking that keeps its top:
//
//   10    the best total, and among equal totals the least increase in watts. More than one node
//         has it only if neither tells them apart; then kube-scheduler's own scores decide
//   1..9  all others, in proportion to their distance from the best total, rounded down
//   0     nodes kwatt has no opinion on, and last resorts where there is a choice
//
// A node with room reserved for this very pod gets 10 whatever its total, and no other does. Where
// all nodes are last resorts, they are ranked as others are.
#include <cstdint>
#include <span>
#include <vector>

namespace kwatt::servers {

inline constexpr std::int64_t kExtenderMost = 10;

// Ascending: what is further down outranks what is above.
enum class Standing : std::uint8_t { unknown, last_resort, normal, reserved };

struct Ranked {
  Standing standing = Standing::unknown;
  std::int64_t total = 0;  // higher is better; of an unknown node without meaning
  std::int64_t increase =
      0;  // breaks ties between the best totals, lower is better; e.g. milliwatts
};

// By position. Pure.
std::vector<std::int64_t> extender_scores(std::span<const Ranked> nodes);

}  // namespace kwatt::servers
