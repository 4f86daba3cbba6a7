#pragma once
// JSON → values, driven by the tables of describe_*.cpp: SAX, in place, no DOM. Unknown keys are
// skipped, null is "absent", absent members keep their C++ default. Nesting beyond 64 is refused.
//
//   One document:       EnergyPolicy policy;
//                       auto done = decode(body, policy);         // Result<void>
//                       // error text: "spec.capping.window: expected a duration …, got string"
//
//   A list, as it       ListDecoder<Pod> list(&interner, [&](Pod&& pod) { … });
//   arrives:            while (bytes from the network) if (auto r = list.feed(bytes); !r) …;
//                       Result<ListMeta> meta = list.finish();    // resourceVersion, continue
//
//   A watch stream:     WatchDecoder<Pod> watch(&interner, [&](WatchEvent<Pod>&& event) { … });
//                       while (bytes) if (auto r = watch.feed(bytes); !r) …;
//                       // at the end of the stream a half frame is simply forgotten
//
//   An error body:      Status status; decode(body, status); status.is_status()
//
// Decodable: EnergyPolicy, NodePower, Site, SiteRecommendation (and their specs and status),
// Status, and the core kinds Pod, Node, PodDisruptionBudget, PersistentVolumeClaim,
// PersistentVolume, VolumeAttachment, Lease, Workload, PodTemplateObject, CapacityBuffer,
// NodeHealthCheck. Items of a list carry no kind: Workload::kind is empty there, the caller knows
// it.
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "api/core.hpp"
#include "api/energy_policy.hpp"
#include "api/interner.hpp"
#include "api/json_stream.hpp"
#include "api/node_power.hpp"
#include "api/site_recommendation.hpp"
#include "api/status.hpp"
#include "api/type_info.hpp"
#include "base/result.hpp"

namespace kwatt::api {

inline constexpr int kMaxJsonDepth = 64;

// JSON text that may be overwritten, with one more writable byte behind it.
struct MutableJson {
  char* data = nullptr;
  std::size_t size = 0;
};

// Decodes over what `out` holds. The text is destroyed. `interner` may be null: pods then share
// nothing. Errors are ErrorCode::parse with a JSON path or an offset.
Result<void> decode_into(MutableJson json, const TypeInfo& type, void* out);

Result<void> decode_into(MutableJson json, Pod& out, Interner* interner);
Result<void> decode_into(MutableJson json, Node& out, Interner* interner);
Result<void> decode_into(MutableJson json, PodDisruptionBudget& out, Interner* interner);
Result<void> decode_into(MutableJson json, PersistentVolumeClaim& out, Interner* interner);
Result<void> decode_into(MutableJson json, PersistentVolume& out, Interner* interner);
Result<void> decode_into(MutableJson json, VolumeAttachment& out, Interner* interner);
Result<void> decode_into(MutableJson json, Lease& out, Interner* interner);
Result<void> decode_into(MutableJson json, Workload& out, Interner* interner);
Result<void> decode_into(MutableJson json, PodTemplateObject& out, Interner* interner);
Result<void> decode_into(MutableJson json, CapacityBuffer& out, Interner* interner);
Result<void> decode_into(MutableJson json, NodeHealthCheck& out, Interner* interner);
template <class T>
Result<void> decode_into(MutableJson json, T& out, Interner*) {
  return decode_into(json, type_of<T>(), &out);
}

// One whole document. `out` is reset first, so that absent members have their defaults.
template <class T>
Result<void> decode(std::string_view json, T& out, Interner* interner = nullptr) {
  std::string copy{json};
  out = T{};
  return decode_into(MutableJson{copy.data(), copy.size()}, out, interner);
}

// What a list says beside its items. `kind` is "Status" if it is none: then `status` is filled.
struct ListMeta {
  std::string kind;
  std::string resource_version;
  std::string continue_token;
  std::int64_t remaining_item_count = 0;
  Status status;
};
Result<ListMeta> decode_list_envelope(std::string& envelope);

// Fed with the bytes of one list response; calls back for each item as soon as it is whole.
template <class T>
class ListDecoder {
 public:
  using OnItem = std::function<void(T&&)>;
  ListDecoder(Interner* interner, OnItem on_item, JsonLimits limits = {})
      : interner_(interner), on_item_(std::move(on_item)), splitter_(limits) {}

  // After an error the decoder is of no further use.
  Result<void> feed(std::string_view bytes) {
    return splitter_.feed(bytes, [this](std::string& item) -> Result<void> {
      T value{};
      if (auto done = decode_into(MutableJson{item.data(), item.size()}, value, interner_); !done) {
        return done;
      }
      on_item_(std::move(value));
      return {};
    });
  }
  // At the end of the response; an error if it was not whole.
  Result<ListMeta> finish() {
    if (auto whole = splitter_.finish(); !whole) return whole.error();
    return decode_list_envelope(splitter_.envelope());
  }

 private:
  Interner* interner_;
  OnItem on_item_;
  ListSplitter splitter_;
};

enum class WatchType { added, modified, deleted, bookmark, error, unknown };

template <class T>
struct WatchEvent {
  WatchType type = WatchType::unknown;
  T object{};                       // added, modified, deleted
  std::string resource_version;     // all but error; "" is a broken event
  bool initial_events_end = false;  // bookmark with annotation k8s.io/initial-events-end
  Status status;                    // error; also a bare Status in place of an event
  std::string type_text;            // as received, for logs
};

// The frame taken apart: type, bookmark and error are complete, `object` is where the object is.
struct WatchFrame {
  WatchType type = WatchType::unknown;
  MutableJson object;
  std::string resource_version;
  bool initial_events_end = false;
  Status status;
  std::string type_text;
};
Result<WatchFrame> open_watch_frame(std::string& frame);

const std::string& resource_version_of(const Pod& pod);
template <class T>
const std::string& resource_version_of(const T& object) {
  return object.meta.resource_version;
}

// One frame {"type":…,"object":…}. The text is destroyed.
template <class T>
Result<WatchEvent<T>> decode_watch_frame(std::string& text, Interner* interner = nullptr) {
  auto frame = open_watch_frame(text);
  if (!frame) return frame.error();
  WatchEvent<T> event;
  event.type = frame->type;
  event.resource_version = std::move(frame->resource_version);
  event.initial_events_end = frame->initial_events_end;
  event.status = std::move(frame->status);
  event.type_text = std::move(frame->type_text);
  if (event.type == WatchType::added || event.type == WatchType::modified ||
      event.type == WatchType::deleted) {
    if (auto done = decode_into(frame->object, event.object, interner); !done) return done.error();
    event.resource_version = resource_version_of(event.object);
  }
  return event;
}

// Fed with the bytes of a watch response; calls back for each frame.
template <class T>
class WatchDecoder {
 public:
  using OnEvent = std::function<void(WatchEvent<T>&&)>;
  WatchDecoder(Interner* interner, OnEvent on_event, JsonLimits limits = {})
      : interner_(interner), on_event_(std::move(on_event)), splitter_(limits) {}

  Result<void> feed(std::string_view bytes) {
    return splitter_.feed(bytes, [this](std::string& frame) -> Result<void> {
      auto event = decode_watch_frame<T>(frame, interner_);
      if (!event) return event.error();
      on_event_(std::move(*event));
      return {};
    });
  }

 private:
  Interner* interner_;
  OnEvent on_event_;
  ValueSplitter splitter_;
};

}  // namespace kwatt::api
