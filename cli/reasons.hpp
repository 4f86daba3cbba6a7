#pragma once
// For every reason of api/reason.hpp: how it ends a sentence, and what would change it. The texts
// hold placeholders in braces, which are filled from typed fields of the objects; nothing is ever
// read out of a message.
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "api/reason.hpp"

namespace kwatt::cli {

struct ReasonText {
  api::Reason reason{};
  std::string_view because;  // completes "node a is on because …"
  std::string_view change;   // a sentence without its period: what ends it
};

// In the order of api/reason.hpp; every reason once.
std::span<const ReasonText> reason_texts();
const ReasonText& text_of(api::Reason reason);

// Placeholder → value; explain_node() knows all of them (a test fills every text).
using Values = std::map<std::string, std::string, std::less<>>;
// The text with its placeholders replaced; one without a value becomes "an unknown value".
std::string fill(std::string_view text, const Values& values);

}  // namespace kwatt::cli
