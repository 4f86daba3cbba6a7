#include "servers/estimator_book.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace kwatt::servers {
namespace {

namespace asio = boost::asio;

// Computed at least for so many, so that the next question about a few more is answered at once.
constexpr std::size_t kAhead = 100;
// Of one Estimator. Beyond it the answers are forgotten and made anew.
constexpr std::size_t kKeptCurves = 256;
constexpr std::size_t kKeptBodiesBytes = std::size_t{8} << 20;
constexpr std::size_t kMaxWaiting = 64;

using Curve = std::shared_ptr<const std::vector<double>>;

// Runs on the thread for estimates; owns what it looks at.
net::Task<Curve> estimate(std::shared_ptr<const placement::EstimatorNodes> nodes, Millicores each,
                          std::size_t workloads) {
  co_return std::make_shared<const std::vector<double>>(
      placement::least_watts(*nodes, each, workloads));
}

}  // namespace

EstimatorBook::~EstimatorBook() {
  stop();
}

void EstimatorBook::stop() {
  estimating_.stop();
  estimating_.join();
}

void EstimatorBook::publish(const std::string& key, placement::EstimatorNodes nodes) {
  std::shared_ptr<Page>& page = pages_[key];
  if (page != nullptr && *page->nodes == nodes) return;
  page = std::make_shared<Page>();
  page->nodes = std::make_shared<const placement::EstimatorNodes>(std::move(nodes));
}

void EstimatorBook::remove(const std::string& key) {
  pages_.erase(key);
}

const std::string* EstimatorBook::known_answer(std::string_view key,
                                               const EstimateQuestion& question) const {
  const auto page = pages_.find(key);
  if (page == pages_.end()) return nullptr;
  const auto body = page->second->bodies.find(question);
  return body == page->second->bodies.end() ? nullptr : &body->second;
}

void EstimatorBook::keep(Page& page, const EstimateQuestion& question, std::string body) {
  if (page.bodies_bytes + body.size() > kKeptBodiesBytes) {
    page.bodies.clear();
    page.bodies_bytes = 0;
  }
  page.bodies_bytes += body.size();
  page.bodies.insert_or_assign(question, std::move(body));
}

net::Task<Result<std::string>> EstimatorBook::answer(std::string key, EstimateQuestion question) {
  const std::shared_ptr<Page> page = pages_.find(key)->second;
  if (page->nodes->nodes.empty()) co_return fail(ErrorCode::not_found, "no nodes available");
  const auto wanted = static_cast<std::size_t>(question.num_workloads);
  Curve curve;
  const auto known = page->increases.find(question.cpu_milli);
  if (known != page->increases.end() && known->second->size() >= wanted) {
    curve = known->second;
  } else {
    // Counted until this ends or is cancelled: each holds a copy, and the book has one, too.
    const std::shared_ptr<const bool> ticket = waiting_;
    if (waiting_.use_count() > static_cast<long>(kMaxWaiting) + 1) {
      co_return fail(ErrorCode::unavailable, "too many estimates are being made; try again later");
    }
    auto work = estimate(page->nodes, Millicores{question.cpu_milli}, std::max(wanted, kAhead));
    auto made = co_await asio::co_spawn(estimating_, std::move(work), asio::use_awaitable);
    curve = made;
    if (page->increases.size() >= kKeptCurves) page->increases.clear();
    page->increases.insert_or_assign(question.cpu_milli, std::move(made));
  }
  const std::vector<double> asked(curve->begin(), curve->begin() + static_cast<long>(wanted));
  std::string body = estimate_json(question, asked);
  keep(*page, question, body);
  co_return body;
}

std::string go_json_number(double value) {
  if (!std::isfinite(value)) value = std::numeric_limits<double>::max();
  const double size = std::abs(value);
  const bool exponent = size != 0 && (size < 1e-6 || size >= 1e21);
  std::array<char, 400> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string out(text.data(), end);
  // Go drops the leading zero of a negative exponent: 1e-7, not 1e-07.
  const std::size_t zero = out.find("e-0");
  if (zero != std::string::npos) out.erase(zero + 2, 1);
  return out;
}

std::string estimate_json(const EstimateQuestion& question, const std::vector<double>& increases) {
  std::string out = fmt::format(R"({{"cpu_milli":{},"num_workloads":{},"watt_increases":[)",
                                question.cpu_milli, question.num_workloads);
  for (std::size_t i = 0; i < increases.size(); ++i) {
    if (i > 0) out += ',';
    out += go_json_number(increases[i]);
  }
  out += "]}\n";
  return out;
}

}  // namespace kwatt::servers
