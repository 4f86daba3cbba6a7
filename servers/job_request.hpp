#pragma once
// A job as POST /ingest takes it, and the Kubernetes Job that it becomes. Pure.
//
//   {"name": "render", "namespace": "team-a", "queue": "default", "image": "busybox:1.36",
//    "command": ["sh", "-c", "work"], "cpu": "2", "memory": "1Gi",
//    "expectedDuration": "90m", "deadline": "2026-11-21T06:00:00Z"}
//
// docs/reference/job-queue.md says every field. A job that needs more of a pod than this is written
// as a Job with the label and the gate, by whoever may do that.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace kwatt::servers {

struct JobRequest {
  std::string name, namespace_name = "default", queue, image;
  std::vector<std::string> command, args;
  std::map<std::string, std::string> env;
  std::string cpu = "100m", memory = "128Mi";  // quantities, of each member
  std::int64_t gpus = 0;                       // of each member
  std::string gpu_resource = "nvidia.com/gpu";
  std::int64_t members = 1;  // pods that start together
  std::int64_t retries = 0;
  std::optional<Duration> expected, max_delay;
  std::optional<TimePoint> deadline;
};

// Errors: invalid_argument: "/cpu: expected …", the path being a JSON pointer; all problems at
// once. Unknown members are refused: a misspelt one would be a wish unheard.
Result<JobRequest> parse_job_request(std::string_view body);

// The batch/v1 Job: gated, labelled, its pods without a service account's token and without more
// privileges. `caller` is noted in an annotation.
std::string job_body(const JobRequest& request, const std::string& caller);

}  // namespace kwatt::servers
