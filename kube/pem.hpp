#pragma once
// Is this PEM text what it should be? Asked before a rotated file replaces a good one.
#include <string>

#include "base/result.hpp"

namespace kwatt::kube {

// At least one certificate, and nothing unreadable among them. Errors: parse.
Result<void> check_certificates(const std::string& pem);
// A private key that belongs to the first certificate. Errors: parse.
Result<void> check_key_pair(const std::string& certificate_pem, const std::string& key_pem);

}  // namespace kwatt::kube
