#include <iterator>

#include <fmt/format.h>

#include "placement/filters/filters.hpp"

namespace kwatt::placement::filters::node_resources_fit {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

// "not enough cpu: needs 4000m, 500m free, memory: …". Thousands of nodes may refuse one pod, so
// this formats once, into one string.
class Sentence {
 public:
  void add(std::string_view what, std::int64_t wanted, std::int64_t have, std::string_view unit) {
    if (enough(wanted, have)) return;
    fmt::format_to(std::back_inserter(text_), "{}{}: needs {}{}, {}{} free",
                   text_.size() == 0 ? "not enough " : ", ", what, wanted, unit, have, unit);
  }
  void add_bytes(std::string_view what, std::int64_t wanted, std::int64_t have) {
    if (!enough(wanted, have)) add(what, (wanted + kMiB - 1) / kMiB, have / kMiB, "Mi");
  }
  std::string text() const { return fmt::to_string(text_); }

 private:
  fmt::memory_buffer text_;
};

}  // namespace

std::string explain(const Amounts& need, const Amounts& free, const ResourceNames& names) {
  Sentence sentence;
  sentence.add("room for pods", need.pods, free.pods, "");
  sentence.add("cpu", need.cpu, free.cpu, "m");
  sentence.add_bytes("memory", need.memory, free.memory);
  sentence.add_bytes("ephemeral-storage", need.ephemeral, free.ephemeral);
  for (std::size_t i = 0; i < need.extended.size(); ++i) {
    const std::int64_t have = i < free.extended.size() ? free.extended[i] : 0;
    sentence.add(names.name(i), need.extended[i], have, "");
  }
  return sentence.text();
}

bool passes(const api::Resources& need, const api::Resources& free) {
  ResourceNames names;
  return passes(amounts_of(need, names), amounts_of(free, names));
}

std::string explain(const api::Resources& need, const api::Resources& free) {
  ResourceNames names;
  const Amounts wanted = amounts_of(need, names);
  return explain(wanted, amounts_of(free, names), names);
}

}  // namespace kwatt::placement::filters::node_resources_fit
