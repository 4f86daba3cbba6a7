#pragma once
// Throw-away certificates for TLS tests, made in memory (EC P-256: a millisecond each).
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace kwatt::test {

struct Identity {
  std::string certificate_pem;
  std::string private_key_pem;
};

struct CertificateRequest {
  std::string common_name = "test";
  // Subject alternative names as OpenSSL writes them.
  std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"};
  // Relative to now.
  std::chrono::seconds not_before = std::chrono::hours{-1};
  std::chrono::seconds not_after = std::chrono::hours{1};
};

// A certificate authority of its own: two of them do not trust each other.
class Authority {
 public:
  explicit Authority(const std::string& common_name = "test authority");
  ~Authority();
  Authority(Authority&&) noexcept;

  const std::string& ca_pem() const;
  Identity issue(const CertificateRequest& request = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::test
