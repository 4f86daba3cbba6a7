// reasons: every word of api/reason.hpp with its explanation.
#include "api/describe.hpp"
#include "api/encode.hpp"
#include "cli/output.hpp"
#include "cli/reasons.hpp"
#include "cli/verb.hpp"

namespace kwatt::cli {

struct ReasonLine {
  std::string reason, because, change;
  bool operator==(const ReasonLine&) const = default;
};

struct ReasonList {
  std::vector<ReasonLine> reasons;
};

}  // namespace kwatt::cli

namespace kwatt::api {

template <>
struct Describe<cli::ReasonLine> {
  using T = cli::ReasonLine;
  static constexpr std::string_view name = "ReasonLine";
  static constexpr auto fields =
      std::array{written<&T::reason>("reason"), written<&T::because>("because"),
                 written<&T::change>("change")};
};

template <>
struct Describe<cli::ReasonList> {
  static constexpr std::string_view name = "ReasonList";
  static constexpr auto fields = std::array{written<&cli::ReasonList::reasons>("reasons")};
};

}  // namespace kwatt::api

namespace kwatt::cli {
namespace {

int print(std::ostream& out, Format format) {
  ReasonList list;
  Table table({"REASON", "BECAUSE", "WHAT CHANGES IT"});
  for (const ReasonText& text : reason_texts()) {
    const std::string reason(api::to_string(text.reason));
    list.reasons.push_back({reason, std::string(text.because), std::string(text.change)});
    table.add({reason, std::string(text.because), std::string(text.change)});
  }
  out << shown(format, table.text(), api::encode(api::type_of<ReasonList>(), &list));
  return kDone;
}

}  // namespace

void add_reasons(CLI::App& app, Chosen& chosen) {
  auto format = std::make_shared<Format>(Format::table);
  CLI::App* verb = add_verb(app, "reasons", "Explain every reason that a node can show",
                            "  kubectl kwatt reasons\n");
  add_format(*verb, *format);
  verb->callback([&chosen, format] {
    chosen.local = [format](std::ostream& out) { return print(out, *format); };
  });
}

}  // namespace kwatt::cli
