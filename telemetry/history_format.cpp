#include "telemetry/history_format.hpp"

#include <concepts>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace kwatt::telemetry {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

template <class Row, class Of>
concept Is = std::same_as<std::remove_const_t<Row>, Of>;

// The columns of each kind, named once. A visitor writes the values, reads them, or lists the
// names; what is computed from the others goes to sum(), which readers pass over.
template <class Visitor>
void columns(Is<SampleRow> auto& row, Visitor& visit) {
  visit("time", row.minute);
  visit("node", row.node);
  visit("meanMilliwatts", row.mean);
  visit("maxMilliwatts", row.max);
  visit("utilizationPermille", row.utilization);
  visit("source", row.source);
}

template <class Visitor>
void columns(Is<DecisionRow> auto& row, Visitor& visit) {
  visit("time", row.at);
  visit("node", row.node);
  visit("policy", row.policy);
  visit("action", row.action);
  visit("reason", row.reason);
  visit("message", row.message);
}

template <class Visitor>
void columns(Is<OperationRow> auto& row, Visitor& visit) {
  visit("time", row.at);
  visit("node", row.node);
  visit("policy", row.policy);
  visit("operation", row.id);
  visit("kind", row.kind);
  visit("phase", row.phase);
  visit("reason", row.reason);
  visit("message", row.message);
}

template <class Visitor>
void columns(Is<EnergyRow> auto& row, Visitor& visit) {
  visit("time", row.hour);
  visit("node", row.node);
  visit("policy", row.policy);
  visit("actualMillijoules", row.actual);
  visit("baselineMillijoules", row.baseline);
  visit.sum("savedMillijoules", row.baseline - row.actual);
  visit("coveredMilliseconds", row.covered);
  visit("measuredMilliseconds", row.measured);
}

// What writers have in common: every value is a text, an integer, or not there.
class Cells {
 public:
  virtual ~Cells() = default;
  void operator()(std::string_view key, const std::string& value) { text(key, value); }
  void operator()(std::string_view key, TimePoint value) { text(key, format_rfc3339(value)); }
  void operator()(std::string_view key, const std::optional<Milliwatts>& value) {
    number(key, value ? std::optional{value->count()} : std::nullopt);
  }
  // Units and durations.
  void operator()(std::string_view key, auto value) { number(key, value.count()); }
  void sum(std::string_view key, Millijoules value) { number(key, value.count()); }

 private:
  virtual void text(std::string_view key, std::string_view value) = 0;
  virtual void number(std::string_view key, std::optional<std::int64_t> value) = 0;
};

void write(const HistoryRow& row, Cells& cells) {
  std::visit([&](const auto& one) { columns(one, cells); }, row);
}

class JsonCells final : public Cells {
 public:
  explicit JsonCells(Writer& writer) : writer_(writer) {}

 private:
  void text(std::string_view key, std::string_view value) override {
    this->key(key);
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }
  void number(std::string_view key, std::optional<std::int64_t> value) override {
    if (!value) return;  // nothing was measured
    this->key(key);
    writer_.Int64(*value);
  }
  void key(std::string_view key) {
    writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  }
  Writer& writer_;
};

class CsvCells final : public Cells {
 public:
  explicit CsvCells(std::string& out) : out_(out) {}

 private:
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
  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  std::string& out_;
  bool first_ = true;
};

// The names of the columns.
class Names {
 public:
  explicit Names(std::string& out) : out_(out) {}
  void operator()(std::string_view key, const auto&) { add(key); }
  void sum(std::string_view key, Millijoules) { add(key); }

 private:
  void add(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += key;
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
  void operator()(const char* key, std::string& value) { value = text(key); }
  void operator()(const char* key, TimePoint& value) {
    const auto at = parse_rfc3339(text(key));
    if (!at) problem(fmt::format("{} is no RFC 3339 time", key));
    value = at.value_or(TimePoint{});
  }
  void operator()(const char* key, std::optional<Milliwatts>& value) {
    const auto found = number(key);
    value = found ? std::optional{Milliwatts{*found}} : std::nullopt;
  }
  // Units and durations.
  void operator()(const char* key, auto& value) {
    const auto found = number(key);
    if (!found) problem(fmt::format("{} is missing", key));
    value = std::remove_reference_t<decltype(value)>{found.value_or(0)};
  }
  void sum(const char*, Millijoules) {}

  std::string text(const char* key) {
    const auto* value = find(key);
    if (value == nullptr || !value->IsString()) {
      problem(fmt::format("{} is missing or no text", key));
      return "";
    }
    return {value->GetString(), value->GetStringLength()};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<std::int64_t> number(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->IsInt64()) {
      problem(fmt::format("{} is no integer", key));
      return std::nullopt;
    }
    return value->GetInt64();
  }
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

HistoryRow empty_row(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::samples:
      return SampleRow{};
    case HistoryKind::decisions:
      return DecisionRow{};
    case HistoryKind::operations:
      return OperationRow{};
    case HistoryKind::energy:
      break;
  }
  return EnergyRow{};
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
    write(row, cells);
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
    HistoryRow& row = answer.rows.emplace_back(empty_row(*kind));
    std::visit([&](auto& one) { columns(one, members); }, row);
    if (members.error()) return *members.error();
  }
  return answer;
}

std::string csv_header(HistoryKind kind) {
  std::string line;
  Names names(line);
  std::visit([&](const auto& row) { columns(row, names); }, empty_row(kind));
  return line + "\n";
}

void append_csv(const HistoryRow& row, std::string& out) {
  CsvCells cells(out);
  write(row, cells);
  out += '\n';
}

std::string csv_name(HistoryKind kind, TimePoint time) {
  std::string stamp = format_rfc3339(time);  // 2026-11-20T21:00:00Z
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  const std::string_view word = kind == HistoryKind::samples ? "metrics" : to_string(kind);
  return fmt::format("{}_{}.csv", word, stamp);
}

}  // namespace kwatt::telemetry
