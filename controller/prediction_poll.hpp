#pragma once
// Asks predictors, ahead of time, what every node would draw with more work, and keeps the answers.
// Nobody who needs one waits for it: table() only looks up. Served model > learned model > the
// specified curve > the default curve; what fails is said (log, metric, WattsTable::note).
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "models/watts_table.hpp"
#include "net/run.hpp"
#include "telemetry/environment.hpp"
#include "telemetry/predictor_choice.hpp"

namespace kwatt::controller {

// What is known of a node at the moment of asking.
struct PredictionSubject {
  std::shared_ptr<const api::Node> node;                // never null
  std::optional<models::MachineState> state;            // nullopt: its load is not known
  std::shared_ptr<const models::LearnedPower> learned;  // null: too little has been measured
  bool specified = false;                               // NodePower.spec.model has a curve
};

struct PredictionOptions {
  Duration interval = std::chrono::seconds{30};
  telemetry::PredictorSettings predictors = {};
};

// Single-threaded, on the controller's strand; what is passed in outlives it.
class PredictionPoll {
 public:
  using Names = std::function<std::vector<std::string>()>;
  // nullopt: there is no such node any more.
  using Subject = std::function<std::optional<PredictionSubject>(const std::string& node)>;
  PredictionPoll(boost::asio::any_io_executor executor, PredictionOptions options, Names names,
                 Subject subject, const Clock& clock, Metrics& metrics);

  // Temperatures and pressures come from here; without it none is known.
  void use(std::unique_ptr<telemetry::EnvironmentSource> source,
           std::function<std::shared_ptr<const telemetry::NodeDirectory>()> directory);

  void start();
  // One round: environment, then all predictors at the same time, each in batches.
  net::Task<void> poll_once();

  // nullptr: not asked yet, or no such node. Never older than three intervals.
  std::shared_ptr<const models::WattsTable> table(std::string_view node) const;
  const telemetry::EnvironmentStore& environment() const { return environment_; }
  // "TFServing http://…: timeout …", sorted, at most one for each predictor and 20 for labels.
  std::vector<std::string> problems() const;

 private:
  struct Question;
  struct Round;

  static Question question_of(const PredictionSubject& subject,
                              const telemetry::PredictionPoint& base);
  net::Task<void> run();
  net::Task<void> fetch_environment(TimePoint now);
  net::Task<void> ask(telemetry::PredictorChoice choice, std::vector<Question> questions,
                      std::shared_ptr<Round> round);
  // What went wrong, or "".
  net::Task<std::string> ask_batch(telemetry::Predictor& predictor, std::vector<Question> batch,
                                   std::shared_ptr<Round> round);
  void settle(const PredictionSubject& subject, const std::string& why_not_served, TimePoint now);
  void note_problem(const std::string& who, std::string problem);

  boost::asio::any_io_executor executor_;
  PredictionOptions options_;
  Names names_;
  Subject subject_;
  const Clock& clock_;
  Metrics& metrics_;
  std::unique_ptr<telemetry::EnvironmentSource> source_;
  std::function<std::shared_ptr<const telemetry::NodeDirectory>()> directory_;
  telemetry::EnvironmentStore environment_;
  std::map<telemetry::PredictorChoice, std::unique_ptr<telemetry::Predictor>> predictors_;
  std::map<std::string, std::shared_ptr<const models::WattsTable>, std::less<>> tables_;
  std::map<std::string, std::string> problems_;  // by predictor, or "node NAME"
};

}  // namespace kwatt::controller
