#include "kube/fetch.hpp"

#include <algorithm>

#include "kube/credentials.hpp"

namespace kwatt::kube {
namespace {

constexpr std::size_t kBodyBytes = std::size_t{32} << 20;

struct Fetcher {
  Fetcher(boost::asio::any_io_executor executor, const Config& config, std::string agent,
          const Clock& clock)
      : prefix(config.path_prefix),
        user_agent(std::move(agent)),
        tokens(config.token, config.token_file, clock),
        tls(config, clock),
        http(std::move(executor), config.server, [this] { return tls.current(); }) {}

  std::string prefix, user_agent;
  TokenSource tokens;
  TlsSource tls;
  net::Client http;
};

net::Task<Result<net::Response>> send(std::shared_ptr<Fetcher> self, net::Request request,
                                      Duration timeout) {
  if (auto loaded = self->tls.load(); !loaded) co_return loaded.error();
  auto token = self->tokens.current();
  if (!token) co_return token.error();
  request.target = self->prefix + request.target;
  request.headers.set("User-Agent", self->user_agent);
  if (!token->empty()) request.headers.set("Authorization", "Bearer " + *token);
  net::Limits limits;
  limits.body_bytes = kBodyBytes;
  limits.connect = std::min(limits.connect, timeout);
  limits.header = std::min(limits.header, timeout);
  limits.total = timeout;
  co_return co_await self->http.send(std::move(request), limits);
}

}  // namespace

Send make_send(boost::asio::any_io_executor executor, const Config& config, std::string user_agent,
               const Clock& clock) {
  auto self = std::make_shared<Fetcher>(std::move(executor), config, std::move(user_agent), clock);
  return [self](net::Request request, Duration timeout) {
    return send(self, std::move(request), timeout);
  };
}

Fetch make_fetch(boost::asio::any_io_executor executor, const Config& config,
                 std::string user_agent, const Clock& clock) {
  auto self = std::make_shared<Fetcher>(std::move(executor), config, std::move(user_agent), clock);
  return [self](std::string path_and_query, net::Headers headers) {
    return send(self, net::Request("GET", std::move(path_and_query), std::move(headers)),
                net::Limits{}.total);
  };
}

}  // namespace kwatt::kube
