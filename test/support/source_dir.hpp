// Where the golden files and the CRDs are: the root of the source tree.
#pragma once

#include <string>

namespace kwatt::test {

// The absolute path of a file named from the root, as in "crds/x.yaml".
std::string source_path(const std::string& name);

}  // namespace kwatt::test
