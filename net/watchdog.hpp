#pragma once
// Private to net/. Ends the operations of a socket when they last too long.
#include <chrono>
#include <memory>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace kwatt::net {

// Belongs to one socket, which lives as long. Arm it with a guard around the operation.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Watchdog(boost::asio::ip::tcp::socket& socket)
      : state_(std::make_shared<State>(State{.socket = &socket})), timer_(socket.get_executor()) {}
  ~Watchdog() { state_->socket = nullptr; }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // True when the current (or else the last) operation was ended by it.
  bool expired() const { return state_->expired; }

  class Guard {
   public:
    Guard(Watchdog& dog, Clock::time_point deadline) : dog_(dog) { dog_.arm(deadline); }
    ~Guard() { dog_.disarm(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Watchdog& dog_;
  };

 private:
  // Outlives the watchdog in handlers that are already queued.
  struct State {
    boost::asio::ip::tcp::socket* socket = nullptr;
    unsigned armed = 0;  // guards alive; reader and writer may overlap
    std::uint64_t generation = 0;
    bool expired = false;
  };

  void arm(Clock::time_point deadline) {
    // Overlapping operations share the earlier deadline.
    if (state_->armed++ > 0 && timer_.expiry() <= deadline) return;
    if (state_->armed == 1) state_->expired = false;
    wait(state_, timer_, deadline);
  }
  void disarm() {
    if (--state_->armed == 0) timer_.cancel();
  }

  // First cancels, which leaves a socket that can still carry a farewell; an operation made of many
  // steps may have been between two of them, so the second bark closes.
  static void wait(const std::shared_ptr<State>& state, boost::asio::steady_timer& timer,
                   Clock::time_point deadline) {
    timer.expires_at(deadline);
    timer.async_wait([state, &timer, generation = ++state->generation](auto ec) {
      if (ec || state->socket == nullptr || state->armed == 0 || state->generation != generation)
        return;
      boost::system::error_code ignored;
      if (state->expired) {
        state->socket->close(ignored);
        return;
      }
      state->expired = true;
      state->socket->cancel(ignored);
      wait(state, timer, Clock::now() + second_bark);
    });
  }

  static constexpr std::chrono::milliseconds second_bark{50};

  std::shared_ptr<State> state_;
  boost::asio::steady_timer timer_;
};

}  // namespace kwatt::net
