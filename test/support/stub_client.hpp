#pragma once
// A kube::Client for tests that answers everything with "unsupported"; a test overrides what it
// needs. And a response body in memory.
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kube/client.hpp"
#include "net/run.hpp"

namespace kwatt::test {

class StubClient : public kube::Client {
 public:
  template <class T>
  using Task = kube::Task<T>;
  using Text = Result<std::string>;

  Task<Text> get(const kube::Resource&, kube::Name) override { co_return refuse(); }
  Task<Text> create(const kube::Resource&, std::string, std::string) override {
    co_return refuse();
  }
  Task<Text> replace(const kube::Resource&, kube::Name, std::string) override {
    co_return refuse();
  }
  Task<Text> replace_status(const kube::Resource&, kube::Name, std::string) override {
    co_return refuse();
  }
  Task<Text> patch(const kube::Resource&, kube::Name, PatchType, std::string, std::string,
                   std::string) override {
    co_return refuse();
  }
  Task<Result<void>> remove(const kube::Resource&, kube::Name, std::string) override {
    co_return refuse();
  }
  Task<Result<void>> evict(kube::Name, std::string) override { co_return refuse(); }
  Task<Result<void>> bind(kube::Name, std::string, std::string) override { co_return refuse(); }
  Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string) override { co_return refuse(); }

 private:
  static Error refuse() { return fail(ErrorCode::unsupported, "not part of this test"); }
};

// What a MemoryStream delivers; shared with the test, which may add to it while it is read.
struct MemoryBody {
  std::deque<std::string> pieces;
  bool ended = false;          // after the pieces: the clean end
  std::optional<Error> error;  // after the pieces: this
  net::Signal changed;

  void add(std::string piece) {
    if (!piece.empty()) pieces.push_back(std::move(piece));
    changed.notify_all();
  }
  void end() {
    ended = true;
    changed.notify_all();
  }
  void fail(Error with) {
    error = std::move(with);
    changed.notify_all();
  }
};

class MemoryStream final : public net::BodyStream {
 public:
  MemoryStream(int status, std::shared_ptr<MemoryBody> body)
      : status_(status), body_(std::move(body)) {}
  int status() const override { return status_; }
  const net::Headers& headers() const override { return headers_; }

  net::Task<Result<std::string_view>> read_some(Duration idle) override {
    const auto deadline = std::chrono::steady_clock::now() + idle;
    for (;;) {
      if (!body_->pieces.empty()) {
        piece_ = std::move(body_->pieces.front());
        body_->pieces.pop_front();
        co_return std::string_view{piece_};
      }
      if (body_->error) co_return *body_->error;
      if (body_->ended) co_return std::string_view{};
      const auto left = std::chrono::ceil<Duration>(deadline - std::chrono::steady_clock::now());
      if (left <= Duration{0}) co_return kwatt::fail(ErrorCode::timeout, "silence");
      co_await body_->changed.wait_for(left);
    }
  }
  net::Task<Result<std::string>> read_all(std::size_t, Duration idle) override {
    std::string all;
    for (;;) {
      const auto piece = co_await read_some(idle);
      if (!piece) co_return piece.error();
      if (piece->empty()) co_return std::move(all);
      all += *piece;
    }
  }

 private:
  int status_;
  net::Headers headers_;
  std::shared_ptr<MemoryBody> body_;
  std::string piece_;
};

}  // namespace kwatt::test
