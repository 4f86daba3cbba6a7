#pragma once
// Turns the YAML of test tables into JSON text, as kubectl does: plain scalars by their look,
// quoted ones as text.
#include <string>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace kwatt::test {

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

inline std::string to_json(const YAML::Node& node) {
  std::string out;
  if (node.IsMap()) {
    for (const auto& entry : node) {
      out += (out.empty() ? "" : ",") + quoted(entry.first.Scalar()) + ":" + to_json(entry.second);
    }
    return "{" + out + "}";
  }
  if (node.IsSequence()) {
    for (const auto& entry : node) out += (out.empty() ? "" : ",") + to_json(entry);
    return "[" + out + "]";
  }
  if (!node.IsDefined() || node.IsNull()) return "null";
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return quoted(text);
  if (text == "true" || text == "false") return text;
  std::size_t used = 0;
  try {
    static_cast<void>(std::stod(text, &used));
  } catch (const std::exception&) {
    used = 0;
  }
  return used == text.size() && !text.empty() ? text : quoted(text);
}

}  // namespace kwatt::test
