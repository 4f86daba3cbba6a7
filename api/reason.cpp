#include "api/reason.hpp"

namespace kwatt::api {

std::optional<Reason> parse_reason(std::string_view word) {
#define KWATT_REASON_PARSE(name) \
  if (word == #name) return Reason::name;
  KWATT_REASONS(KWATT_REASON_PARSE)
#undef KWATT_REASON_PARSE
  return std::nullopt;
}

}  // namespace kwatt::api
