#include "cli/explain.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/describe_meta.hpp"
#include "api/encode.hpp"
#include "cli/output.hpp"

namespace kwatt::api {

template <>
struct Describe<cli::EventLine> {
  using T = cli::EventLine;
  static constexpr std::string_view name = "EventLine";
  static constexpr auto fields = std::array{
      field<&T::time>("time"),       written<&T::type>("type"), written<&T::reason>("reason"),
      written<&T::action>("action"), written<&T::note>("note"), written<&T::count>("count")};
};

template <>
struct Describe<cli::Explanation> {
  using T = cli::Explanation;
  static constexpr std::string_view name = "Explanation";
  static constexpr auto fields =
      std::array{written<&T::kind>("kind"),         field<&T::namespace_name>("namespace"),
                 written<&T::name>("name"),         written<&T::state>("state"),
                 written<&T::reason>("reason"),     written<&T::policy>("policy"),
                 written<&T::sentence>("sentence"), field<&T::message>("message"),
                 field<&T::change>("change"),       field<&T::earliest>("earliest"),
                 written<&T::facts>("facts"),       written<&T::events>("events")};
};

}  // namespace kwatt::api

namespace kwatt::cli {

std::vector<EventLine> event_lines(const std::vector<EventView>& events, std::size_t limit) {
  std::vector<const EventView*> sorted;
  sorted.reserve(events.size());
  for (const EventView& event : events) sorted.push_back(&event);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const EventView* a, const EventView* b) { return a->last() > b->last(); });
  if (sorted.size() > limit) sorted.resize(limit);
  std::vector<EventLine> lines;
  lines.reserve(sorted.size());
  for (const EventView* event : sorted) {
    lines.push_back(
        {event->last(), event->type, event->reason, event->action, event->note, event->count()});
  }
  return lines;
}

std::string text_of(const Explanation& explanation, TimePoint now) {
  std::string text = explanation.sentence + ".\n";
  const auto line = [&](const std::string& sentence) { text += "  " + sentence + ".\n"; };
  if (!explanation.message.empty()) line("The controller says: " + explanation.message);
  if (!explanation.change.empty()) {
    std::string change = explanation.change;
    if (explanation.earliest) {
      change += fmt::format("; not before {}", moment(*explanation.earliest, now));
    }
    line(change);
  }
  for (const std::string& fact : explanation.facts) line(fact);
  if (explanation.events.empty()) return text;
  Table table({"LAST SEEN", "TYPE", "REASON", "ACTION", "COUNT", "NOTE"});
  for (const EventLine& event : explanation.events) {
    std::string note = event.note;
    std::replace(note.begin(), note.end(), '\n', ' ');
    table.add({event.time ? relative(*event.time, now) : "-", event.type, event.reason,
               event.action.empty() ? "-" : event.action, fmt::format("{}", event.count), note});
  }
  return text + "\n" + table.text();
}

std::string json_of(const Explanation& explanation) {
  return api::encode(api::type_of<Explanation>(), &explanation);
}

}  // namespace kwatt::cli
