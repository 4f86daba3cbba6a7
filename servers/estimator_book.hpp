#pragma once
// What the estimator server answers from: the newest machines of each Estimator, and the answers
// already made from them.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "net/run.hpp"
#include "placement/estimator_nodes.hpp"

namespace kwatt::servers {

inline constexpr std::int64_t kMaxCpuMilli = 1'000'000'000;  // a million CPUs
inline constexpr std::int64_t kMaxWorkloads = 10'000;

// One question to one Estimator.
struct EstimateQuestion {
  std::int64_t cpu_milli = 0;      // 0 … kMaxCpuMilli
  std::int64_t num_workloads = 0;  // 1 … kMaxWorkloads
  auto operator<=>(const EstimateQuestion&) const = default;
};

// Single-threaded, but the estimates themselves are made on a thread of its own, one at a time, so
// that whatever is asked, other answers do not wait.
class EstimatorBook {
 public:
  EstimatorBook() = default;
  ~EstimatorBook();
  EstimatorBook(const EstimatorBook&) = delete;
  EstimatorBook& operator=(const EstimatorBook&) = delete;

  // Ends the thread; who waits for an estimate waits on, so their coroutines are ended next.
  void stop();

  // `key`: "namespace/name". The answers made before are forgotten, unless nothing changed.
  void publish(const std::string& key, placement::EstimatorNodes nodes);
  void remove(const std::string& key);
  bool knows(std::string_view key) const { return pages_.contains(key); }

  // The whole body of the answer, if it was given before. Valid until the next call of anything.
  const std::string* known_answer(std::string_view key, const EstimateQuestion& question) const;

  // The same, made if need be. `key` must be known. A page that changes meanwhile does not matter:
  // the answer is of the machines as they were when the question came.
  // Errors: not_found (no machines at all), unavailable (too many estimates are waiting).
  net::Task<Result<std::string>> answer(std::string key, EstimateQuestion question);

 private:
  struct Page {
    std::shared_ptr<const placement::EstimatorNodes> nodes;
    // By cpu_milli: for 1 … as many workloads as were ever asked for. The first n of a longer one
    // are those of n workloads.
    std::map<std::int64_t, std::shared_ptr<const std::vector<double>>> increases;
    struct Hash {
      std::size_t operator()(const EstimateQuestion& question) const {
        return std::hash<std::int64_t>{}(question.cpu_milli * 16'381 + question.num_workloads);
      }
    };
    std::unordered_map<EstimateQuestion, std::string, Hash> bodies;
    std::size_t bodies_bytes = 0;
  };
  static void keep(Page& page, const EstimateQuestion& question, std::string body);

  std::map<std::string, std::shared_ptr<Page>, std::less<>> pages_;
  boost::asio::thread_pool estimating_{1};
  // Every estimate that is waited for holds a copy.
  std::shared_ptr<const bool> waiting_ = std::make_shared<const bool>(true);
};

// {"cpu_milli":500,"num_workloads":5,"watt_increases":[5,9,13,15,16]} and a newline, as Go's
// encoding/json writes it: numbers in their shortest form, with an exponent below 1e-6 and from
// 1e21 on; what is not finite as the largest double.
std::string estimate_json(const EstimateQuestion& question, const std::vector<double>& increases);
std::string go_json_number(double value);

}  // namespace kwatt::servers
