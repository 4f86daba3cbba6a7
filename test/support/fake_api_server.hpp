#pragma once
// A fake kube-apiserver on loopback that plays back a script: lists, pages, watch frames, refusals,
// silence and rubbish, in the order given. It knows nothing of Kubernetes but the shape of its
// JSON.
#include <string>
#include <utility>
#include <vector>

#include "test/support/scripted_peer.hpp"

namespace kwatt::test {

// A Pod as the API server sends it, with things a decoder must skip.
inline std::string pod_json(const std::string& name, const std::string& version,
                            const std::string& node = "") {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
         R"(","namespace":"default","uid":"uid-)" + name + R"(","resourceVersion":")" + version +
         R"(","managedFields":[{"manager":"x}]\"{","fieldsV1":{"f:a":{}}}]},"spec":{"nodeName":")" +
         node + R"(","containers":[]},"status":{"phase":"Running"}})";
}

inline std::string list_json(const std::vector<std::string>& items, const std::string& version,
                             const std::string& next = "") {
  std::string text =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":")" + version + "\"";
  if (!next.empty()) text += R"(,"continue":")" + next + "\"";
  text += R"(},"items":[)";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ",") + items[i];
  return text + "]}\n";
}

inline std::string status_json(int code, const std::string& reason,
                               const std::string& details = "{}") {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no: )" +
         reason + R"(","reason":")" + reason + R"(","details":)" + details + R"(,"code":)" +
         std::to_string(code) + "}\n";
}

inline std::string frame_json(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

inline std::string bookmark_json(const std::string& version) {
  return frame_json("BOOKMARK", R"({"kind":"Pod","apiVersion":"v1","metadata":{)"
                                R"("resourceVersion":")" +
                                    version + R"(","creationTimestamp":null},"spec":{}})");
}

// What follows the frames of a watch.
enum class End {
  clean,    // the last chunk: the server's timeoutSeconds are over
  silence,  // nothing more, the connection stays
  cut,      // the connection closes in the middle of the body
  reset,
};

class FakeApiServer {
 public:
  explicit FakeApiServer(boost::asio::any_io_executor executor) : peer_(std::move(executor)) {}

  FakeApiServer& list(const std::vector<std::string>& items, const std::string& version,
                      const std::string& next = "") {
    peer_.reply(json_response(200, list_json(items, version, next)));
    return *this;
  }
  FakeApiServer& status(int code, const std::string& reason, const net::Headers& headers = {},
                        const std::string& details = "{}") {
    peer_.reply(response(code, status_json(code, reason, details), headers));
    return *this;
  }
  // Each text is one chunk of the body, whole frames or not.
  FakeApiServer& watch(const std::vector<std::string>& chunks, End end = End::silence) {
    Script script;
    script.send(chunked_head());
    for (const std::string& bytes : chunks) script.send(chunk(bytes));
    if (end == End::clean) script.send(last_chunk());
    if (end == End::silence) std::move(script).stall();
    if (end == End::cut) std::move(script).close();
    if (end == End::reset) std::move(script).reset();
    peer_.reply(std::move(script));
    return *this;
  }
  FakeApiServer& raw(Script script) {
    peer_.reply(std::move(script));
    return *this;
  }
  // The targets asked for so far: "/api/v1/pods?limit=500&resourceVersion=0".
  std::vector<std::string> targets() const {
    std::vector<std::string> found;
    for (const std::string& line : peer_.request_lines()) {
      const auto start = line.find(' ') + 1;
      found.push_back(line.substr(start, line.rfind(' ') - start));
    }
    return found;
  }
  ScriptedPeer& peer() { return peer_; }

 private:
  ScriptedPeer peer_;
};

}  // namespace kwatt::test
