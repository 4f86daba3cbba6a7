#include "api/describe_meta.hpp"

namespace kwatt::api {

template const TypeInfo& type_of<ObjectMeta>();
template const TypeInfo& type_of<LabelSelector>();

}  // namespace kwatt::api
