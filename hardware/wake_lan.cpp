#include "hardware/wake_lan.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"

namespace kwatt::hardware {
namespace {

constexpr std::string_view kScheme = "wol:";
constexpr std::size_t kLongest = 64 * 1024;
constexpr std::size_t kMostNotes = 64;
constexpr std::size_t kLongestWord = 253;

Error not_a_note(const std::string& why, std::string_view json) {
  return fail(ErrorCode::parse, fmt::format("{}: {}", kWakeAnnotation, why), excerpt(json));
}

Result<WakeNote> note_of(const rapidjson::Value& value, std::string_view json) {
  WakeNote note;
  note.id = text_at(value, {"id"});
  note.node = text_at(value, {"node"});
  auto mac = parse_mac(text_at(value, {"mac"}));
  if (!mac) return not_a_note(mac.error().message, json);
  note.mac = *mac;
  if (note.id.empty() || note.id.size() > kLongestWord || note.node.size() > kLongestWord) {
    return not_a_note("a note needs an id", json);
  }
  const auto time = parse_rfc3339(text_at(value, {"time"}));
  if (!time) return not_a_note("a note needs a time", json);
  note.time = *time;
  return note;
}

void write(rapidjson::Writer<rapidjson::StringBuffer>& out, const WakeNote& note) {
  const auto member = [&](const char* key, const std::string& value) {
    out.Key(key);
    out.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  out.StartObject();
  member("id", note.id);
  member("mac", to_string(note.mac));
  member("node", note.node);
  member("time", format_rfc3339(note.time));
  out.EndObject();
}

}  // namespace

std::string to_string(const MacAddress& mac) {
  const auto& b = mac.bytes;
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4],
                     b[5]);
}

Result<MacAddress> parse_mac(std::string_view text) {
  const Error bad = fail(ErrorCode::invalid_argument,
                         fmt::format("\"{}\" is not the address of a network card, such as "
                                     "52:54:00:12:34:56",
                                     excerpt(text, 40)));
  if (text.size() != 17) return bad;
  MacAddress mac;
  for (std::size_t i = 0; i < 6; ++i) {
    const char* pair = text.data() + 3 * i;
    const auto [end, error] = std::from_chars(pair, pair + 2, mac.bytes[i], 16);
    if (error != std::errc{} || end != pair + 2) return bad;
    if (i < 5 && (pair[2] != text[2] || (pair[2] != ':' && pair[2] != '-'))) return bad;
  }
  const bool group = (mac.bytes[0] & 1) != 0;
  if (group || mac == MacAddress{}) return bad;
  return mac;
}

Result<MacAddress> parse_wake_address(std::string_view address) {
  std::string_view rest = address;
  if (!rest.starts_with(kScheme)) {
    return fail(ErrorCode::invalid_argument, fmt::format("bmc address {} is not wol:MAC", address));
  }
  rest.remove_prefix(kScheme.size());
  if (rest.starts_with("//")) rest.remove_prefix(2);
  auto mac = parse_mac(rest);
  if (!mac) return mac.error().with_context("bmc address");
  return mac;
}

std::array<std::uint8_t, 102> magic_packet(const MacAddress& mac) {
  std::array<std::uint8_t, 102> packet{};
  std::fill_n(packet.begin(), 6, std::uint8_t{0xff});
  for (std::size_t i = 6; i < packet.size(); ++i) packet[i] = mac.bytes[i % 6];
  return packet;
}

std::string WakeNote::operation() const {
  return id.substr(0, id.rfind('/'));
}

int WakeNote::attempt() const {
  const auto slash = id.rfind('/');
  int number = 0;
  if (slash != std::string::npos) {
    std::from_chars(id.data() + slash + 1, id.data() + id.size(), number);
  }
  return number;
}

Result<std::vector<WakeNote>> parse_wake_notes(std::string_view json) {
  if (json.size() > kLongest) return not_a_note("longer than 64 KiB", json);
  const auto document = parse_json(json);
  if (!document) return not_a_note(document.error().message, json);
  std::vector<WakeNote> notes;
  const auto add = [&](const rapidjson::Value& value) -> Result<void> {
    auto note = note_of(value, json);
    if (!note) return note.error();
    notes.push_back(std::move(*note));
    return {};
  };
  if (!document->IsArray()) {
    if (auto added = add(*document); !added) return added.error();
    return notes;
  }
  if (document->Size() > kMostNotes) return not_a_note("more than 64 notes", json);
  for (const auto& value : document->GetArray()) {
    if (auto added = add(value); !added) return added.error();
  }
  return notes;
}

std::string format_wake_notes(const std::vector<WakeNote>& notes) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> out(buffer);
  if (notes.size() == 1) {
    write(out, notes.front());
  } else {
    out.StartArray();
    for (const WakeNote& note : notes) write(out, note);
    out.EndArray();
  }
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace kwatt::hardware
