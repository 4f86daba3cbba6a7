#pragma once
// The files behind a Config, read again so that rotation needs no restart.
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "kube/config.hpp"

namespace kwatt::kube {

using ReadFile = std::function<Result<std::string>(const std::string& path)>;
// The whole file, at most 1 MiB. Errors: io, with the path.
Result<std::string> read_file(const std::string& path);

// The bearer token. A token read from a file is used for 60 s at most (read again 10 s earlier);
// when the file cannot be read, or is empty, the old one stays in use. Not thread-safe.
class TokenSource {
 public:
  TokenSource(std::string fixed, std::string file, const Clock& clock, ReadFile read = read_file);

  // "": none configured. Errors: io (the file was never readable, or not since a 401).
  Result<std::string> current();
  // The server answered 401 to a request started at `started`: a token read before that moment is
  // dropped, so that the next request reads the file again.
  void rejected(MonotonicPoint started);

 private:
  std::string fixed_, file_;
  const Clock& clock_;
  ReadFile read_;
  std::optional<std::string> cached_;
  MonotonicPoint read_at_{};                 // of the cached token
  std::optional<MonotonicPoint> failed_at_;  // of the last reading, if it failed
};

// CA bundle and client certificate. Files are looked at before every use and read when they
// changed, and every five minutes in any case; a set of files that is not valid (empty, not PEM, a
// key that does not belong to its certificate) is ignored and logged, the old one stays in use.
// Not thread-safe.
class TlsSource {
 public:
  TlsSource(const Config& config, const Clock& clock);

  // Reads the files for the first time. Errors: io, parse, with the file's name.
  Result<void> load();
  // The value for the next connection. Call load() first.
  const net::TlsConfig& current();

 private:
  Result<net::TlsConfig> read() const;
  std::string fingerprint() const;

  TextOrFile ca_, certificate_, key_;
  std::string server_name_;
  const Clock& clock_;
  net::TlsConfig value_;
  std::string seen_;  // inode, size and times of the files at the last reading
  MonotonicPoint read_at_{};
};

}  // namespace kwatt::kube
