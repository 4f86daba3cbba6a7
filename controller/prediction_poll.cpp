#include "controller/prediction_poll.hpp"

#include <algorithm>
#include <exception>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/log.hpp"

namespace kwatt::controller {
namespace {

using models::WattsBasis;
using models::WattsTable;
using telemetry::PredictionPoint;
using telemetry::PredictorChoice;

constexpr std::size_t kMostPoints = 512;  // in one batch
constexpr std::size_t kNodesAtOnce = 2;
constexpr std::size_t kMostNodeProblems = 20;
constexpr std::size_t kLongestProblem = 300;
constexpr int kIntervalsBelieved = 3;
constexpr std::string_view kNodePrefix = "node ";

std::string bounded(std::string text) {
  if (text.size() <= kLongestProblem) return text;
  // Not within a character: this may end in a status, which is UTF-8.
  std::size_t end = kLongestProblem;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::optional<double> celsius(const std::optional<Millicelsius>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(value->count()) / 1000;
}

Result<std::unique_ptr<telemetry::Predictor>> make(const boost::asio::any_io_executor& executor,
                                                   const PredictorChoice& choice,
                                                   const telemetry::PredictorSettings& settings) {
  if (choice.kind == PredictorChoice::Kind::mlserver) {
    return telemetry::make_mlserver(executor, choice.url, settings);
  }
  return telemetry::make_tf_serving(executor, choice.url, choice.signature, settings);
}

// CPU work now, in millicores of what the node offers.
Millicores used(const PredictionSubject& subject) {
  return Millicores{subject.node->allocatable.cpu.count() * subject.state->busy.count() / 1000};
}

// What all points of a node have in common. Errors: a label that says nothing.
Result<PredictionPoint> base_point(const PredictionSubject& subject,
                                   const telemetry::Environment* environment) {
  PredictionPoint point;
  point.used = used(subject);
  // What is reserved for the system is part of a core, mostly.
  point.logical_processors = (subject.node->allocatable.cpu.count() + 999) / 1000;
  if (environment != nullptr) {
    point.ambient_celsius = celsius(environment->ambient);
    point.cpu1_celsius = celsius(environment->cpu1);
    point.cpu2_celsius = celsius(environment->cpu2);
    point.static_pressure_pascal = environment->static_pressure_pascal;
  }
  for (const auto& [what, range] : {std::pair{"ambient", &point.ambient_range},
                                    {"cpu1", &point.cpu1_range},
                                    {"cpu2", &point.cpu2_range}}) {
    auto given = telemetry::temperature_range(subject.node->meta, what);
    if (!given) return given.error();
    *range = *given;
  }
  return point;
}

// A round over thousands of nodes must not keep a scheduler's request waiting.
net::Task<void> breathe(std::size_t done) {
  if (done % kNodesAtOnce != 0) co_return;
  co_await boost::asio::post(co_await boost::asio::this_coro::executor, boost::asio::use_awaitable);
}

}  // namespace

// What is asked about one node.
struct PredictionPoll::Question {
  std::string node;
  std::vector<Millicores> steps;
  std::vector<PredictionPoint> points;  // one for each step
};

PredictionPoll::Question PredictionPoll::question_of(const PredictionSubject& subject,
                                                     const PredictionPoint& base) {
  Question question;
  question.node = subject.node->meta.name;
  question.steps = models::extra_steps(base.used, subject.node->allocatable.cpu);
  for (const Millicores extra : question.steps) {
    PredictionPoint point = base;
    point.extra = extra;
    question.points.push_back(point);
  }
  return question;
}

// What the coroutines of one round share.
struct PredictionPoll::Round {
  TimePoint at;
  std::size_t running = 0;
  net::Signal ended;
  std::map<std::string, std::string> failed;  // by node: why there is no served prediction
};

PredictionPoll::PredictionPoll(boost::asio::any_io_executor executor, PredictionOptions options,
                               Names names, Subject subject, const Clock& clock, Metrics& metrics)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      names_(std::move(names)),
      subject_(std::move(subject)),
      clock_(clock),
      metrics_(metrics) {}

void PredictionPoll::use(
    std::unique_ptr<telemetry::EnvironmentSource> source,
    std::function<std::shared_ptr<const telemetry::NodeDirectory>()> directory) {
  source_ = std::move(source);
  directory_ = std::move(directory);
}

void PredictionPoll::start() {
  boost::asio::co_spawn(executor_, run(), boost::asio::detached);
}

net::Task<void> PredictionPoll::run() {
  for (;;) {
    const MonotonicPoint started = clock_.monotonic();
    try {
      co_await poll_once();
    } catch (const std::exception& error) {
      log::error("a round of power predictions failed", {{"error", error.what()}});
    }
    const auto took = std::chrono::ceil<Duration>(clock_.monotonic() - started);
    co_await net::sleep(std::max<Duration>(options_.interval - took, options_.interval / 4));
  }
}

net::Task<void> PredictionPoll::fetch_environment(TimePoint now) {
  if (source_ == nullptr) co_return;
  auto fetched = co_await source_->fetch(directory_(), now);
  const std::string result = fetched ? "ok" : std::string(to_string(fetched.error().code));
  metrics_.add("kwatt_environment_fetches_total",
               "Questions to Prometheus for temperatures and pressures, by result.",
               {{"result", result}});
  if (!fetched) {
    note_problem("temperatures", fetched.error().text());
    co_return;
  }
  std::size_t faulty = 0;
  for (const auto& [why, count] : fetched->rejected) {
    if (why != telemetry::Rejection::unknown_node) faulty += count;
  }
  note_problem("temperatures", faulty == 0 ? ""
                                           : fmt::format("{} readings not taken, for example: {}",
                                                         faulty, fetched->example));
  environment_.take(*fetched);
}

net::Task<void> PredictionPoll::poll_once() {
  co_await fetch_environment(clock_.now());
  const TimePoint now = clock_.now();
  auto round = std::make_shared<Round>();
  round->at = now;
  std::vector<PredictionSubject> subjects;
  std::map<PredictorChoice, std::vector<Question>> questions;
  std::set<std::string> standing;  // problems of nodes
  for (const std::string& name : names_()) {
    co_await breathe(subjects.size());
    auto subject = subject_(name);
    if (!subject) continue;
    std::string problem;
    auto choice = telemetry::predictor_choice(subject->node->meta);
    if (!choice) {
      problem = choice.error().message;
    } else if (*choice && !subject->state) {
      round->failed[name] = "its load is not known";
    } else if (*choice) {
      auto base = base_point(*subject, environment_.find(name, now));
      if (base) {
        questions[**choice].push_back(question_of(*subject, *base));
      } else {
        problem = base.error().message;
      }
    }
    subjects.push_back(std::move(*subject));
    if (problem.empty()) continue;
    round->failed[name] = problem;
    const std::string who = std::string(kNodePrefix) + name;
    if (standing.size() < kMostNodeProblems) {
      standing.insert(who);
      note_problem(who, problem);
    }
  }
  std::set<std::string> wanted;
  for (auto& [choice, asked] : questions) {
    ++round->running;
    boost::asio::co_spawn(executor_, ask(choice, std::move(asked), round), boost::asio::detached);
  }
  while (round->running > 0) co_await round->ended.wait_for(std::chrono::hours{1});
  std::erase_if(predictors_, [&](const auto& entry) { return !questions.contains(entry.first); });
  for (const auto& [choice, predictor] : predictors_) wanted.insert(predictor->name());
  for (auto& [who, problem] : problems_) {
    const bool of_node = who.starts_with(kNodePrefix);
    const bool gone = of_node ? !standing.contains(who)
                              : who != "temperatures" && !wanted.contains(who) &&
                                    std::none_of(questions.begin(), questions.end(),
                                                 [&, &key = who](const auto& entry) {
                                                   return entry.first.url == key;
                                                 });
    if (gone) problem.clear();
  }
  std::erase_if(problems_, [](const auto& entry) { return entry.second.empty(); });

  std::map<WattsBasis, int> counted;
  std::set<std::string, std::less<>> there;
  for (const PredictionSubject& subject : subjects) {
    const std::string& name = subject.node->meta.name;
    there.insert(name);
    const auto failed = round->failed.find(name);
    co_await breathe(there.size());
    settle(subject, failed == round->failed.end() ? "" : failed->second, now);
    ++counted[tables_[name]->basis];
  }
  std::erase_if(tables_, [&](const auto& entry) { return !there.contains(entry.first); });
  for (const WattsBasis basis : {WattsBasis::served, WattsBasis::learned, WattsBasis::specified,
                                 WattsBasis::default_curve}) {
    metrics_.set("kwatt_prediction_nodes", "Nodes by what predicts their power.",
                 {{"basis", std::string(to_string(basis))}}, counted[basis]);
  }
}

// `round` ends with the last of these, whatever happens in it.
net::Task<void> PredictionPoll::ask(PredictorChoice choice, std::vector<Question> questions,
                                    std::shared_ptr<Round> round) {
  const auto fail_all = [&](const std::string& why) {
    for (const Question& question : questions) round->failed[question.node] = why;
  };
  try {
    auto found = predictors_.find(choice);
    if (found == predictors_.end()) {
      auto made = make(executor_, choice, options_.predictors);
      if (made) {
        found = predictors_.emplace(choice, std::move(*made)).first;
      } else {
        note_problem(choice.url, made.error().text());
        fail_all(made.error().message);
      }
    }
    if (found != predictors_.end()) {
      telemetry::Predictor& predictor = *found->second;
      std::vector<Question> batch;
      std::size_t points = 0;
      std::string problem;
      const auto first = [&](std::string sentence) {
        if (problem.empty()) problem = std::move(sentence);
      };
      for (Question& question : questions) {
        if (std::string what = predictor.lacks(question.points.front()); !what.empty()) {
          round->failed[question.node] = fmt::format("{}: {}", predictor.name(), what);
          first(fmt::format("for {} {}", question.node, what));
          continue;
        }
        if (points + question.points.size() > kMostPoints) {
          first(co_await ask_batch(predictor, std::move(batch), round));
          batch.clear();
          points = 0;
        }
        points += question.points.size();
        batch.push_back(std::move(question));
      }
      if (!batch.empty()) first(co_await ask_batch(predictor, std::move(batch), round));
      note_problem(predictor.name(), problem);
    }
  } catch (const std::exception& error) {
    fail_all(error.what());
  }
  if (--round->running == 0) round->ended.notify_all();
}

net::Task<std::string> PredictionPoll::ask_batch(telemetry::Predictor& predictor,
                                                 std::vector<Question> batch,
                                                 std::shared_ptr<Round> round) {
  std::vector<PredictionPoint> points;
  for (const Question& question : batch) {
    points.insert(points.end(), question.points.begin(), question.points.end());
  }
  const std::size_t asked = points.size();
  auto watts = co_await predictor.predict(std::move(points));
  metrics_.add("kwatt_predictions_total", "Predictions asked of model servers, by result.",
               {{"predictor", predictor.name()},
                {"result", watts ? "ok" : std::string(to_string(watts.error().code))}},
               static_cast<double>(asked));
  if (!watts) {
    const std::string problem = watts.error().text();
    for (const Question& question : batch) round->failed[question.node] = problem;
    co_return problem;
  }
  auto next = watts->begin();
  for (const Question& question : batch) {
    auto table = std::make_shared<WattsTable>();
    table->basis = WattsBasis::served;
    table->by = predictor.name();
    table->at = round->at;
    for (const Millicores extra : question.steps) table->at_extra.emplace_back(extra, *next++);
    table->at_extra = models::never_falling(std::move(table->at_extra));
    tables_[question.node] = std::move(table);
  }
  co_return std::string();
}

// Gives every node the best table there is now.
void PredictionPoll::settle(const PredictionSubject& subject, const std::string& why_not_served,
                            TimePoint now) {
  auto& kept = tables_[subject.node->meta.name];
  if (kept != nullptr && kept->basis == WattsBasis::served) {
    if (kept->at == now) return;
    // One failure is no reason to let go of what was true a moment ago.
    if (!why_not_served.empty() && now - kept->at <= options_.interval * kIntervalsBelieved) {
      auto old = std::make_shared<WattsTable>(*kept);
      old->note = bounded(fmt::format("asked in vain since: {}", why_not_served));
      kept = std::move(old);
      return;
    }
  }
  auto table = std::make_shared<WattsTable>();
  table->at = now;
  table->note = bounded(why_not_served);
  if (subject.learned != nullptr && subject.state) {
    const Millicores all = subject.node->allocatable.cpu;
    auto points = models::learned_points(*subject.learned, *subject.state, all,
                                         models::extra_steps(used(subject), all));
    if (points.size() >= 2) {
      table->basis = WattsBasis::learned;
      table->at_extra = std::move(points);
      table->error_permille = subject.learned->error_permille();
      table->by = fmt::format("learned from its own meter, expected error {}.{} %",
                              table->error_permille / 10, table->error_permille % 10);
    }
  }
  if (table->at_extra.empty()) {
    table->basis = subject.specified ? WattsBasis::specified : WattsBasis::default_curve;
    table->by = subject.specified ? "the curve in its NodePower" : "the curve of a usual server";
  }
  kept = std::move(table);
}

void PredictionPoll::note_problem(const std::string& who, std::string problem) {
  problem = bounded(std::move(problem));
  std::string& standing = problems_[who];
  if (problem == standing) return;
  if (!problem.empty()) {
    log::warn("power prediction", {{"predictor", who}, {"problem", problem}});
  } else {
    log::info("power prediction is well again", {{"predictor", who}});
  }
  standing = std::move(problem);
}

std::shared_ptr<const WattsTable> PredictionPoll::table(std::string_view node) const {
  const auto found = tables_.find(node);
  return found == tables_.end() ? nullptr : found->second;
}

std::vector<std::string> PredictionPoll::problems() const {
  std::vector<std::string> out;
  for (const auto& [who, problem] : problems_) {
    if (problem.empty()) continue;
    out.push_back(problem.starts_with(who) ? problem : fmt::format("{}: {}", who, problem));
  }
  return out;
}

}  // namespace kwatt::controller
