#pragma once
// An API server in memory, for tests that run a whole program against it: lists, watches with
// events, creations, replacements guarded by resourceVersion, and patches, all of them merged as
// RFC 7386 says. It knows no schema and refuses nobody.
#include <functional>
#include <memory>
#include <string>

namespace kwatt::test {

class MemoryApi {
 public:
  // Every answer comes up to 2 ms late, by a random sequence of this seed: what overlaps differs
  // from seed to seed.
  explicit MemoryApi(unsigned seed);
  ~MemoryApi();
  MemoryApi(const MemoryApi&) = delete;
  MemoryApi& operator=(const MemoryApi&) = delete;

  // Before start(). `path`: "/api/v1/nodes/a".
  void put(const std::string& path, const std::string& json);
  // Called at each request with its number, from 1, and its line ("PATCH /apis/…"), before it is
  // answered; on the server's thread.
  using OnRequest = std::function<void(std::size_t number, const std::string& line)>;
  // Serves on a thread of its own until stop(). `late`: called once after so many milliseconds,
  // on that thread, too.
  void start(OnRequest on_request, int milliseconds, std::function<void()> late);
  // Ends the thread: nothing is answered or called back any more. Connections stay.
  void stop();

  // From OnRequest, or while there is no thread.
  void silence();  // nothing is answered any more
  // Somebody else holds the Lease from now on, if there is one.
  void steal(const std::string& lease);
  std::string get(const std::string& path) const;  // "": there is none

  std::uint16_t port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::test
