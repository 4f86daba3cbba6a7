#include "controller/job_queue_service.hpp"

#include <fstream>
#include <optional>
#include <sstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/log.hpp"
#include "controller/carbon_feed.hpp"
#include "telemetry/schedule_log.hpp"

namespace kwatt::controller {
namespace {

constexpr std::uintmax_t kLargestFile = 64 << 20;

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::io, path + ": cannot be opened");
  std::string text;
  char piece[64 * 1024];
  while (in.read(piece, sizeof piece) || in.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLargestFile) return fail(ErrorCode::io, path + ": is larger than 64 MiB");
  }
  if (in.bad()) return fail(ErrorCode::io, path + ": cannot be read");
  return text;
}

Result<std::vector<std::unique_ptr<telemetry::CarbonSource>>> sources_of(
    const boost::asio::any_io_executor& executor, const Options& options) {
  std::vector<std::unique_ptr<telemetry::CarbonSource>> out;
  const std::string& file = options.queue.carbon_sources_file;
  if (file.empty()) return out;
  auto text = read_file(file);
  if (!text) return text.error();
  auto configs = telemetry::parse_carbon_config(*text, file);
  if (!configs) return configs.error();
  telemetry::CarbonWorld world;
  world.allowed = options.endpoint_allow;
  world.read_file = read_file;
  for (const telemetry::CarbonSourceConfig& config : *configs) {
    auto source = telemetry::make_carbon_source(executor, config, world);
    if (!source) return source.error().with_context(file + ": " + config.name);
    out.push_back(std::move(*source));
  }
  return out;
}

}  // namespace

struct JobQueueService::Impl {
  Impl(std::vector<std::unique_ptr<telemetry::CarbonSource>> sources, const Options& options,
       JobQueueDependencies given)
      : use(std::move(given)),
        feed(std::move(sources), options.queue.carbon_interval, use.clock,
             [this] { queue.changed(); }),
        queue(
            use.client, use.view,
            [this](const api::CarbonSpec& carbon, const std::string& zone) {
              return feed.outlook(carbon, zone);
            },
            use.events, use.metrics, use.fence,
            [this](const reconcilers::QueueRelease& release) { released(release); }) {
    if (!options.queue.schedule_log.empty()) schedule.emplace(options.queue.schedule_log);
  }

  void released(const reconcilers::QueueRelease& release) {
    if (use.history != nullptr) {
      telemetry::DecisionRow row;
      row.at = release.at;
      row.node = release.node;
      row.policy = release.queue;
      row.action = "Release";
      row.reason = release.why;
      row.message = release.job + " (" + release.strategy + "): " + release.sentence;
      use.history->add(std::move(row));
    }
    if (!schedule) return;
    telemetry::ScheduleLine line{release.job, release.node, release.strategy, release.grams_per_kwh,
                                 release.at};
    if (auto written = schedule->add(line); !written) {
      log::warn("the schedule is not written", {{"error", written.error()}});
    }
  }

  JobQueueDependencies use;
  CarbonFeed feed;
  reconcilers::JobQueue queue;
  std::optional<telemetry::ScheduleLog> schedule;
};

JobQueueService::JobQueueService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JobQueueService::~JobQueueService() = default;

Result<std::unique_ptr<JobQueueService>> JobQueueService::make(
    const boost::asio::any_io_executor& executor, const Options& options,
    JobQueueDependencies dependencies) {
  auto sources = sources_of(executor, options);
  if (!sources) return sources.error();
  return std::unique_ptr<JobQueueService>(new JobQueueService(
      std::make_unique<Impl>(std::move(*sources), options, std::move(dependencies))));
}

std::vector<servers::Route> JobQueueService::routes(servers::TokenReviewer& tokens,
                                                    servers::AccessReviewer& access) {
  net::Handler handler =
      servers::queue_handler({.tokens = tokens,
                              .access = access,
                              .client = impl_->use.client,
                              .preview = [self = impl_.get()] { return self->queue.preview(); },
                              .dispatch = [self = impl_.get()] { return self->queue.pass(true); }});
  return {{servers::kJobPath, handler},
          {servers::kQueuePath, handler},
          {servers::kDispatchPath, handler}};
}

void JobQueueService::start(const boost::asio::any_io_executor& executor) {
  boost::asio::co_spawn(executor, impl_->feed.run(), boost::asio::detached);
}

void JobQueueService::lead(const boost::asio::any_io_executor& executor) {
  boost::asio::co_spawn(executor, impl_->queue.run(), boost::asio::detached);
}

void JobQueueService::stop() {
  impl_->queue.stop();
}

void JobQueueService::changed() {
  impl_->queue.changed();
}

telemetry::CarbonState JobQueueService::carbon_state(const api::CarbonSpec& carbon,
                                                     const std::vector<std::string>& zones) {
  return impl_->feed.state(carbon, zones);
}

// Who comes to the gate, and room that comes or goes. Readiness and conditions do not matter.
void JobQueueService::pod_changed(const kube::Delta<api::Pod>& delta) {
  const auto& now = delta.now;
  const auto& old = delta.old;
  const bool matters = !now || !old || now->node_name != old->node_name ||
                       now->terminal() != old->terminal() ||
                       now->deletion_timestamp != old->deletion_timestamp ||
                       (now->spec->scheduling_gated && now->annotations != old->annotations) ||
                       now->spec->scheduling_gated != old->spec->scheduling_gated;
  if (matters) impl_->queue.changed();
}

}  // namespace kwatt::controller
