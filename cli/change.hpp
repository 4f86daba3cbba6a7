#pragma once
// Verbs that change one field of one object: what they share.
#include <string>

#include "api/patch.hpp"
#include "cli/verb.hpp"

namespace kwatt::cli {

struct Change {
  kube::Resource resource;
  std::string name;
  std::string body;      // merge patch
  std::string sentence;  // what is so afterwards: "node a is held on until …"
  bool dry_run = false;  // look whether the object is there, print, send nothing
};

// Sends the patch and prints the sentence. Errors: not_found ("there is no node a"), forbidden, …
kube::Task<Result<int>> apply(Session& session, Change change);

// --dry-run
void add_dry_run(CLI::App& verb, bool& dry_run);

// {"metadata":{"annotations":{KEY:VALUE}}}; null removes it.
std::string annotation_patch(std::string_view key, const api::JsonValue& value);

}  // namespace kwatt::cli
