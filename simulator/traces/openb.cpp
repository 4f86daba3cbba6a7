#include "simulator/traces/openb.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include <fmt/format.h>

namespace kwatt::simulator {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// More than any machine has; keeps sums far from overflow.
constexpr std::int64_t kMost = std::int64_t{1} << 40;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// The lines of one file, fields by column name.
class Table {
 public:
  Table(std::istream& in, std::string_view name) : in_(in), name_(name) {}

  Result<void> header(std::initializer_list<std::string_view> needed) {
    if (!read()) return bad("the file is empty; a line of column names was expected");
    for (const std::string_view column : split(line_, ',')) columns_.emplace_back(column);
    for (const std::string_view column : needed) {
      if (!has(column)) {
        return bad(fmt::format("there is no column \"{}\" among \"{}\"", column, line_));
      }
    }
    return {};
  }
  bool has(std::string_view column) const {
    return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
  }
  // False at the end of the file; empty lines are passed over.
  Result<bool> next() {
    do {
      if (!read()) return false;
    } while (line_.empty());
    fields_ = split(line_, ',');
    if (fields_.size() != columns_.size()) {
      return bad(
          fmt::format("{} fields, but there are {} columns", fields_.size(), columns_.size()));
    }
    return true;
  }
  std::string_view text(std::string_view column) const {
    const auto at = std::find(columns_.begin(), columns_.end(), column);
    return fields_[static_cast<std::size_t>(at - columns_.begin())];
  }
  Result<std::int64_t> number(std::string_view column, std::int64_t least,
                              std::int64_t most = kMost) const {
    const std::string_view value = text(column);
    std::int64_t parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error != std::errc{} || end != value.data() + value.size() || parsed < least ||
        parsed > most) {
      return bad(fmt::format("{} is \"{}\"; a whole number from {} to {} was expected", column,
                             value, least, most));
    }
    return parsed;
  }
  Error bad(std::string_view what) const {
    return fail(ErrorCode::parse, fmt::format("{}:{}: {}", name_, line_number_, what));
  }

 private:
  bool read() {
    if (!std::getline(in_, line_)) return false;
    ++line_number_;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    return true;
  }

  std::istream& in_;
  std::string name_, line_;
  std::size_t line_number_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::string_view> fields_;  // of line_
};

// The end of reading is the end of the file, not a broken disk.
Result<void> ended(const std::istream& in, const Table& table) {
  if (in.bad()) return table.bad("reading failed here");
  return {};
}

}  // namespace

Result<std::vector<OpenbNode>> read_openb_nodes(std::istream& in, std::string_view name) {
  Table table(in, name);
  if (const auto head = table.header({"sn", "cpu_milli", "memory_mib", "gpu", "model"}); !head) {
    return head.error();
  }
  std::vector<OpenbNode> nodes;
  std::unordered_set<std::string> names;
  while (true) {
    const auto more = table.next();
    if (!more) return more.error();
    if (!*more) break;
    const auto cpu = table.number("cpu_milli", 1), memory = table.number("memory_mib", 1),
               gpus = table.number("gpu", 0, 32);
    for (const auto* field : {&cpu, &memory, &gpus}) {
      if (!*field) return field->error();
    }
    OpenbNode node{std::string(table.text("sn")), Millicores{*cpu}, Bytes{*memory * kMiB},
                   static_cast<int>(*gpus), std::string(table.text("model"))};
    if (node.name.empty()) return table.bad("the node has no name (sn)");
    if (!names.insert(node.name).second) {
      return table.bad(fmt::format("node \"{}\" is there twice", node.name));
    }
    if (node.gpus > 0 && node.model.empty()) return table.bad("GPUs without a model");
    nodes.push_back(std::move(node));
  }
  if (const auto end = ended(in, table); !end) return end.error();
  if (nodes.empty()) return table.bad("there are no nodes");
  return nodes;
}

Result<std::vector<OpenbPod>> read_openb_pods(std::istream& in, std::string_view name) {
  Table table(in, name);
  if (const auto head = table.header({"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"});
      !head) {
    return head.error();
  }
  const bool spec = table.has("gpu_spec");
  const bool times = table.has("creation_time") && table.has("deletion_time");
  std::vector<OpenbPod> pods;
  while (true) {
    const auto more = table.next();
    if (!more) return more.error();
    if (!*more) break;
    const auto cpu = table.number("cpu_milli", 0), memory = table.number("memory_mib", 0),
               gpus = table.number("num_gpu", 0, 32), milli = table.number("gpu_milli", 0, 1000);
    for (const auto* field : {&cpu, &memory, &gpus, &milli}) {
      if (!*field) return field->error();
    }
    OpenbPod pod{std::string(table.text("name")),
                 Millicores{*cpu},
                 Bytes{*memory * kMiB},
                 static_cast<int>(*gpus),
                 *gpus > 0 ? static_cast<int>(*milli) : 0,
                 {},
                 std::nullopt,
                 std::nullopt};
    if (*cpu == 0 && *memory == 0 && *gpus == 0) return table.bad("the pod asks for nothing");
    if (*gpus == 1 && *milli == 0) return table.bad("a GPU, but gpu_milli is 0");
    if (*gpus > 1 && *milli != 1000) {
      return table.bad(fmt::format("{} GPUs of {} thousandths: several GPUs are whole ones (1000)",
                                   *gpus, *milli));
    }
    if (spec && !table.text("gpu_spec").empty()) {
      for (const std::string_view model : split(table.text("gpu_spec"), '|')) {
        if (!model.empty()) pod.models.emplace_back(model);
      }
    }
    // Some pods of the trace have not ended: no time.
    if (times && !table.text("creation_time").empty()) {
      const auto created = table.number("creation_time", 0);
      if (!created) return created.error();
      pod.created_second = *created;
    }
    if (times && !table.text("deletion_time").empty()) {
      const auto deleted = table.number("deletion_time", 0);
      if (!deleted) return deleted.error();
      if (pod.created_second && *deleted < *pod.created_second) {
        return table.bad(fmt::format("deletion_time {} is before creation_time {}", *deleted,
                                     *pod.created_second));
      }
      pod.deleted_second = *deleted;
    }
    pods.push_back(std::move(pod));
  }
  if (const auto end = ended(in, table); !end) return end.error();
  if (pods.empty()) return table.bad("there are no pods");
  return pods;
}

}  // namespace kwatt::simulator
