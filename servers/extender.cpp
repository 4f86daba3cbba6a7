#include "servers/extender.hpp"

#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "servers/extender_advice.hpp"

namespace kwatt::servers {
namespace {

// Of these the log says what they got and why: at level info the best and the next, at debug more.
constexpr std::size_t kShownAtInfo = 2, kShownAtDebug = 10;
// Lines at level info in one second; a scheduler under load asks hundreds of times.
constexpr int kLinesPerSecond = 10;

const std::vector<double>& duration_buckets() {
  static const std::vector<double> buckets = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                              0.01,   0.025,   0.05,   0.1,   0.25,   1};
  return buckets;
}

net::Response text_answer(int status, std::string sentence) {
  return net::Response{
      status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(sentence) + "\n"};
}

// No newline behind it: kube-scheduler reads one JSON value, and keeps the connection only if that
// is all there is.
net::Response json_answer(std::string body) {
  return net::Response{200, {{"Content-Type", "application/json"}}, std::move(body)};
}

enum class Verb { filter, prioritize, bind };

std::optional<Verb> verb_of(std::string_view path) {
  constexpr std::string_view kPrefix = "/scheduler";
  if (path.starts_with(kPrefix)) path.remove_prefix(kPrefix.size());
  if (path == "/filter") return Verb::filter;
  if (path == "/prioritize") return Verb::prioritize;
  if (path == "/bind") return Verb::bind;
  return std::nullopt;
}

std::string_view word(Verb verb) {
  switch (verb) {
    case Verb::filter:
      return "filter";
    case Verb::prioritize:
      return "prioritize";
    case Verb::bind:
      break;
  }
  return "bind";
}

class Extender {
 public:
  explicit Extender(ExtenderDependencies dependencies) : self_(std::move(dependencies)) {}

  // `result` is a word for the metric.
  net::Response filter(std::string& body, std::string_view& result);
  net::Response prioritize(std::string& body, std::string_view& result);
  ExtenderDependencies& dependencies() { return self_; }
  void count(Verb verb, std::string_view result, MonotonicPoint started);

 private:
  void no_opinion(std::string_view verb, std::string_view reason);
  void count_unknown(const ExtenderArgs& args, const Offer& offer);
  void tell(const ExtenderArgs& args, const Offer& offer, const FilterAdvice& advice);
  void tell(const ExtenderArgs& args, const Offer& offer, const PriorityAdvice& advice);
  bool may_write_line();

  ExtenderDependencies self_;
  MonotonicPoint second_began_{};
  int lines_ = 0, unwritten_ = 0;
};

void Extender::no_opinion(std::string_view verb, std::string_view reason) {
  self_.metrics.add("kwatt_extender_no_opinion_total",
                    "Answers without advice: every node passes, every score is 0.",
                    {{"verb", std::string(verb)}, {"reason", std::string(reason)}});
}

void Extender::count(Verb verb, std::string_view result, MonotonicPoint started) {
  const std::string name(word(verb));
  self_.metrics.add("kwatt_extender_requests_total", "Requests of kube-scheduler, by result.",
                    {{"verb", name}, {"result", std::string(result)}});
  const auto took = std::chrono::duration<double>(self_.clock.monotonic() - started).count();
  self_.metrics.observe("kwatt_extender_duration_seconds",
                        "Time from a whole request to its answer.", {{"verb", name}}, took,
                        duration_buckets());
}

void Extender::count_unknown(const ExtenderArgs& args, const Offer& offer) {
  if (offer.unknown.empty()) return;
  self_.metrics.add("kwatt_extender_unknown_nodes_total",
                    "Nodes that kube-scheduler offered and the caches do not have.", {},
                    static_cast<double>(offer.unknown.size()));
  log::debug("nodes are not known: they pass, with score 0",
             {{"pod", args.pod.key()},
              {"nodes", offer.unknown.size()},
              {"first", args.nodes[offer.unknown.front()].name}});
}

net::Response Extender::filter(std::string& body, std::string_view& result) {
  auto args = read_extender_args(body);
  if (args && args->nodes.empty()) {
    args =
        fail(ErrorCode::invalid_argument, "no nodes are offered: there is nothing to choose from");
  }
  if (!args) {
    result = "malformed";
    log::warn("a filter request is not understood", {{"error", args.error()}});
    return json_answer(write_filter_error("kwatt extender: " + args.error().message));
  }
  std::vector<std::size_t> all(args->nodes.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto table = self_.table();
  if (table == nullptr) {
    result = "no_opinion";
    no_opinion("filter", "not_ready");
    return json_answer(write_filter_result(*args, all, {}, std::move(body)));
  }
  const Offer offer = look_up(*args, *table);
  count_unknown(*args, offer);
  auto advice = advise_filter(*self_.framework, placement::pod_info_of(args->pod), *args, offer);
  if (!advice) {
    result = "no_opinion";
    no_opinion("filter", "failed");
    log::error("filter failed: every node passes",
               {{"pod", args->pod.key()}, {"error", advice.error()}});
    return json_answer(write_filter_result(*args, all, {}, std::move(body)));
  }
  if (advice->overruled) no_opinion("filter", "none_left");
  result = advice->overruled ? "no_opinion" : "ok";
  tell(*args, offer, *advice);
  return json_answer(write_filter_result(*args, advice->passed, advice->excluded, std::move(body)));
}

net::Response Extender::prioritize(std::string& body, std::string_view& result) {
  auto args = read_extender_args(body);
  if (args && args->nodes.empty()) {
    args =
        fail(ErrorCode::invalid_argument, "no nodes are offered: there is nothing to choose from");
  }
  if (!args) {
    result = "malformed";
    log::warn("a prioritize request is not understood", {{"error", args.error()}});
    return text_answer(400, args.error().message);
  }
  const auto zeros = [&] {
    return json_answer(write_priorities(*args, std::vector<std::int64_t>(args->nodes.size())));
  };
  const auto table = self_.table();
  if (table == nullptr) {
    result = "no_opinion";
    no_opinion("prioritize", "not_ready");
    return zeros();
  }
  const Offer offer = look_up(*args, *table);
  count_unknown(*args, offer);
  auto advice =
      advise_priorities(*self_.framework, placement::pod_info_of(args->pod), *args, offer);
  if (!advice) {
    result = "no_opinion";
    no_opinion("prioritize", "failed");
    log::error("prioritize failed: every node gets 0",
               {{"pod", args->pod.key()}, {"error", advice.error()}});
    return zeros();
  }
  result = "ok";
  tell(*args, offer, *advice);
  return json_answer(write_priorities(*args, advice->scores));
}

bool Extender::may_write_line() {
  const MonotonicPoint now = self_.clock.monotonic();
  if (now - second_began_ >= std::chrono::seconds{1}) {
    if (unwritten_ > 0) {
      log::info("more pods were ranked than are written down; level debug has all",
                {{"pods", unwritten_}});
    }
    second_began_ = now;
    lines_ = unwritten_ = 0;
  }
  if (lines_ >= kLinesPerSecond) {
    ++unwritten_;
    return false;
  }
  ++lines_;
  return true;
}

void Extender::tell(const ExtenderArgs& args, const Offer& offer, const FilterAdvice& advice) {
  if (advice.overruled) {
    log::info("all offered nodes would be left out: none is",
              {{"pod", args.pod.key()}, {"nodes", offer.known.size()}});
  }
  if (!log::enabled(log::Level::debug)) return;
  log::debug(
      "filtered",
      {{"pod", args.pod.key()}, {"offered", args.nodes.size()}, {"passed", advice.passed.size()}});
  std::size_t shown = 0;
  for (const placement::Excluded& one : advice.excluded) {
    if (++shown > kShownAtDebug) break;
    log::debug("left out", {{"pod", args.pod.key()},
                            {"node", args.nodes[one.target].name},
                            {"plugin", one.plugin},
                            {"reason", one.reason}});
  }
}

void Extender::tell(const ExtenderArgs& args, const Offer& offer, const PriorityAdvice& advice) {
  const bool debug = log::enabled(log::Level::debug);
  if (!debug && !may_write_line()) return;
  const auto order = best_first(advice, offer, debug ? kShownAtDebug : kShownAtInfo);
  std::string why;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const std::size_t at = order[rank];
    const auto score = advice.scores[offer.position[at]];
    if (rank < kShownAtInfo) {
      fmt::format_to(std::back_inserter(why), "{}{}: score {}, total {} = {}",
                     why.empty() ? "" : "; ", offer.known[at]->name, score,
                     advice.details.totals[at], explain_total(advice.details, at));
    }
    if (!debug) continue;
    log::debug("scored", {{"pod", args.pod.key()},
                          {"node", offer.known[at]->name},
                          {"score", score},
                          {"total", advice.details.totals[at]},
                          {"why", explain_total(advice.details, at)}});
  }
  log::info("ranked", {{"pod", args.pod.key()}, {"nodes", args.nodes.size()}, {"best", why}});
}

// Binding waits, so it is a coroutine of its own; the request outlives it in the frame.
net::Task<net::Response> bind(std::shared_ptr<Extender> extender, net::Request request) {
  ExtenderDependencies& self = extender->dependencies();
  const MonotonicPoint started = self.clock.monotonic();
  if (!self.bind) {
    extender->count(Verb::bind, "disabled", started);
    co_return json_answer(write_binding_result(
        "kwatt extender: bind is not enabled; take bindVerb out of the scheduler's configuration, "
        "or start kwatt-controller with --extender-bind"));
  }
  auto args = read_binding_args(request.body);
  if (!args) {
    extender->count(Verb::bind, "malformed", started);
    log::warn("a bind request is not understood", {{"error", args.error()}});
    co_return json_answer(write_binding_result("kwatt extender: " + args.error().message));
  }
  const std::string pod = args->namespace_name + "/" + args->pod_name;
  const std::string node = args->node;
  const auto bound = co_await self.bind(std::move(*args));
  extender->count(Verb::bind, bound ? "ok" : "failed", started);
  if (!bound) {
    log::warn("pod not bound", {{"pod", pod}, {"node", node}, {"error", bound.error()}});
    co_return json_answer(write_binding_result("kwatt extender: " + bound.error().text()));
  }
  log::info("pod bound", {{"pod", pod}, {"node", node}});
  co_return json_answer(write_binding_result(""));
}

net::Task<net::Response> handle(std::shared_ptr<Extender> extender, net::Request request) {
  const auto verb = verb_of(std::string_view(request.target).substr(0, request.target.find('?')));
  if (!verb) co_return text_answer(404, "here are POST /scheduler/filter /prioritize /bind");
  if (request.method != "POST") co_return text_answer(405, "only POST");
  if (*verb == Verb::bind) co_return co_await bind(std::move(extender), std::move(request));
  const MonotonicPoint started = extender->dependencies().clock.monotonic();
  std::string_view result;
  net::Response response = *verb == Verb::filter ? extender->filter(request.body, result)
                                                 : extender->prioritize(request.body, result);
  extender->count(*verb, result, started);
  co_return response;
}

}  // namespace

net::Handler extender_handler(ExtenderDependencies dependencies) {
  auto extender = std::make_shared<Extender>(std::move(dependencies));
  return [extender](net::Request request) { return handle(extender, std::move(request)); };
}

}  // namespace kwatt::servers
