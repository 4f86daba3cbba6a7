#pragma once
// Drives kube/watch_fsm.hpp against the API server: keeps a sink equal to what the server has.
// Knows no object type; kube/informer.hpp adds it.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/json_stream.hpp"
#include "api/status.hpp"
#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "kube/watch_fsm.hpp"

namespace kwatt::kube {

// What is to be mirrored.
struct WatchTarget {
  Resource resource;
  std::string namespace_name;  // "": all
  std::string field_selector;  // e.g. "metadata.name=node-1"
  std::string label_selector;
};

struct ReflectorOptions {
  WatchOptions watch{};
  api::JsonLimits limits{};
  Duration list_idle = std::chrono::seconds{30};  // a list that delivers nothing for so long failed
  // A live API server sends a bookmark about every minute: a watch on which nothing came for so
  // long is opened anew at the last version, on another connection.
  Duration watch_silence = std::chrono::seconds{90};
};

// Where the objects go. An error from a decoder makes the reflector list again after a pause: an
// object that cannot be read must not look like one that is absent.
class ReflectorSink {
 public:
  virtual ~ReflectorSink() = default;
  virtual void list_started() = 0;
  virtual Result<void> list_item(std::string_view json) = 0;
  virtual void list_complete() = 0;
  // Decodes and keeps the object of one change; its resource version is returned.
  enum class Change { put, remove };
  virtual Result<std::string> change(Change change, std::string_view json) = 0;
  // Puts the change kept last in place.
  virtual void apply() = 0;
  // The server gave a sign of life.
  virtual void contact(MonotonicPoint now) = 0;
  virtual std::size_t size() const = 0;
};

class Reflector {
 public:
  // `client`, `sink`, `clock` and `metrics` outlive it.
  Reflector(Client& client, WatchTarget target, ReflectorOptions options, ReflectorSink& sink,
            const Clock& clock, Metrics& metrics);

  // Lists and watches until cancelled (then it ends with operation_aborted). Call once.
  Task<void> run();

 private:
  Task<WatchEvent> list(const WatchAction& action);
  Task<Result<WatchEvent>> read_list(net::BodyStream& stream);
  Task<WatchEvent> open_watch(const WatchAction& action);
  Task<WatchAction> read_watch();
  Result<void> take_frame(std::string& json);
  WatchEvent event_of(std::string& json);
  Task<WatchEvent> failed_response(net::BodyStream& stream);
  WatchEvent failed(WatchFailure failure, const Error& error);
  WatchEvent failed(const Error& error);
  WatchEvent failed(const api::Status& status);
  WatchEvent event(WatchEvent::Kind kind) const;
  std::string query(const WatchAction& action) const;
  void count(const char* name, const char* help, std::string_view label, std::string_view value,
             double by = 1);

  Client& client_;
  WatchTarget target_;
  ReflectorOptions options_;
  ReflectorSink& sink_;
  const Clock& clock_;
  Metrics& metrics_;
  WatchFsm fsm_;
  std::unique_ptr<net::BodyStream> stream_;  // of the watch
  api::ValueSplitter frames_;
  WatchAction after_frame_{};    // what the machine wants after the frame taken last
  MonotonicPoint give_up_at_{};  // of the watch: its timeout and a margin
  std::string path_;
};

}  // namespace kwatt::kube
