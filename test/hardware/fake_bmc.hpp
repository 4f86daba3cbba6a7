#pragma once
// FakeBmc: an HTTP server on loopback that answers by script and keeps what it was asked.
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "hardware/driver.hpp"
#include "net/server.hpp"

namespace kwatt::hardware {

class FakeBmc {
 public:
  using Answer = std::function<net::Response(const net::Request&)>;

  FakeBmc()
      : server_(io_.get_executor(), options(),
                [this](net::Request request) { return answer(std::move(request)); }) {
    if (auto started = server_.start(); !started) throw std::runtime_error("no port");
  }

  // "GET /redfish/v1/Systems/1" → the answer; anything else is 404.
  void on(const std::string& line, Answer answer) { script_[line] = std::move(answer); }
  void on(const std::string& line, int status, const std::string& body,
          const net::Headers& headers = {}) {
    on(line, [=](const net::Request&) { return net::Response{status, headers, body}; });
  }
  const std::vector<net::Request>& requests() const { return requests_; }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const net::Request& request : requests_) {
      lines.push_back(request.method + " " + request.target);
    }
    return lines;
  }

  boost::asio::any_io_executor executor() { return io_.get_executor(); }
  std::string address(const std::string& scheme, const std::string& path) const {
    return scheme + "://127.0.0.1:" + std::to_string(server_.port()) + path;
  }
  std::unique_ptr<PowerDriver> driver(const std::string& scheme, const std::string& path,
                                      std::optional<Credentials> credentials = Credentials{
                                          "admin", "secret"}) {
    DriverConfig config;
    config.address = address(scheme, path);
    config.credentials = std::move(credentials);
    config.timeout = std::chrono::seconds{2};
    auto made = make_driver(io_.get_executor(), std::move(config));
    if (!made) throw std::runtime_error(made.error().text());
    return std::move(*made);
  }

  // Runs one call that cannot fail.
  void run(Task<void> task) {
    bool done = false;
    io_.restart();
    boost::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
      done = true;
    });
    while (!done) {
      if (io_.run_one_for(std::chrono::seconds{30}) == 0) throw std::runtime_error("hangs");
    }
  }

  // Runs one call of a driver to its end.
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    std::optional<Result<T>> result;
    const auto done = [&](std::exception_ptr failure, Result<T> value) {
      if (failure) std::rethrow_exception(failure);
      result.emplace(std::move(value));
    };
    io_.restart();
    boost::asio::co_spawn(io_, std::move(task), done);
    while (!result) {
      if (io_.run_one_for(std::chrono::seconds{30}) == 0) throw std::runtime_error("hangs");
    }
    return std::move(*result);
  }

 private:
  static net::ServerOptions options() {
    net::ServerOptions options;
    options.address = "127.0.0.1";
    return options;
  }
  net::Task<net::Response> answer(net::Request request) {
    const auto found = script_.find(request.method + " " + request.target);
    net::Response response{404, {}, R"({"error":{"message":"no such resource"}})"};
    if (found != script_.end()) response = found->second(request);
    requests_.push_back(std::move(request));
    co_return response;
  }

  boost::asio::io_context io_{1};
  std::map<std::string, Answer> script_;
  std::vector<net::Request> requests_;
  net::Server server_;
};

}  // namespace kwatt::hardware
