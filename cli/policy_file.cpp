#include "cli/policy_file.hpp"

#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <yaml-cpp/yaml.h>

#include "api/decode.hpp"

namespace kwatt::cli {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

constexpr std::streamsize kLargest = 1 << 20;  // bytes of a file that people write
constexpr int kDeepest = 64;

// Plain scalars by their look, quoted ones as text.
void write(Writer& out, const YAML::Node& node, int depth) {
  if (depth > kDeepest) throw YAML::Exception(node.Mark(), "nested too deeply");
  if (node.IsMap()) {
    out.StartObject();
    for (const auto& entry : node) {
      out.Key(entry.first.Scalar().c_str());
      write(out, entry.second, depth + 1);
    }
    out.EndObject();
    return;
  }
  if (node.IsSequence()) {
    out.StartArray();
    for (const auto& entry : node) write(out, entry, depth + 1);
    out.EndArray();
    return;
  }
  if (!node.IsDefined() || node.IsNull()) {
    out.Null();
    return;
  }
  bool truth = false;
  std::int64_t whole = 0;
  double real = 0;
  if (node.Tag() == "!") {
    out.String(node.Scalar().c_str());
  } else if (YAML::convert<bool>::decode(node, truth)) {
    out.Bool(truth);
  } else if (YAML::convert<std::int64_t>::decode(node, whole)) {
    out.Int64(whole);
  } else if (YAML::convert<double>::decode(node, real)) {
    out.Double(real);
  } else {
    out.String(node.Scalar().c_str());
  }
}

std::string json_of_node(const YAML::Node& node) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  write(writer, node, 0);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace

Result<std::string> json_of_yaml(const std::string& text) {
  try {
    return json_of_node(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::parse, error.what());
  }
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargest + 1, '\0');
  file.read(text.data(), kLargest + 1);
  if (file.bad() || (!file.eof() && file.fail()) || !file.is_open()) {
    return fail(ErrorCode::not_found, "cannot read " + path);
  }
  if (file.gcount() > kLargest) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is larger than {} bytes", path, kLargest));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Result<PolicyFile> read_policy(const std::string& path) {
  auto text = read_text(path);
  if (!text) return text.error();
  try {
    for (const YAML::Node& document : YAML::LoadAll(*text)) {
      if (!document.IsMap() || !document["kind"] || document["kind"].Scalar() != "EnergyPolicy") {
        continue;
      }
      api::EnergyPolicy policy;
      if (auto done = api::decode(json_of_node(document), policy); !done) {
        return done.error().with_context(path);
      }
      const auto problems = api::validate(policy.spec);
      if (!problems.empty()) {
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}: {}", path, fmt::join(problems, "; ")));
      }
      policy.spec.mode = api::Mode::Enforce;
      return PolicyFile{policy.meta.name.empty() ? "default" : policy.meta.name, policy.spec};
    }
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::parse, fmt::format("{}: {}", path, error.what()));
  }
  return fail(ErrorCode::invalid_argument, path + ": there is no EnergyPolicy in it");
}

}  // namespace kwatt::cli
