#include "kube/credentials.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/log.hpp"
#include "kube/pem.hpp"

namespace kwatt::kube {
namespace {

constexpr std::size_t kFileLimit = 1024 * 1024;
constexpr Duration kTokenLifetime{60'000}, kTokenEarly{10'000};
constexpr Duration kTlsLifetime{300'000};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

Result<std::string> content(const TextOrFile& source) {
  if (source.file.empty() || !source.text.empty()) return source.text;
  return read_file(source.file);
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  // Grown with the file: the texts are kept, and a buffer of the limit's size would be, too.
  std::string text;
  std::array<char, 4096> piece{};
  while (stream && text.size() <= kFileLimit) {
    stream.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.is_open() || stream.bad()) {
    return fail(ErrorCode::io, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  if (text.size() > kFileLimit) {
    return fail(ErrorCode::io, fmt::format("{} is larger than {} bytes", path, kFileLimit));
  }
  return text;
}

TokenSource::TokenSource(std::string fixed, std::string file, const Clock& clock, ReadFile read)
    : fixed_(std::move(fixed)), file_(std::move(file)), clock_(clock), read_(std::move(read)) {}

Result<std::string> TokenSource::current() {
  if (file_.empty()) return fixed_;
  const MonotonicPoint now = clock_.monotonic();
  const bool fresh = now - read_at_ < kTokenLifetime - kTokenEarly;
  const bool just_failed = failed_at_ && now - *failed_at_ < kTokenEarly;
  if (cached_ && (fresh || just_failed)) return *cached_;
  auto text = read_(file_);
  if (text) {
    text = trimmed(*text);
    if (text->empty()) text = fail(ErrorCode::io, fmt::format("token file {} is empty", file_));
  }
  if (text) {
    cached_ = std::move(*text);
    read_at_ = now;
    failed_at_.reset();
    return *cached_;
  }
  failed_at_ = now;
  if (cached_) {
    log::warn("token file cannot be read, the old token stays in use", {{"error", text.error()}});
    return *cached_;
  }
  if (!fixed_.empty()) return fixed_;
  return text.error();
}

void TokenSource::rejected(MonotonicPoint started) {
  if (cached_ && read_at_ <= started) cached_.reset();
}

TlsSource::TlsSource(const Config& config, const Clock& clock)
    : ca_(config.certificate_authority),
      certificate_(config.client_certificate),
      key_(config.client_key),
      server_name_(config.tls_server_name),
      clock_(clock) {}

Result<void> TlsSource::load() {
  std::string seen = fingerprint();
  auto value = read();
  if (!value) return value.error();
  value_ = std::move(*value);
  seen_ = std::move(seen);
  read_at_ = clock_.monotonic();
  return {};
}

const net::TlsConfig& TlsSource::current() {
  const MonotonicPoint now = clock_.monotonic();
  std::string seen = fingerprint();
  if (seen == seen_ && now - read_at_ < kTlsLifetime) return value_;
  // Taken before reading: a file that changes in between is looked at again next time.
  seen_ = std::move(seen);
  read_at_ = now;
  auto value = read();
  if (!value) {
    log::warn("TLS files are not valid, the old ones stay in use", {{"error", value.error()}});
  } else if (*value != value_) {
    log::info("TLS files changed");
    value_ = std::move(*value);
  }
  return value_;
}

Result<net::TlsConfig> TlsSource::read() const {
  net::TlsConfig value;
  value.server_name = server_name_;
  auto ca = content(ca_);
  auto certificate = content(certificate_);
  auto key = content(key_);
  for (const auto* part : {&ca, &certificate, &key}) {
    if (!*part) return part->error();
  }
  if (!ca_.empty()) {
    if (auto valid = check_certificates(*ca); !valid) {
      return valid.error().with_context(fmt::format("certificate authority {}", ca_.file));
    }
  }
  if (!certificate_.empty()) {
    if (auto valid = check_key_pair(*certificate, *key); !valid) {
      return valid.error().with_context(fmt::format("client certificate {}", certificate_.file));
    }
  }
  value.ca_pem = std::move(*ca);
  value.certificate_pem = std::move(*certificate);
  value.private_key_pem = std::move(*key);
  return value;
}

std::string TlsSource::fingerprint() const {
  std::string found;
  for (const TextOrFile* source : {&ca_, &certificate_, &key_}) {
    if (source->file.empty() || !source->text.empty()) continue;
    struct stat info {};
    if (::stat(source->file.c_str(), &info) != 0) {
      found += "-;";
      continue;
    }
    found += fmt::format("{},{},{},{}.{};", info.st_dev, info.st_ino, info.st_size,
                         info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  }
  return found;
}

}  // namespace kwatt::kube
