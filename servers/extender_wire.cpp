#include "servers/extender_wire.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "api/decode.hpp"
#include "api/json_scan.hpp"

namespace kwatt::servers {
namespace {

using api::JsonMember;
using api::JsonWalk;

// Go's encoding/json takes a key in any case.
bool is_key(std::string_view key, std::string_view name) {
  return std::equal(key.begin(), key.end(), name.begin(), name.end(), [](char a, char b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(a) == lower(b);
  });
}

std::string_view value_of(std::string_view text, const JsonMember& member) {
  return text.substr(member.begin, member.end - member.begin);
}

Error broken(std::string_view what, std::size_t at) {
  return fail(ErrorCode::parse, fmt::format("{} is no JSON any more at byte {}", what, at));
}

// The text between the quotes of a name. Kubernetes has no name that would need an escape.
Result<std::string_view> plain_string(std::string_view value, std::string_view path) {
  if (value.size() < 2 || value.front() != '"') {
    return fail(ErrorCode::parse, fmt::format("{}: a string is expected", path));
  }
  const std::string_view name = value.substr(1, value.size() - 2);
  if (name.empty()) return fail(ErrorCode::parse, fmt::format("{}: a name is expected", path));
  for (const char c : name) {
    if (c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      return fail(ErrorCode::parse, fmt::format("{}: not the name of a node", path));
    }
  }
  return name;
}

Error too_many() {
  return fail(ErrorCode::invalid_argument,
              fmt::format("more than {} nodes in one request", kMaxOfferedNodes));
}

Result<void> read_names(std::string_view body, std::size_t at, ExtenderArgs& args) {
  JsonWalk walk{body, at};
  if (!walk.good() || walk.is_object()) {
    return fail(ErrorCode::parse, "NodeNames: a list of names is expected");
  }
  while (const auto element = walk.next()) {
    if (args.nodes.size() >= kMaxOfferedNodes) return too_many();
    const auto name = plain_string(value_of(body, *element), "NodeNames[]");
    if (!name) return name.error().with_context(fmt::format("element {}", args.nodes.size()));
    args.nodes.push_back({*name, {}});
  }
  if (!walk.good()) return broken("NodeNames", walk.at());
  return {};
}

// metadata.name of a node. kube-scheduler writes metadata first, and name first in it, so this
// seldom looks at more than the beginning.
Result<std::string_view> name_of_node(std::string_view object, std::size_t index) {
  JsonWalk node{object, 0};
  while (const auto member = node.next()) {
    if (!is_key(member->key, "metadata")) continue;
    JsonWalk metadata{object, member->begin};
    while (const auto field = metadata.next()) {
      if (!is_key(field->key, "name")) continue;
      return plain_string(value_of(object, *field), fmt::format("Nodes.items[{}].name", index));
    }
    break;
  }
  return fail(ErrorCode::parse, fmt::format("Nodes.items[{}]: no metadata.name", index));
}

Result<void> read_items(std::string_view body, std::size_t at, ExtenderArgs& args) {
  JsonWalk walk{body, at};
  if (!walk.good() || walk.is_object()) {
    return fail(ErrorCode::parse, "Nodes.items: a list of nodes is expected");
  }
  while (const auto element = walk.next()) {
    if (args.nodes.size() >= kMaxOfferedNodes) return too_many();
    const std::string_view object = value_of(body, *element);
    if (object.front() != '{') {
      return fail(ErrorCode::parse,
                  fmt::format("Nodes.items[{}]: an object is expected", args.nodes.size()));
    }
    const auto name = name_of_node(object, args.nodes.size());
    if (!name) return name.error();
    args.nodes.push_back({*name, object});
  }
  if (!walk.good()) return broken("Nodes.items", walk.at());
  return {};
}

Result<void> read_nodes(std::string_view body, std::size_t at, ExtenderArgs& args) {
  JsonWalk walk{body, at};
  if (!walk.good() || !walk.is_object()) {
    return fail(ErrorCode::parse, "Nodes: a NodeList is expected");
  }
  while (const auto member = walk.next()) {
    if (!is_key(member->key, "items") || value_of(body, *member) == "null") continue;
    if (auto read = read_items(body, member->begin, args); !read) return read;
  }
  if (!walk.good()) return broken("Nodes", walk.at());
  return {};
}

void append_json_string(std::string& out, std::string_view text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  out.append(buffer.GetString(), buffer.GetSize());
}

void write_failed(std::string& out, const ExtenderArgs& args,
                  const std::vector<placement::Excluded>& excluded, bool unresolvable) {
  out += '{';
  const std::size_t start = out.size();
  for (const placement::Excluded& one : excluded) {
    if ((one.code == placement::Code::unresolvable) != unresolvable) continue;
    if (out.size() > start) out += ',';
    out += '"';
    out += args.nodes[one.target].name;
    out += "\":";
    append_json_string(out, one.reason);
  }
  out += '}';
}

}  // namespace

Result<ExtenderArgs> read_extender_args(std::string& body) {
  ExtenderArgs args;
  std::optional<JsonMember> pod, nodes, names;
  JsonWalk walk{body, 0};
  if (!walk.good() || !walk.is_object()) {
    return fail(ErrorCode::parse,
                "not ExtenderArgs: an object with Pod and NodeNames or Nodes is "
                "expected");
  }
  while (const auto member = walk.next()) {
    if (value_of(body, *member) == "null") continue;
    if (is_key(member->key, "Pod")) pod = member;
    if (is_key(member->key, "Nodes")) nodes = member;
    if (is_key(member->key, "NodeNames")) names = member;
  }
  if (!walk.good()) return broken("the request", walk.at());
  if (api::skip_space(body, walk.at()) != body.size()) {
    return fail(ErrorCode::parse, fmt::format("more than one JSON value: byte {}", walk.at()));
  }
  if (!pod) return fail(ErrorCode::parse, "Pod is missing");
  if (nodes && names) return fail(ErrorCode::parse, "both Nodes and NodeNames: one is expected");
  if (!nodes && !names)
    return fail(ErrorCode::parse, "neither Nodes nor NodeNames: one is expected");
  args.whole_nodes = nodes.has_value();
  auto read = nodes ? read_nodes(body, nodes->begin, args) : read_names(body, names->begin, args);
  if (!read) return read.error();

  // The decoder needs a byte behind the text; the brace or comma there has been read already.
  auto decoded = api::decode_into(api::MutableJson{body.data() + pod->begin, pod->end - pod->begin},
                                  args.pod, nullptr);
  if (!decoded) return decoded.error().with_context("Pod");
  return args;
}

Result<BindingArgs> read_binding_args(std::string_view body) {
  BindingArgs args;
  JsonWalk walk{body, 0};
  if (!walk.good() || !walk.is_object()) {
    return fail(ErrorCode::parse,
                "not ExtenderBindingArgs: an object with PodName, PodNamespace, "
                "PodUID and Node is expected");
  }
  const std::pair<std::string_view, std::string*> fields[] = {
      {"PodName", &args.pod_name},
      {"PodNamespace", &args.namespace_name},
      {"PodUID", &args.pod_uid},
      {"Node", &args.node}};
  while (const auto member = walk.next()) {
    for (const auto& [name, field] : fields) {
      if (!is_key(member->key, name)) continue;
      const auto text = plain_string(value_of(body, *member), name);
      if (!text) return text.error();
      *field = *text;
    }
  }
  if (!walk.good()) return broken("the request", walk.at());
  for (const auto& [name, field] : fields) {
    if (field->empty())
      return fail(ErrorCode::invalid_argument, fmt::format("{} is missing", name));
    // They become parts of a URL.
    const bool plain = std::all_of(field->begin(), field->end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
    if (!plain || *field == "." || *field == "..") {
      return fail(ErrorCode::invalid_argument, fmt::format("{}: not a name or uid", name));
    }
  }
  return args;
}

std::string write_filter_result(const ExtenderArgs& args, const std::vector<std::size_t>& passed,
                                const std::vector<placement::Excluded>& excluded) {
  std::string out;
  std::size_t size = 128 + 96 * excluded.size();
  for (const std::size_t at : passed) {
    size += 4 + (args.whole_nodes ? args.nodes[at].object : args.nodes[at].name).size();
  }
  out.reserve(size);
  if (args.whole_nodes) {
    out += R"({"Nodes":{"metadata":{},"items":[)";
    for (const std::size_t at : passed) {
      if (out.back() != '[') out += ',';
      out += args.nodes[at].object;
    }
    out += R"(]},"NodeNames":null)";
  } else {
    out += R"({"Nodes":null,"NodeNames":[)";
    for (const std::size_t at : passed) {
      out += out.back() == '[' ? "\"" : ",\"";
      out += args.nodes[at].name;
      out += '"';
    }
    out += ']';
  }
  out += R"(,"FailedNodes":)";
  write_failed(out, args, excluded, false);
  out += R"(,"FailedAndUnresolvableNodes":)";
  write_failed(out, args, excluded, true);
  out += R"(,"Error":""})";
  return out;
}

std::string write_filter_error(std::string_view sentence) {
  std::string out =
      R"({"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":)";
  append_json_string(out, sentence);
  out += '}';
  return out;
}

std::string write_priorities(const ExtenderArgs& args, const std::vector<std::int64_t>& scores) {
  std::string out;
  std::size_t size = 2;
  for (const OfferedNode& node : args.nodes) size += node.name.size() + 24;
  out.reserve(size);
  out += '[';
  for (std::size_t i = 0; i < args.nodes.size(); ++i) {
    out += i == 0 ? R"({"Host":")" : R"(,{"Host":")";
    out += args.nodes[i].name;
    out += R"(","Score":)";
    const std::int64_t score = scores[i];
    if (score == 10) {
      out += "10";
    } else {
      out += static_cast<char>('0' + score);
    }
    out += '}';
  }
  out += ']';
  return out;
}

std::string write_binding_result(std::string_view error) {
  std::string out = R"({"Error":)";
  append_json_string(out, error);
  out += '}';
  return out;
}

}  // namespace kwatt::servers
