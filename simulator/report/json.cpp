#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "simulator/report/report.hpp"

namespace kwatt::simulator::report {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void text(Writer& out, std::string_view key, std::string_view value) {
  out.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  out.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void real(Writer& out, std::string_view key, double value) {
  out.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  // Counts as whole numbers.
  if (value >= 0 && value < 1e15 &&
      value == static_cast<double>(static_cast<std::int64_t>(value))) {
    out.Int64(static_cast<std::int64_t>(value));
  } else {
    out.Double(value);
  }
}

void write_run(Writer& out, const Run& run) {
  const Outcome& outcome = run.outcome;
  out.StartObject();
  text(out, "strategy", run.strategy);
  text(out, "trace", run.trace);
  real(out, "seed", static_cast<double>(run.seed));
  text(out, "start", format_rfc3339(outcome.start));
  real(out, "lengthSeconds", static_cast<double>(outcome.length.count()) / 1000);
  for (const Figure& figure : figures()) real(out, figure.key, figure.value(outcome));
  out.Key("refused");
  out.StartArray();
  for (const Refused& refused : outcome.refused) {
    out.StartObject();
    text(out, "job", refused.name);
    text(out, "reason", refused.reason);
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
}

void write_summary(Writer& out, const Group& group) {
  out.StartObject();
  text(out, "strategy", group.strategy);
  text(out, "trace", group.trace);
  real(out, "seeds", static_cast<double>(group.runs.size()));
  for (const Figure& figure : figures()) {
    std::vector<double> values;
    for (const Run* run : group.runs) values.push_back(figure.value(run->outcome));
    const Estimate found = estimate(values);
    out.Key(figure.key.data(), static_cast<rapidjson::SizeType>(figure.key.size()));
    out.StartObject();
    real(out, "mean", found.mean);
    real(out, "halfWidth95", found.half_width);
    out.EndObject();
  }
  out.EndObject();
}

}  // namespace

std::string json_of(const std::vector<Run>& runs) {
  rapidjson::StringBuffer buffer;
  Writer out(buffer);
  out.SetMaxDecimalPlaces(9);
  out.StartObject();
  out.Key("runs");
  out.StartArray();
  for (const Run& run : runs) write_run(out, run);
  out.EndArray();
  out.Key("summary");
  out.StartArray();
  for (const Group& group : groups_of(runs)) write_summary(out, group);
  out.EndArray();
  out.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace kwatt::simulator::report
