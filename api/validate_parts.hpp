#pragma once
// Rules that several kinds share. For the validate_*.cpp files of api/ only.
#include <string>
#include <string_view>

#include "api/meta.hpp"
#include "api/problems.hpp"

namespace kwatt::api {

// A DNS subdomain (RFC 1123): labels of lower-case letters, digits and "-", separated by dots.
bool is_object_name(std::string_view text);

// A LabelSelector at `path`, with at most so many requirements and values of one.
void check_selector(const LabelSelector& selector, const std::string& path,
                    std::size_t most_requirements, std::size_t most_values, Problems& out);

// A reference to a Secret in the controller's own namespace; "" is none.
void check_secret(const SecretReference& secret, const std::string& path, Problems& out);

}  // namespace kwatt::api
