#pragma once
// Redfish resources as JSON documents. Includes RapidJSON: for .cpp files only.
#include "hardware/json.hpp"

namespace kwatt::hardware::redfish {

// Errors: parse, or protocol when it is JSON but no object.
Result<rapidjson::Document> parse_resource(const std::string& body);

// A link as request target, "" if `link` is empty. Errors: protocol, as local_target.
Result<std::string> optional_link(std::string_view link);

}  // namespace kwatt::hardware::redfish
