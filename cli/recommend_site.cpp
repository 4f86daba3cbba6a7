// recommend-site: the answer to a SiteRecommendation, or one made here from the Sites as they are.
#include "cli/recommend_site.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "api/encode.hpp"
#include "api/quantity.hpp"
#include "api/words.hpp"
#include "cli/output.hpp"
#include "cli/read.hpp"
#include "placement/sites/recommend.hpp"

namespace kwatt::cli {
namespace {

Error wrong(std::string_view option, std::string_view text, std::string_view want) {
  return fail(ErrorCode::invalid_argument, fmt::format("{} {}: must be {}", option, text, want));
}

Result<api::SiteWeight> weight_of(const std::string& text) {
  constexpr const char* kWant = "NAME=WEIGHT, with :low behind it where less is better";
  std::string_view rest = text;
  api::SiteWeight weight;
  if (rest.ends_with(":low")) {
    weight.prefer = api::Prefer::Low;
    rest.remove_suffix(4);
  }
  const auto equals = rest.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return wrong("--weight", text, kWant);
  const std::string name(rest.substr(0, equals));
  const std::string_view number = rest.substr(equals + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), weight.weight);
  if (error != std::errc{} || end != number.data() + number.size()) {
    return wrong("--weight", text, kWant);
  }
  const bool plugin = std::find(api::kSiteScorers.begin(), api::kSiteScorers.end(), name) !=
                      api::kSiteScorers.end();
  (plugin ? weight.plugin : weight.indicator) = name;
  return weight;
}

kube::Task<Result<api::SiteRecommendationStatus>> ask_here(Session& session,
                                                           RecommendOptions options) {
  auto spec = request_of(options);
  if (!spec) co_return spec.error();
  auto sites = co_await read_all<api::Site>(session, kube::resources::sites());
  if (!sites) co_return sites.error();
  std::vector<placement::sites::SiteView> views;
  for (api::Site& site : *sites) {
    views.push_back(placement::sites::view_of(std::make_shared<const api::Site>(std::move(site)),
                                              session.clock.now()));
    views.back().energy.source = "only the controller asks estimators: make a SiteRecommendation";
  }
  const placement::sites::SiteRequest request(std::move(*spec));
  auto answer = placement::sites::recommend(request, std::move(views));
  if (!answer) co_return answer.error();
  api::SiteRecommendationStatus status;
  placement::sites::show(*answer, status);
  co_return status;
}

kube::Task<Result<int>> recommend(Session& session, RecommendOptions options, Format format) {
  api::SiteRecommendationStatus status;
  if (options.name.empty()) {
    auto made = co_await ask_here(session, options);
    if (!made) co_return made.error();
    status = std::move(*made);
  } else {
    auto name = object_name(options.name, "a SiteRecommendation");
    if (!name) co_return name.error();
    kube::Name place(
        options.namespace_name.empty() ? session.namespace_name : options.namespace_name, *name);
    auto found = co_await read<api::SiteRecommendation>(
        session, kube::resources::site_recommendations(), place);
    if (!found) co_return found.error();
    status = std::move(found->status);
    const api::Condition* ready = api::find_condition(status.conditions, "Ready");
    if (ready == nullptr) {
      co_return fail(ErrorCode::unavailable,
                     fmt::format("SiteRecommendation {} has no answer yet: is kwatt-controller "
                                 "running?",
                                 options.name));
    }
    if (ready->status != "True") session.err << ready->reason << ": " << ready->message << "\n";
  }
  session.out << shown(format, text_of(status, options.explain), api::encode(status));
  co_return status.site.empty() ? kFailed : kDone;
}

}  // namespace

Result<api::SiteRecommendationSpec> request_of(const RecommendOptions& options) {
  api::SiteRecommendationSpec spec;
  spec.region = options.region;
  spec.isp = options.isp;
  if (!options.cpu.empty()) {
    const auto cpu = api::parse_quantity_milli(options.cpu);
    if (!cpu) return wrong("--cpu", options.cpu, "a quantity such as 2 or 500m");
    spec.resources.cpu_millicores = *cpu;
  }
  if (!options.memory.empty()) {
    const auto bytes = api::parse_quantity(options.memory);
    if (!bytes) return wrong("--memory", options.memory, "a quantity such as 4Gi");
    constexpr std::int64_t kMebibyte = 1 << 20;
    spec.resources.memory_mebibytes = *bytes / kMebibyte + (*bytes % kMebibyte > 0 ? 1 : 0);
  }
  spec.resources.gpus = options.gpus;
  spec.resources.ips = options.ips;
  if (options.mbps != 0) spec.bandwidth = {{"asked", options.mbps}};
  spec.workloads = options.workloads;
  spec.count = options.count;
  spec.affinity.sites = options.affinity;
  if (options.normalize == "Sum") spec.normalize = api::Normalize::Sum;
  if (options.normalize == "None") spec.normalize = api::Normalize::None;
  if (!options.weights.empty()) spec.weights.clear();
  for (const std::string& text : options.weights) {
    auto weight = weight_of(text);
    if (!weight) return weight.error();
    spec.weights.push_back(std::move(*weight));
  }
  if (const auto problems = api::validate(spec); !problems.empty()) {
    return fail(ErrorCode::invalid_argument, problems.front());
  }
  return spec;
}

std::string text_of(const api::SiteRecommendationStatus& status, bool explain) {
  std::string out;
  if (status.sites.empty()) {
    out += "No site fits.\n";
  } else {
    Table table({"SITE", "TOTAL", "RECOMMENDED", "AFFINITY", "MADE OF"});
    for (const api::RankedSite& site : status.sites) {
      std::string parts;
      for (const api::SiteScore& score : site.scores) {
        parts += fmt::format("{}{} {}×{}", parts.empty() ? "" : " + ", score.name, score.normalized,
                             score.weight);
      }
      table.add({site.name, std::to_string(site.total), site.recommended ? "yes" : "",
                 site.affinity ? "yes" : "", parts});
    }
    out += table.text();
  }
  if (!status.excluded.empty()) {
    Table table({"EXCLUDED", "BY", "WHY"});
    for (const api::ExcludedSite& site : status.excluded) {
      table.add({site.name, site.plugin,
                 site.total_if_tolerated ? fmt::format("{} (its total would be {})", site.reason,
                                                       *site.total_if_tolerated)
                                         : site.reason});
    }
    out += "\n" + table.text();
  }
  if (explain && !status.sites.empty()) {
    Table table({"SITE", "SCORE", "RAW", "NORMALIZED", "WEIGHT", "WEIGHTED", "WHY"});
    for (const api::RankedSite& site : status.sites) {
      for (const api::SiteScore& score : site.scores) {
        table.add({site.name, score.name, std::to_string(score.raw),
                   std::to_string(score.normalized), std::to_string(score.weight),
                   std::to_string(score.weighted), score.message});
      }
    }
    if (!table.empty()) out += "\n" + table.text();
  }
  for (const std::string& note : status.notes) out += "\n" + note + ".\n";
  for (const api::CreatedMachine& machine : status.machines) {
    if (machine.phase == api::CreatePhase::Started) {
      out += fmt::format("\nMachine {} was started at {}.\n", machine.machine_id, machine.site);
    } else {
      out += fmt::format("\nThe machine at {} is not started{}{}.\n", machine.site,
                         machine.message.empty() ? "" : ": ", machine.message);
    }
  }
  return out;
}

void add_recommend_site(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<RecommendOptions>();
  auto format = std::make_shared<Format>(Format::table);
  CLI::App* verb = add_verb(
      app, "recommend-site", "Show which site is best for a workload, and why",
      "  kubectl kwatt recommend-site worked-case --explain\n"
      "  kubectl kwatt recommend-site --region A --weight X=10 --weight Y=100 --normalize None\n"
      "  kubectl kwatt recommend-site --cpu 2 --memory 4Gi --mbps 50 --weight cost=3:low\n");
  CLI::Option* name = verb->add_option(
      "NAME", options->name,
      "A SiteRecommendation, whose answer is shown; without it the other options are asked");
  verb->add_option("-n,--namespace", options->namespace_name,
                   "Namespace of the SiteRecommendation");
  verb->add_flag("-v,--explain", options->explain, "Show each score with its reason");
  const auto ask = [&](CLI::Option* option) { option->excludes(name); };
  ask(verb->add_option("--region", options->region, "Only sites of this region"));
  ask(verb->add_option("--isp", options->isp, "Only sites of this network provider"));
  ask(verb->add_option("--cpu", options->cpu, "CPU of one workload")->type_name("QUANTITY"));
  ask(verb->add_option("--memory", options->memory, "Memory of one workload")
          ->type_name("QUANTITY"));
  ask(verb->add_option("--gpus", options->gpus, "GPUs of one workload"));
  ask(verb->add_option("--ips", options->ips, "IP addresses of one workload"));
  ask(verb->add_option("--mbps", options->mbps,
                       "Bandwidth of one workload, in megabits per second"));
  ask(verb->add_option("--workloads", options->workloads, "How many such workloads"));
  ask(verb->add_option("--count", options->count, "How many sites to recommend"));
  ask(verb->add_option("--weight", options->weights,
                       "A scoring plugin or an indicator with its weight, :low behind it where "
                       "less is better; may be repeated")
          ->type_name("NAME=WEIGHT")
          ->expected(1)
          ->take_all());
  ask(verb->add_option("--affinity", options->affinity,
                       "A site that wins among equals; may be repeated")
          ->type_name("SITE")
          ->expected(1)
          ->take_all());
  ask(verb->add_option("--normalize", options->normalize, "How scores are made comparable")
          ->check(CLI::IsMember({"MinMax", "Sum", "None"}).description(""))
          ->type_name("MinMax|Sum|None"));
  add_format(*verb, *format);
  verb->callback([&chosen, options, format] {
    chosen.work = [options, format](Session& session) {
      return recommend(session, *options, *format);
    };
  });
}

}  // namespace kwatt::cli
