// The JSON shape of NodeMetrics.
#include "api/describe_meta.hpp"
#include "api/node_metrics.hpp"

namespace kwatt::api {

template <>
struct Describe<NodeMetrics> {
  static constexpr std::string_view name = "NodeMetrics";
  static constexpr auto fields =
      std::array{field<&NodeMetrics::meta>("metadata"), field<&NodeMetrics::timestamp>("timestamp"),
                 field<&NodeMetrics::window>("window"), field<&NodeMetrics::usage>("usage")};
};

template const TypeInfo& type_of<NodeMetrics>();

}  // namespace kwatt::api
