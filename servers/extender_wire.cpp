#include "servers/extender_wire.hpp"

#include <algorithm>
#include <cstring>

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

Error broken(std::string_view what, std::size_t at) {
  return fail(ErrorCode::parse, fmt::format("{} is no JSON any more at byte {}", what, at));
}

bool is_null(std::string_view text, std::size_t at) {
  return text.substr(at, 4) == "null";
}

// The text between the quotes of a name; its end is just before the closing quote. Kubernetes has
// no name that would need an escape.
Result<std::string_view> name_at(std::string_view text, std::size_t at, std::string_view path) {
  if (at >= text.size() || text[at] != '"') {
    return fail(ErrorCode::parse, fmt::format("{}: a string is expected", path));
  }
  const auto quote = api::end_of_plain_string(text, at);
  if (!quote) {
    if (!api::end_of_string(text, at)) return broken(path, at);
    return fail(ErrorCode::parse, fmt::format("{}: not the name of a node", path));
  }
  if (*quote == at + 1) return fail(ErrorCode::parse, fmt::format("{}: a name is expected", path));
  return text.substr(at + 1, *quote - at - 1);
}

// Just behind a name that name_at() gave.
std::size_t behind(std::string_view text, std::string_view name) {
  return static_cast<std::size_t>(name.data() - text.data()) + name.size() + 1;
}

Error too_many() {
  return fail(ErrorCode::invalid_argument,
              fmt::format("more than {} nodes in one request", kMaxOfferedNodes));
}

// Each of the readers gives the offset just behind what it has read, so that nothing is read twice:
// a thousand whole nodes are ten megabytes.
Result<std::size_t> read_names(std::string_view body, std::size_t at, ExtenderArgs& args) {
  JsonWalk walk{body, at};
  if (!walk.good() || walk.is_object()) {
    return fail(ErrorCode::parse, "NodeNames: a list of names is expected");
  }
  while (const auto element = walk.enter()) {
    if (args.nodes.size() >= kMaxOfferedNodes) return too_many();
    const auto name = name_at(body, element->begin, "NodeNames[]");
    if (!name) return name.error().with_context(fmt::format("element {}", args.nodes.size()));
    args.nodes.push_back({*name, {}});
    walk.resume(behind(body, *name));
  }
  if (!walk.good()) return broken("NodeNames", walk.at());
  return walk.at();
}

// The node that begins at `at`, by metadata.name. kube-scheduler writes metadata first, and name
// first in it.
Result<OfferedNode> read_node(std::string_view body, std::size_t at, std::size_t index) {
  JsonWalk node{body, at};
  if (!node.good() || !node.is_object()) {
    return fail(ErrorCode::parse, fmt::format("Nodes.items[{}]: an object is expected", index));
  }
  while (const auto member = node.enter()) {
    if (!is_key(member->key, "metadata")) continue;
    JsonWalk metadata{body, member->begin};
    while (const auto field = metadata.enter()) {
      if (!is_key(field->key, "name")) continue;
      const auto name = name_at(body, field->begin, fmt::format("Nodes.items[{}].name", index));
      if (!name) return name.error();
      // Within metadata within the node.
      const auto end = api::end_of_open(body, behind(body, *name), 2);
      if (!end) return broken("Nodes.items", at);
      return OfferedNode{*name, body.substr(at, *end - at)};
    }
    break;
  }
  return fail(ErrorCode::parse, fmt::format("Nodes.items[{}]: no metadata.name", index));
}

Result<std::size_t> read_items(std::string_view body, std::size_t at, ExtenderArgs& args) {
  JsonWalk walk{body, at};
  if (!walk.good() || walk.is_object()) {
    return fail(ErrorCode::parse, "Nodes.items: a list of nodes is expected");
  }
  while (const auto element = walk.enter()) {
    if (args.nodes.size() >= kMaxOfferedNodes) return too_many();
    auto node = read_node(body, element->begin, args.nodes.size());
    if (!node) return node.error();
    walk.resume(element->begin + node->object.size());
    args.nodes.push_back(*node);
  }
  if (!walk.good()) return broken("Nodes.items", walk.at());
  return walk.at();
}

Result<std::size_t> read_nodes(std::string_view body, std::size_t at, ExtenderArgs& args) {
  JsonWalk walk{body, at};
  if (!walk.good() || !walk.is_object()) {
    return fail(ErrorCode::parse, "Nodes: a NodeList is expected");
  }
  while (const auto member = walk.enter()) {
    if (!is_key(member->key, "items") || is_null(body, member->begin)) continue;
    args.nodes.clear();
    const auto end = read_items(body, member->begin, args);
    if (!end) return end.error();
    walk.resume(*end);
  }
  if (!walk.good()) return broken("Nodes", walk.at());
  return walk.at();
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

// The nodes that passed, moved together within `body`, between what an answer begins and ends with.
// What lies before them in the request becomes white space, which JSON allows there.
std::string write_whole_nodes(const ExtenderArgs& args, const std::vector<std::size_t>& passed,
                              std::string_view rest, std::string&& body) {
  constexpr std::string_view kHead = R"({"Nodes":{"metadata":{},"items":[)";
  const auto offset = [&](std::size_t at) {
    return static_cast<std::size_t>(args.nodes[at].object.data() - body.data());
  };
  std::size_t begin = args.nodes.empty() ? 0 : offset(0);
  if (passed.empty() || begin < kHead.size()) {  // or the pod is behind the nodes, as nobody sends
    std::string copy(kHead);
    for (const std::size_t at : passed) {
      if (at != passed.front()) copy += ',';
      copy += args.nodes[at].object;
    }
    return copy.append(rest);
  }
  begin -= kHead.size();
  std::memset(body.data(), ' ', begin);
  kHead.copy(body.data() + begin, kHead.size());
  std::size_t end = begin + kHead.size();
  for (std::size_t i = 0; i < passed.size(); ++i) {
    if (i > 0) body[end++] = ',';
    const std::size_t from = offset(passed[i]), size = args.nodes[passed[i]].object.size();
    if (from != end) std::memmove(body.data() + end, body.data() + from, size);
    end += size;
  }
  body.resize(end);
  body += rest;
  return std::move(body);
}

}  // namespace

Result<ExtenderArgs> read_extender_args(std::string& body) {
  ExtenderArgs args;
  std::optional<JsonMember> pod;
  bool nodes = false, names = false;
  JsonWalk walk{body, 0};
  if (!walk.good() || !walk.is_object()) {
    return fail(ErrorCode::parse,
                "not ExtenderArgs: an object with Pod and NodeNames or Nodes is "
                "expected");
  }
  while (const auto member = walk.enter()) {
    if (is_null(body, member->begin)) continue;
    if (is_key(member->key, "Pod")) {
      pod = walk.skip(*member);
    } else if (is_key(member->key, "Nodes") || is_key(member->key, "NodeNames")) {
      const bool whole = is_key(member->key, "Nodes");
      (whole ? nodes : names) = true;
      if (nodes && names) {
        return fail(ErrorCode::parse, "both Nodes and NodeNames: one is expected");
      }
      args.nodes.clear();
      const auto end =
          whole ? read_nodes(body, member->begin, args) : read_names(body, member->begin, args);
      if (!end) return end.error();
      walk.resume(*end);
    }
  }
  if (!walk.good()) return broken("the request", walk.at());
  if (api::skip_space(body, walk.at()) != body.size()) {
    return fail(ErrorCode::parse, fmt::format("more than one JSON value: byte {}", walk.at()));
  }
  if (!pod) return fail(ErrorCode::parse, "Pod is missing");
  if (!nodes && !names)
    return fail(ErrorCode::parse, "neither Nodes nor NodeNames: one is expected");
  args.whole_nodes = nodes;

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
      const auto text = name_at(body, member->begin, name);
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
                                const std::vector<placement::Excluded>& excluded,
                                std::string&& body) {
  // First what is behind the nodes: their names lie in them, and they may move.
  std::string rest =
      args.whole_nodes ? R"(]},"NodeNames":null,"FailedNodes":)" : R"(],"FailedNodes":)";
  rest.reserve(256 + 96 * excluded.size());
  write_failed(rest, args, excluded, false);
  rest += R"(,"FailedAndUnresolvableNodes":)";
  write_failed(rest, args, excluded, true);
  rest += R"(,"Error":""})";
  if (args.whole_nodes) return write_whole_nodes(args, passed, rest, std::move(body));

  std::string out;
  std::size_t size = 64 + rest.size();
  for (const std::size_t at : passed) size += 3 + args.nodes[at].name.size();
  out.reserve(size);
  out += R"({"Nodes":null,"NodeNames":[)";
  for (const std::size_t at : passed) {
    out += out.back() == '[' ? "\"" : ",\"";
    out += args.nodes[at].name;
    out += '"';
  }
  out += rest;
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
