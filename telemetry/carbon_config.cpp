#include "telemetry/carbon_config.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <rapidjson/document.h>

namespace kwatt::telemetry {
namespace {

using rapidjson::Value;

// Reads the fields of one object and then refuses what it does not know. The first error stays.
class Fields {
 public:
  Fields(const Value& object, std::string where, std::string file)
      : object_(object), where_(std::move(where)), file_(std::move(file)) {
    if (!object_.IsObject()) problem_ = bad(where_, "an object is expected");
  }
  void text(const char* key, std::string& out, bool required = false) {
    const Value* const value = find(key);
    if (value == nullptr) {
      if (required && !problem_) problem_ = bad(where_ + "/" + key, "it is missing");
      return;
    }
    if (!value->IsString() || (required && value->GetStringLength() == 0)) {
      refuse(key, "a text is expected");
    } else {
      out.assign(value->GetString(), value->GetStringLength());
    }
  }
  void duration(const char* key, Duration& out, Duration most) {
    std::string written;
    text(key, written);
    if (written.empty()) return;
    const auto read = parse_go_duration(written);
    if (!read || *read <= Duration{0} || *read > most) {
      refuse(key, fmt::format("a duration such as 10s is expected, at most {}",
                              format_go_duration(most)));
    } else {
      out = *read;
    }
  }
  void flag(const char* key, bool& out) {
    const Value* const value = find(key);
    if (value == nullptr) return;
    if (!value->IsBool()) return refuse(key, "true or false is expected");
    out = value->GetBool();
  }
  // nullptr: absent.
  const Value* part(const char* key) { return find(key); }
  Result<void> done() {
    if (problem_) return *problem_;
    for (const auto& member : object_.GetObject()) {
      const std::string name(member.name.GetString(), member.name.GetStringLength());
      if (!known_.contains(name)) {
        return bad(where_ + "/" + name,
                   fmt::format("there is no such field; there are: {}", fmt::join(known_, ", ")));
      }
    }
    return {};
  }
  void refuse(std::string_view key, std::string_view why) {
    if (!problem_) problem_ = bad(fmt::format("{}/{}", where_, key), why);
  }
  std::string at(std::string_view key) const { return fmt::format("{}/{}", where_, key); }
  Error bad(const std::string& where, std::string_view why) const {
    return fail(ErrorCode::parse,
                fmt::format("{}: {}: {}", file_, where.empty() ? "/" : where, why));
  }

 private:
  const Value* find(const char* key) {
    known_.insert(key);
    if (!object_.IsObject()) return nullptr;
    const auto found = object_.FindMember(key);
    return found == object_.MemberEnd() ? nullptr : &found->value;
  }

  const Value& object_;
  std::string where_, file_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> problem_;
};

constexpr Duration kLongestTimeout = std::chrono::minutes{1};
constexpr Duration kLongestHistory = std::chrono::hours{400 * 24};

Result<CarbonCsvConfig> csv_of(const Value& value, const std::string& where,
                               const std::string& file) {
  CarbonCsvConfig out;
  Fields fields(value, where, file);
  fields.text("path", out.path, true);
  fields.text("timeColumn", out.shape.time);
  fields.text("valueColumn", out.shape.value);
  fields.text("zoneColumn", out.shape.zone);
  fields.duration("step", out.shape.step, std::chrono::hours{24});
  fields.flag("skipBad", out.shape.skip_bad);
  if (auto good = fields.done(); !good) return good.error();
  return out;
}

Result<CarbonPrometheusConfig> prometheus_of(const Value& value, const std::string& where,
                                             const std::string& file) {
  CarbonPrometheusConfig out;
  Fields fields(value, where, file);
  fields.text("url", out.url, true);
  fields.text("query", out.query, true);
  fields.text("tokenFile", out.token_file);
  fields.text("caFile", out.ca_file);
  fields.text("unit", out.unit);
  fields.duration("timeout", out.timeout, kLongestTimeout);
  if (auto url = net::parse_url(out.url); !out.url.empty() && !url) {
    fields.refuse("url", url.error().message);
  }
  if (!grams_in(out.unit)) {
    fields.refuse("unit", fmt::format("there are: {}", kCarbonUnits));
  }
  if (auto good = fields.done(); !good) return good.error();
  return out;
}

Result<CarbonHttpConfig> http_of(const Value& value, const std::string& where,
                                 const std::string& file) {
  CarbonHttpConfig out;
  Fields fields(value, where, file);
  fields.text("url", out.url, true);
  fields.text("list", out.mapping.list);
  fields.text("time", out.mapping.time);
  fields.text("value", out.mapping.value);
  fields.text("unit", out.mapping.unit);
  fields.text("header", out.header);
  fields.text("prefix", out.prefix);
  fields.text("secretFile", out.secret_file);
  fields.text("caFile", out.ca_file);
  fields.duration("history", out.history, kLongestHistory);
  fields.duration("timeout", out.timeout, kLongestTimeout);
  if (out.header.empty() != out.secret_file.empty()) {
    fields.refuse("header", "header and secretFile go together");
  }
  if (auto good = check(out.mapping); !good) fields.refuse("", good.error().message);
  if (auto good = fields.done(); !good) return good.error();
  return out;
}

Result<CarbonSourceConfig> source_of(const Value& value, const std::string& where,
                                     const std::string& file) {
  CarbonSourceConfig out;
  Fields fields(value, where, file);
  fields.text("name", out.name, true);
  const Value* const csv = fields.part("csv");
  const Value* const prometheus = fields.part("prometheus");
  const Value* const http = fields.part("http");
  if (auto good = fields.done(); !good) return good.error();
  if ((csv != nullptr) + (prometheus != nullptr) + (http != nullptr) != 1) {
    return fields.bad(where, "one of csv, prometheus and http is expected");
  }
  const auto take = [&](auto read) -> Result<CarbonSourceConfig> {
    if (!read) return read.error();
    out.from = std::move(*read);
    return out;
  };
  if (csv != nullptr) return take(csv_of(*csv, fields.at("csv"), file));
  if (prometheus != nullptr) {
    return take(prometheus_of(*prometheus, fields.at("prometheus"), file));
  }
  return take(http_of(*http, fields.at("http"), file));
}

// A secret or token: the file's text without what is blank at its end.
std::function<Result<std::string>()> secret_in(const std::string& path, const CarbonWorld& world) {
  if (path.empty()) return {};
  return [path, read = world.read_file]() -> Result<std::string> {
    auto text = read(path);
    if (!text) return text;
    while (!text->empty() && static_cast<unsigned char>(text->back()) <= ' ') text->pop_back();
    if (text->empty()) return fail(ErrorCode::io, path + " is empty");
    return text;
  };
}

// While the file cannot be read nobody is trusted: an empty text would mean the system's roots.
net::Client::TlsSource trusting(const std::string& ca_file, const CarbonWorld& world) {
  if (ca_file.empty()) return {};
  return [ca_file, read = world.read_file] {
    net::TlsConfig tls;
    const auto pem = read(ca_file);
    tls.ca_pem = pem && !pem->empty() ? *pem : "no certificate";
    return tls;
  };
}

struct Maker {
  boost::asio::any_io_executor executor;
  const std::string& name;
  const CarbonWorld& world;
  using Made = Result<std::unique_ptr<CarbonSource>>;

  Made operator()(const CarbonCsvConfig& config) const {
    return make_carbon_file(name, CarbonFile{config.path, config.shape, world.read_file});
  }
  Made operator()(const CarbonPrometheusConfig& config) const {
    PrometheusServer server;
    auto url = net::parse_url(config.url);
    if (!url) return url.error().with_context(name);
    server.url = std::move(*url);
    const std::string& host = server.url.origin.host;
    if (!world.allowed.may(host, server.url.origin.tls)) {
      return fail(ErrorCode::forbidden, fmt::format("{}: {} is not allowed", name, host));
    }
    server.timeout = config.timeout;
    server.token = secret_in(config.token_file, world);
    server.tls = trusting(config.ca_file, world);
    return make_carbon_prometheus(executor, name, std::move(server), config.query, config.unit);
  }
  Made operator()(const CarbonHttpConfig& config) const {
    CarbonService service;
    service.url = config.url;
    service.mapping = config.mapping;
    service.header = config.header;
    service.prefix = config.prefix;
    service.secret = secret_in(config.secret_file, world);
    service.allowed = world.allowed;
    service.history = config.history;
    service.timeout = config.timeout;
    service.tls = trusting(config.ca_file, world);
    return make_carbon_service(executor, name, std::move(service));
  }
};

}  // namespace

Result<std::vector<CarbonSourceConfig>> parse_carbon_config(std::string_view json,
                                                            const std::string& file) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError()) {
    return fail(ErrorCode::parse,
                fmt::format("{}: byte {}: this is no JSON", file, document.GetErrorOffset()));
  }
  Fields fields(document, "", file);
  const Value* const sources = fields.part("sources");
  if (auto good = fields.done(); !good) return good.error();
  if (sources == nullptr || !sources->IsArray() || sources->Empty() ||
      sources->Size() > kMostCarbonSources) {
    return fields.bad("/sources",
                      fmt::format("a list of 1 to {} sources is expected", kMostCarbonSources));
  }
  std::vector<CarbonSourceConfig> out;
  for (rapidjson::SizeType i = 0; i < sources->Size(); ++i) {
    const std::string where = fmt::format("/sources/{}", i);
    auto source = source_of((*sources)[i], where, file);
    if (!source) return source.error();
    const bool twice = std::any_of(out.begin(), out.end(), [&](const CarbonSourceConfig& other) {
      return other.name == source->name;
    });
    if (twice) return fields.bad(where + "/name", "another source has this name");
    out.push_back(std::move(*source));
  }
  return out;
}

Result<std::unique_ptr<CarbonSource>> make_carbon_source(boost::asio::any_io_executor executor,
                                                         const CarbonSourceConfig& config,
                                                         const CarbonWorld& world) {
  return std::visit(Maker{std::move(executor), config.name, world}, config.from);
}

}  // namespace kwatt::telemetry
