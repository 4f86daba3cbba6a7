#pragma once
// Who predicts what a machine will draw: model servers that somebody else runs, WAO's fake, or
// kwatt's own model. Asked ahead of time and in batches, never while a scheduler waits.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/units.hpp"
#include "net/allow_list.hpp"
#include "net/client.hpp"

namespace kwatt::telemetry {

// One state of one machine, about which the question is: how much would it draw?
struct PredictionPoint {
  Millicores used;                        // CPU time in use now, of all logical processors
  Millicores extra;                       // and what would come on top; the sum is predicted
  std::int64_t logical_processors = 0;    // > 0
  std::optional<double> ambient_celsius;  // inlet
  std::optional<double> cpu1_celsius, cpu2_celsius;
  std::optional<double> static_pressure_pascal;  // difference between front and back
  // The range of each temperature (WAO's node labels); where one is given, the model gets
  // (celsius − lowest) ÷ (highest − lowest) in place of degrees.
  struct Range {
    double lowest_celsius = 0, highest_celsius = 0;  // lowest < highest
  };
  std::optional<Range> ambient_range, cpu1_range, cpu2_range;

  // (used + extra) ÷ all processors: 0…1, as WAO's models want it. Over 1 where more was asked for
  // than there is.
  double cpu_usage() const;
};

// Used from one strand; several batches may be under way at once.
class Predictor {
 public:
  virtual ~Predictor() = default;
  // For sentences and as a key: "TFServing http://10.0.0.9:8501/v1/models/konohana".
  virtual const std::string& name() const = 0;
  // One answer for each point, in their order; no points: no question. Bounded in time and size.
  // Errors say which predictor, which model and what came back: invalid_argument (a point lacks an
  // input that the model wants, or the server refused the request), not_found (no such model),
  // forbidden (not on the allow-list, TLS), timeout, unavailable, parse (not such an answer, or
  // another number of values), out_of_range (NaN, negative, or more than any machine draws),
  // unsupported (a model with other inputs).
  virtual net::Task<Result<std::vector<Milliwatts>>> predict(
      std::vector<PredictionPoint> points) = 0;
};

// Of those that go over the network. They send no credentials, whatever the address says.
struct PredictorSettings {
  net::AllowList allowed = {};  // option --endpoint-allow; checked by name, and again by address
  Duration timeout = std::chrono::seconds{5};  // of one batch
  net::Client::TlsSource tls = {};             // empty: the system's roots
};

// TensorFlow Serving's REST API as WAO-Scheduler's model server offers it: CPU usage, ambient, CPU1
// and CPU2 temperature, in this order, all 0…1. `endpoint`: http[s]://HOST[:8501]/v1/models/MODEL,
// perhaps with /versions/N, perhaps with :predict. `signature`: "" is the server's default one.
// Errors: invalid_argument (not such a URL), forbidden (not on the allow-list), with the option
// that would allow it.
Result<std::unique_ptr<Predictor>> make_tf_serving(boost::asio::any_io_executor executor,
                                                   const std::string& endpoint,
                                                   std::string signature,
                                                   PredictorSettings settings);

// MLServer and others that speak the Open Inference (KServe V2) protocol, as WAO-Estimator uses it.
// `endpoint`: http[s]://HOST[:PORT]/v2/models/MODEL/versions/VERSION, perhaps with /infer; without
// a version the server's own choice. The model's metadata is asked first (and again after a
// failure), and decides what is sent: CPUUsage, LogicalProcessors, AmbientTemp, StaticPressureDiff
// as tensors of their own in its order; or, for a model that names none of them, one tensor of
// usage, ambient temperature and pressure difference, as WAO-Estimator sends it.
// Errors: as above.
Result<std::unique_ptr<Predictor>> make_mlserver(boost::asio::any_io_executor executor,
                                                 const std::string& endpoint,
                                                 PredictorSettings settings);

// WAO-Estimator's fake: base + extra CPU × watts per core. It looks at nothing else.
struct FakePower {
  Milliwatts base, per_core;
};
std::unique_ptr<Predictor> make_fake_predictor(FakePower power);

// A model in this process. `power` is called once for each point, and outlives nothing: it owns
// what it needs.
using LocalPower = std::function<Result<Milliwatts>(const PredictionPoint& point)>;
std::unique_ptr<Predictor> make_local_predictor(std::string name, LocalPower power);

}  // namespace kwatt::telemetry
