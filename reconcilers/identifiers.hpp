#pragma once
#include <string>

namespace kwatt::reconcilers {

// A random UUID (RFC 4122, version 4): the id of an operation, never used twice.
std::string new_uuid();

}  // namespace kwatt::reconcilers
