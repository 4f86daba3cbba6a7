#pragma once
// The wire format of scheduler extenders: kube-scheduler's k8s.io/kube-scheduler/extender/v1. Its
// Go structs have no JSON tags, so keys are written as the fields are called; reading takes them in
// any case, as Go does. Pure.
//
// A request names the nodes (nodeCacheCapable: true) or carries them whole (false). Whole nodes are
// found, not parsed: 1,000 of them are 10 MB, of which only the names are needed, and a filter's
// answer gives the nodes back byte for byte.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/core.hpp"
#include "base/result.hpp"
#include "placement/framework.hpp"

namespace kwatt::servers {

// A node that kube-scheduler offers. Both point into the request's body.
struct OfferedNode {
  std::string_view name;
  std::string_view object;  // the whole v1.Node as it came; empty in a request with names
};

// ExtenderArgs. Points into the body it was read from.
struct ExtenderArgs {
  api::Pod pod;
  bool whole_nodes = false;  // Nodes, not NodeNames
  std::vector<OfferedNode> nodes;
};

// More nodes than this are no cluster kwatt is made for.
inline constexpr std::size_t kMaxOfferedNodes = 50'000;

// Takes the text over piece by piece: the pod's part of `body` is destroyed, the nodes stay.
// Errors: parse, with the JSON path of what is wrong and what is expected there; invalid_argument
// for too many nodes. An empty list of nodes is no error here.
Result<ExtenderArgs> read_extender_args(std::string& body);

// ExtenderBindingArgs.
struct BindingArgs {
  std::string namespace_name, pod_name, pod_uid, node;
};
// Errors: parse; invalid_argument for a name that is missing or none.
Result<BindingArgs> read_binding_args(std::string_view body);

// ExtenderFilterResult: the nodes of `args` at the positions `passed`, ascending, in the form they
// came in, and the others with the reason. Unresolvable: no preemption would help.
// `body` is the request's, which `args` points into. With whole nodes the answer is made of it
// where it is, so that megabytes are not copied: `args` is not to be used afterwards.
std::string write_filter_result(const ExtenderArgs& args, const std::vector<std::size_t>& passed,
                                const std::vector<placement::Excluded>& excluded,
                                std::string&& body);
// The same with an Error and nothing else.
std::string write_filter_error(std::string_view sentence);

// HostPriorityList; `scores` by position in args.nodes, 0..10.
std::string write_priorities(const ExtenderArgs& args, const std::vector<std::int64_t>& scores);

// ExtenderBindingResult; "": bound.
std::string write_binding_result(std::string_view error);

}  // namespace kwatt::servers
