#include "planner/render.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace kwatt::planner {
namespace {

// One line of JSON.
class Line {
 public:
  Line() { writer_.StartObject(); }
  Line& text(std::string_view key, std::string_view value) { return name(key).put(value); }
  Line& text_if(std::string_view key, std::string_view value) {
    return value.empty() ? *this : text(key, value);
  }
  Line& number(std::string_view key, std::int64_t value) {
    name(key);
    writer_.Int64(value);
    return *this;
  }
  Line& flag(std::string_view key, bool value) {
    name(key);
    writer_.Bool(value);
    return *this;
  }
  Line& null(std::string_view key) {
    name(key);
    writer_.Null();
    return *this;
  }
  Line& time(std::string_view key, const std::optional<TimePoint>& value) {
    return value ? text(key, format_rfc3339(*value)) : *this;
  }
  Line& moves(const std::vector<api::PodMove>& all) {
    name("moves");
    writer_.StartArray();
    for (const api::PodMove& move : all) {
      put(move.namespace_name + "/" + move.pod_name + " -> " + move.node_name);
    }
    writer_.EndArray();
    return *this;
  }
  std::string take() {
    writer_.EndObject();
    return {buffer_.GetString(), buffer_.GetSize()};
  }

 private:
  Line& name(std::string_view key) {
    writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
    return *this;
  }
  Line& put(std::string_view value) {
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
    return *this;
  }
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

struct Details {
  Line& line;
  void operator()(const PowerOn&) const {}
  void operator()(const Release&) const {}
  void operator()(const PowerOff& off) const {
    if (!off.moves.empty()) line.moves(off.moves);
    if (off.wake_test) line.flag("wakeTest", true);
  }
  void operator()(const Migrate& migrate) const { line.moves(migrate.moves); }
  void operator()(const SetFrequency& set) const {
    line.flag("low", set.low).text_if("governor", set.level.governor);
    if (set.level.max_frequency_mhz > 0) {
      line.number("maxFrequencyMHz", set.level.max_frequency_mhz);
    }
    line.text_if("energyPerformancePreference", set.level.energy_performance_preference);
  }
  void operator()(const SetCap& cap) const {
    if (cap.watts) {
      line.number("watts", *cap.watts);
    } else {
      line.null("watts");
    }
    if (cap.by == api::CapBy::BMC) line.text("by", "BMC");
  }
};

std::string memory_line(const NodeName& name, const api::NodeMemory& memory) {
  return Line{}
      .text("node", name)
      .time("idleSince", memory.idle_since)
      .time("coolDownUntil", memory.cool_down_until)
      .time("nextAttempt", memory.next_attempt)
      .take();
}

void list(std::string& out, std::string_view key, const std::vector<std::string>& lines,
          bool last = false) {
  out += "  \"";
  out += key;
  out += "\": [";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += i == 0 ? "\n    " : ",\n    ";
    out += lines[i];
  }
  out += lines.empty() ? "]" : "\n  ]";
  out += last ? "\n" : ",\n";
}

std::string quoted(std::string_view text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace

std::string_view word(const What& what) {
  struct Words {
    std::string_view operator()(const PowerOn&) const { return "PowerOn"; }
    std::string_view operator()(const PowerOff&) const { return "PowerOff"; }
    std::string_view operator()(const Migrate&) const { return "Migrate"; }
    std::string_view operator()(const SetFrequency&) const { return "SetFrequency"; }
    std::string_view operator()(const SetCap&) const { return "SetCap"; }
    std::string_view operator()(const Release&) const { return "Release"; }
  };
  return std::visit(Words{}, what);
}

std::string render(const Action& action) {
  Line line;
  line.text("node", action.node).text("action", word(action.what));
  line.text("reason", api::to_string(action.reason)).text("message", action.message);
  std::visit(Details{line}, action.what);
  if (action.expected_saving != Milliwatts{}) {
    line.number("savingMilliwatts", action.expected_saving.count());
  }
  return line.take();
}

std::string render(const Plan& plan) {
  std::vector<std::string> actions, verdicts, memory, budgets, pending;
  for (const Action& action : plan.actions) actions.push_back(render(action));
  for (const auto& [name, verdict] : plan.verdicts) {
    verdicts.push_back(Line{}
                           .text("node", name)
                           .text("reason", api::to_string(verdict.reason))
                           .text("message", verdict.message)
                           .take());
  }
  for (const auto& [name, next] : plan.memory) memory.push_back(memory_line(name, next));
  for (const BudgetUse& use : plan.budgets) {
    budgets.push_back(Line{}
                          .text("name", use.name)
                          .number("allowed", use.allowed)
                          .number("used", use.used)
                          .time("activeUntil", use.active_until)
                          .take());
  }
  for (const std::string& pod : plan.pending) pending.push_back(quoted(pod));
  std::string out = "{\n";
  list(out, "actions", actions);
  list(out, "verdicts", verdicts);
  list(out, "memory", memory);
  list(out, "budgets", budgets);
  list(out, "pending", pending);
  out += "  \"highSince\": ";
  const auto& since = plan.policy_memory.high_since;
  out += since ? quoted(format_rfc3339(*since)) : "null";
  out += ",\n  \"halted\": ";
  out += plan.halted ? quoted(api::to_string(*plan.halted)) : "null";
  out += ",\n  \"nextWake\": ";
  out += plan.next_wake ? quoted(format_go_duration(*plan.next_wake)) : "null";
  out += "\n}\n";
  return out;
}

}  // namespace kwatt::planner
