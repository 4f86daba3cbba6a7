#include "telemetry/history_format.hpp"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace kwatt::telemetry {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

// One row as named cells, in the order of the columns; both formats are written from it.
class Cells {
 public:
  virtual ~Cells() = default;
  virtual void text(std::string_view key, std::string_view value) = 0;
  virtual void number(std::string_view key, std::optional<std::int64_t> value) = 0;
  void time(std::string_view key, TimePoint at) { text(key, format_rfc3339(at)); }
};

void fill(const HistoryRow& row, Cells& cells) {
  if (const auto* s = std::get_if<SampleRow>(&row)) {
    const auto power = [](const std::optional<Milliwatts>& p) {
      return p ? std::optional{p->count()} : std::nullopt;
    };
    cells.time("time", s->minute);
    cells.text("node", s->node);
    cells.number("meanMilliwatts", power(s->mean));
    cells.number("maxMilliwatts", power(s->max));
    cells.number("utilizationPermille", s->utilization.count());
    cells.text("source", s->source);
  } else if (const auto* d = std::get_if<DecisionRow>(&row)) {
    cells.time("time", d->at);
    cells.text("node", d->node);
    cells.text("policy", d->policy);
    cells.text("action", d->action);
    cells.text("reason", d->reason);
    cells.text("message", d->message);
  } else if (const auto* o = std::get_if<OperationRow>(&row)) {
    cells.time("time", o->at);
    cells.text("node", o->node);
    cells.text("policy", o->policy);
    cells.text("operation", o->id);
    cells.text("kind", o->kind);
    cells.text("phase", o->phase);
    cells.text("reason", o->reason);
    cells.text("message", o->message);
  } else if (const auto* e = std::get_if<EnergyRow>(&row)) {
    cells.time("time", e->hour);
    cells.text("node", e->node);
    cells.text("policy", e->policy);
    cells.number("actualMillijoules", e->actual.count());
    cells.number("baselineMillijoules", e->baseline.count());
    cells.number("savedMillijoules", (e->baseline - e->actual).count());
    cells.number("coveredMilliseconds", e->covered.count());
    cells.number("measuredMilliseconds", e->measured.count());
  }
}

class JsonCells final : public Cells {
 public:
  explicit JsonCells(Writer& writer) : writer_(writer) {}
  void text(std::string_view key, std::string_view value) override {
    this->key(key);
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }
  void number(std::string_view key, std::optional<std::int64_t> value) override {
    if (!value) return;  // nothing was measured
    this->key(key);
    writer_.Int64(*value);
  }

 private:
  void key(std::string_view key) {
    writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  }
  Writer& writer_;
};

class CsvCells final : public Cells {
 public:
  explicit CsvCells(std::string& out) : out_(out) {}
  void text(std::string_view, std::string_view value) override {
    comma();
    const bool formula =
        !value.empty() && std::string_view("=+-@\t").find(value.front()) != std::string_view::npos;
    if (!formula && value.find_first_of(",\"\r\n") == std::string_view::npos) {
      out_ += value;
      return;
    }
    out_ += formula ? "\"'" : "\"";
    for (const char c : value) {
      if (c == '"') out_ += '"';
      out_ += c;
    }
    out_ += '"';
  }
  void number(std::string_view, std::optional<std::int64_t> value) override {
    comma();
    if (value) out_ += std::to_string(*value);
  }

 private:
  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  std::string& out_;
  bool first_ = true;
};

// Reads one row's members; the first problem is kept.
class Members {
 public:
  Members(const rapidjson::Value& object, std::string place)
      : object_(object), place_(std::move(place)) {
    if (!object_.IsObject()) problem("is no object");
  }
  std::string text(const char* key) {
    const auto* value = find(key);
    if (value == nullptr || !value->IsString()) {
      problem(fmt::format("{} is missing or no text", key));
      return "";
    }
    return {value->GetString(), value->GetStringLength()};
  }
  std::optional<std::int64_t> maybe(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->IsInt64()) {
      problem(fmt::format("{} is no integer", key));
      return std::nullopt;
    }
    return value->GetInt64();
  }
  std::int64_t number(const char* key) {
    const auto value = maybe(key);
    if (!value) problem(fmt::format("{} is missing", key));
    return value.value_or(0);
  }
  TimePoint time() {
    const auto at = parse_rfc3339(text("time"));
    if (!at) problem("time is no RFC 3339 time");
    return at.value_or(TimePoint{});
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const rapidjson::Value* find(const char* key) const {
    if (!object_.IsObject()) return nullptr;
    const auto found = object_.FindMember(key);
    return found == object_.MemberEnd() ? nullptr : &found->value;
  }
  void problem(const std::string& what) {
    if (!error_) error_ = fail(ErrorCode::parse, place_ + ": " + what);
  }
  const rapidjson::Value& object_;
  std::string place_;
  std::optional<Error> error_;
};

HistoryRow read_row(HistoryKind kind, Members& m) {
  const auto power = [&](const char* key) {
    const auto value = m.maybe(key);
    return value ? std::optional{Milliwatts{*value}} : std::nullopt;
  };
  switch (kind) {
    case HistoryKind::samples: {
      SampleRow row;
      row.minute = m.time();
      row.node = m.text("node");
      row.mean = power("meanMilliwatts");
      row.max = power("maxMilliwatts");
      row.utilization = Permille{m.number("utilizationPermille")};
      row.source = m.text("source");
      return row;
    }
    case HistoryKind::decisions: {
      DecisionRow row;
      row.at = m.time();
      row.node = m.text("node");
      row.policy = m.text("policy");
      row.action = m.text("action");
      row.reason = m.text("reason");
      row.message = m.text("message");
      return row;
    }
    case HistoryKind::operations: {
      OperationRow row;
      row.at = m.time();
      row.node = m.text("node");
      row.policy = m.text("policy");
      row.id = m.text("operation");
      row.kind = m.text("kind");
      row.phase = m.text("phase");
      row.reason = m.text("reason");
      row.message = m.text("message");
      return row;
    }
    case HistoryKind::energy:
      break;
  }
  EnergyRow row;
  row.hour = m.time();
  row.node = m.text("node");
  row.policy = m.text("policy");
  row.actual = Millijoules{m.number("actualMillijoules")};
  row.baseline = Millijoules{m.number("baselineMillijoules")};
  row.covered = Duration{m.number("coveredMilliseconds")};
  row.measured = Duration{m.number("measuredMilliseconds")};
  return row;
}

}  // namespace

std::string history_json(HistoryKind kind, const std::vector<HistoryRow>& rows, bool truncated) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  writer.Key("kind");
  const std::string_view word = to_string(kind);
  writer.String(word.data(), static_cast<rapidjson::SizeType>(word.size()));
  writer.Key("rows");
  writer.StartArray();
  JsonCells cells(writer);
  for (const HistoryRow& row : rows) {
    writer.StartObject();
    fill(row, cells);
    writer.EndObject();
  }
  writer.EndArray();
  writer.Key("truncated");
  writer.Bool(truncated);
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

Result<HistoryAnswer> parse_history_json(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return fail(ErrorCode::parse, "the history is no JSON object");
  }
  HistoryAnswer answer;
  Members top(document, "history");
  const auto kind = parse_history_kind(top.text("kind"));
  if (!kind) return fail(ErrorCode::parse, "history: kind is missing or not known");
  answer.kind = *kind;
  const auto truncated = document.FindMember("truncated");
  answer.truncated = truncated != document.MemberEnd() && truncated->value.IsTrue();
  const auto rows = document.FindMember("rows");
  if (rows == document.MemberEnd() || !rows->value.IsArray()) {
    return fail(ErrorCode::parse, "history: rows is missing or no list");
  }
  for (rapidjson::SizeType i = 0; i < rows->value.Size(); ++i) {
    Members members(rows->value[i], fmt::format("rows[{}]", i));
    answer.rows.push_back(read_row(*kind, members));
    if (members.error()) return *members.error();
  }
  return answer;
}

std::string_view csv_header(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::samples:
      return "time,node,meanMilliwatts,maxMilliwatts,utilizationPermille,source\n";
    case HistoryKind::decisions:
      return "time,node,policy,action,reason,message\n";
    case HistoryKind::operations:
      return "time,node,policy,operation,kind,phase,reason,message\n";
    case HistoryKind::energy:
      break;
  }
  return "time,node,policy,actualMillijoules,baselineMillijoules,savedMillijoules,"
         "coveredMilliseconds,measuredMilliseconds\n";
}

void append_csv(const HistoryRow& row, std::string& out) {
  CsvCells cells(out);
  fill(row, cells);
  out += '\n';
}

std::string csv_name(HistoryKind kind, TimePoint time) {
  std::string stamp = format_rfc3339(time);  // 2026-11-20T21:00:00Z
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  const std::string_view word = kind == HistoryKind::samples ? "metrics" : to_string(kind);
  return fmt::format("{}_{}.csv", word, stamp);
}

}  // namespace kwatt::telemetry
