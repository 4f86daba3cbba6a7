#pragma once
// What `queue` shows of the job queue. Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace CLI {
class App;
}
namespace kwatt::cli {
struct Chosen;
void add_queue(CLI::App& app, Chosen& chosen);

// A job as GET /queue and POST /dispatch tell it (docs/reference/job-queue.md).
struct QueueLine {
  std::string namespace_name, name, queue, strategy, reason, message;
  std::int64_t pods = 0;
  bool starts = false;
  std::vector<std::string> nodes;
  std::optional<std::int64_t> grams_per_kwh;
};

// Errors: parse: not an answer of the controller, with the place of what is missing.
Result<std::vector<QueueLine>> parse_queue_json(std::string_view json);
// As people look at it: those that start first, each with its reason and sentence.
std::string queue_table(std::vector<QueueLine> lines);

}  // namespace kwatt::cli
