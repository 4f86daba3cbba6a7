// carbon: how a zone's carbon intensity goes on, and when a job would emit least. From a file or a
// carbon source; nothing is asked of a cluster.
#include "cli/carbon.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "kube/credentials.hpp"
#include "telemetry/carbon_config.hpp"
#include "telemetry/carbon_zones.hpp"

namespace kwatt::cli {
namespace {

namespace carbon = models::carbon;
using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

Result<Duration> span_of(const std::string& text, std::string_view option) {
  const auto span = parse_go_duration(text);
  if (!span || *span <= Duration{0}) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} {}: must be a duration such as 4h or 90m", option, text));
  }
  return *span;
}

Result<std::string> zone_of(const carbon::CsvIntensities& found, const CarbonOptions& options) {
  if (found.zones.empty()) {
    return fail(ErrorCode::not_found, options.file + " has no carbon intensity");
  }
  if (found.zones.contains(options.zone)) return options.zone;
  // Without a zone column a file is of whatever zone it is said to be.
  if (found.zones.size() == 1 && (options.zone.empty() || found.zones.contains(""))) {
    return found.zones.begin()->first;
  }
  std::string names;
  for (const auto& [name, series] : found.zones) names += (names.empty() ? "" : ", ") + name;
  return fail(
      ErrorCode::not_found,
      options.zone.empty()
          ? fmt::format("{} has several zones, name one: {}", options.file, names)
          : fmt::format("{} has no zone \"{}\"; there are: {}", options.file, options.zone, names));
}

void put(Writer& out, const carbon::StartChoice& choice) {
  out.StartObject();
  out.Key("start");
  out.String(format_rfc3339(choice.start).c_str());
  out.Key("gramsPerKWh");
  out.Double(choice.grams_per_kwh);
  out.Key("grams");
  out.Double(choice.grams);
  out.EndObject();
}

Result<telemetry::CarbonSourceConfig> source_of(const CarbonOptions& options) {
  auto text = kube::read_file(options.sources);
  if (!text) return text.error().with_context("--sources");
  auto all = telemetry::parse_carbon_config(*text, options.sources);
  if (!all) return all.error();
  std::string names;
  for (telemetry::CarbonSourceConfig& one : *all) {
    if (one.name == options.source || (options.source.empty() && all->size() == 1)) {
      return std::move(one);
    }
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return fail(ErrorCode::not_found,
              options.source.empty()
                  ? fmt::format("{} has several sources, name one with --source: {}",
                                options.sources, names)
                  : fmt::format("{} has no source \"{}\"; there are: {}", options.sources,
                                options.source, names));
}

// Whoever runs the command has chosen the addresses in the file, so each may be asked.
Result<net::AllowList> addresses_of(const telemetry::CarbonSourceConfig& config) {
  std::string address;
  if (const auto* http = std::get_if<telemetry::CarbonHttpConfig>(&config.from)) {
    address = http->url;
  } else if (const auto* server = std::get_if<telemetry::CarbonPrometheusConfig>(&config.from)) {
    address = server->url;
  } else {
    return net::AllowList();
  }
  const auto path = address.find('/', address.find("://") + 3);
  const auto url = net::parse_url(address.substr(0, path));
  if (!url) return url.error().with_context(config.name);
  return net::AllowList::parse({url->origin.host}, net::AllowList::Bare::both);
}

Result<carbon::IntensitySeries> ask_source(const CarbonOptions& options, TimePoint now) {
  const auto config = source_of(options);
  if (!config) return config.error();
  const auto addresses = addresses_of(*config);
  if (!addresses) return addresses.error();
  boost::asio::io_context context(1);
  auto source =
      telemetry::make_carbon_source(context.get_executor(), *config, {*addresses, kube::read_file});
  if (!source) return source.error();
  std::optional<Result<std::vector<carbon::Reading>>> answer;
  boost::asio::co_spawn(
      context, (*source)->fetch(options.zone, now),
      [&answer](const std::exception_ptr& thrown, Result<std::vector<carbon::Reading>> result) {
        if (!thrown) answer = std::move(result);
      });
  context.run();
  if (!answer) return fail(ErrorCode::internal, "the source was not asked to the end");
  if (!*answer) return answer->error();
  telemetry::CarbonZones zones;
  zones.took(options.zone, **answer);
  return zones.series(options.zone);
}

Result<CarbonView> view_of(const CarbonOptions& options, TimePoint now) {
  if (options.file.empty()) {
    if (options.sources.empty()) {
      return fail(ErrorCode::invalid_argument, "--csv or --sources is needed");
    }
    const auto series = ask_source(options, now);
    if (!series) return series.error();
    return view_series(*series, options.zone, options, now);
  }
  std::ifstream file(options.file);
  if (!file) return fail(ErrorCode::io, "cannot open --csv " + options.file);
  return view_carbon(file, options, now);
}

Result<int> show(std::ostream& out, const CarbonOptions& options, const Clock& clock) {
  const auto view = view_of(options, clock.now());
  if (!view) return view.error();
  out << (options.output == "json" ? pretty_json(carbon_json(*view)) : carbon_table(*view));
  return kDone;
}

}  // namespace

Result<CarbonView> view_carbon(std::istream& in, const CarbonOptions& options, TimePoint now) {
  auto found = carbon::read_csv(in, options.file, options.shape);
  if (!found) return found.error();
  const auto zone = zone_of(*found, options);
  if (!zone) return zone.error();
  auto out = view_series(found->zones.find(*zone)->second, zone->empty() ? options.zone : *zone,
                         options, now);
  if (!out) return out;
  out->skipped = found->skipped;
  out->first_skipped = found->first_skipped;
  return out;
}

Result<CarbonView> view_series(const carbon::IntensitySeries& series, std::string zone,
                               const CarbonOptions& options, TimePoint now) {
  CarbonView out;
  out.zone = std::move(zone);
  out.at = now;
  if (!options.at.empty()) {
    const auto at = carbon::parse_time(options.at);
    if (!at) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--at {}: must be a time such as 2026-11-20T21:00:00Z", options.at));
    }
    out.at = *at;
  }
  const auto length = span_of(options.length, "--length");
  if (!length) return length.error();
  const auto deadline = span_of(options.deadline, "--deadline");
  if (!deadline) return deadline.error();
  constexpr Duration kFarthest = std::chrono::hours{carbon::kLongestHorizon};
  if (*deadline > kFarthest || *length > kFarthest) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("forecasts reach {} at most", format_go_duration(kFarthest)));
  }
  out.length = *length;
  out.deadline = out.at + *deadline;
  // As far as the job may go; part of an hour more where `at` lies within one.
  const auto hours = static_cast<std::size_t>(
      std::chrono::ceil<std::chrono::hours>(std::max(*deadline, *length)).count() + 1);
  auto forecast = carbon::predict_carbon(series, out.at, hours, options.learner);
  if (!forecast) return forecast.error().with_context("--forecast");
  out.forecast = std::move(*forecast);
  carbon::ShiftableJob job;
  job.now = out.at;
  job.length = out.length;
  job.deadline = out.deadline;
  job.energy_kwh = options.energy_kwh;
  auto decision = carbon::choose_start(out.forecast, job);
  if (!decision) return decision.error();
  out.decision = std::move(*decision);
  return out;
}

std::string carbon_table(const CarbonView& view) {
  std::string text;
  if (view.skipped > 0) {
    text += fmt::format("{} ignored: {}\n", count(static_cast<std::int64_t>(view.skipped), "row"),
                        view.first_skipped);
  }
  text += fmt::format("A job of {} that must end by {} {} ({}).\n", format_go_duration(view.length),
                      format_rfc3339(view.deadline), view.decision.message,
                      to_string(view.decision.reason));
  if (!view.forecast.usable()) return text;
  Table table({"HOUR", "G/KWH", "FROM", "JOB"});
  const TimePoint start = view.decision.chosen.start, end = start + view.length;
  for (std::size_t i = 0; i < view.forecast.grams.size(); ++i) {
    const TimePoint hour = view.forecast.start + std::chrono::hours{1} * static_cast<int>(i);
    const bool runs = hour + std::chrono::hours{1} > start && hour < end;
    table.add({format_rfc3339(hour), fmt::format("{:.0f}", view.forecast.grams[i]),
               i < view.forecast.measured ? "measured" : view.forecast.model, runs ? "runs" : ""});
  }
  return text + "\n" + table.text();
}

std::string carbon_json(const CarbonView& view) {
  rapidjson::StringBuffer buffer;
  Writer out(buffer);
  const auto text = [&out](const char* key, std::string_view value) {
    out.Key(key);
    out.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  out.StartObject();
  text("zone", view.zone);
  text("at", format_rfc3339(view.at));
  text("length", format_go_duration(view.length));
  text("deadline", format_rfc3339(view.deadline));
  text("reason", to_string(view.decision.reason));
  text("message", view.decision.message);
  text("data", to_string(view.forecast.missing));
  out.Key("startNow");
  out.Bool(view.decision.start_now);
  out.Key("savedGrams");
  out.Double(view.decision.saved_grams);
  out.Key("skippedRows");
  out.Uint64(view.skipped);
  if (view.forecast.usable()) {
    out.Key("chosen");
    put(out, view.decision.chosen);
    if (view.decision.at_once) {
      out.Key("atOnce");
      put(out, *view.decision.at_once);
    }
    out.Key("alternatives");
    out.StartArray();
    for (const carbon::StartChoice& one : view.decision.alternatives) put(out, one);
    out.EndArray();
  }
  out.Key("forecast");
  out.StartObject();
  text("model", view.forecast.model);
  text("start", format_rfc3339(view.forecast.start));
  out.Key("gramsPerKWh");
  out.StartArray();
  for (const double grams : view.forecast.grams) out.Double(grams);
  out.EndArray();
  out.EndObject();
  out.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

void add_carbon(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<CarbonOptions>();
  CLI::App* verb =
      add_verb(app, "carbon", "Show when a job would emit least, from a file or a carbon source",
               "  kubectl kwatt carbon DE --csv intensity.csv\n"
               "  kubectl kwatt carbon --csv DE_2023.csv --time-column datetime_utc "
               "--value-column ci_lca_g_per_kwh --at 2023-06-01T08:00:00Z\n"
               "  kubectl kwatt carbon DE --csv intensity.csv --length 2h --deadline "
               "12h --energy-kwh 3.5 -o json\n"
               "  kubectl kwatt carbon DE --sources sources.json --source maps\n");
  verb->add_option("ZONE", options->zone, "The zone (default: the only one of the file)");
  CLI::Option* csv = verb->add_option("--csv", options->file,
                                      "Carbon intensities: columns time, zone, gramsPerKWh")
                         ->type_name("FILE");
  CLI::Option* sources =
      verb->add_option("--sources", options->sources, "Ask a carbon source of this JSON file")
          ->type_name("FILE")
          ->excludes(csv);
  verb->add_option("--source", options->source, "Its name (default: the only one of the file)")
      ->needs(sources);
  verb->add_option("--length", options->length, "How long the job runs")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--deadline", options->deadline, "When it must have ended, from --at on")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--energy-kwh", options->energy_kwh, "What the job uses")->capture_default_str();
  verb->add_option("--at", options->at, "The time of the decision (default: now)")
      ->type_name("TIME");
  const auto names = carbon::learner_names();
  verb->add_option("--forecast", options->learner, "How to forecast")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())).description(""))
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->capture_default_str();
  verb->add_option("--time-column", options->shape.time, "Name of the column of times")
      ->capture_default_str();
  verb->add_option("--value-column", options->shape.value, "Name of the column of values")
      ->capture_default_str();
  verb->add_option("--zone-column", options->shape.zone, "Name of the column of zones")
      ->capture_default_str();
  verb->add_flag("--skip-bad", options->shape.skip_bad, "Count bad rows instead of refusing them");
  verb->add_option("-o,--output", options->output, "How to show it")
      ->check(CLI::IsMember({"table", "json"}).description(""))
      ->type_name("table|json")
      ->capture_default_str();
  verb->callback([&chosen, options] {
    chosen.offline = [options](std::ostream& out, const Clock& clock) {
      return show(out, *options, clock);
    };
  });
}

}  // namespace kwatt::cli
