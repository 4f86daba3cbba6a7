#include "kube/pem.hpp"

#include <limits>
#include <memory>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace kwatt::kube {
namespace {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* value) const {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

Bio open(const std::string& pem) {
  if (pem.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return nullptr;
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Never ask a terminal for a passphrase.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

}  // namespace

Result<void> check_certificates(const std::string& pem) {
  const Bio bio = open(pem);
  if (!bio) return fail(ErrorCode::parse, "too large for a certificate bundle");
  int count = 0;
  while (Certificate(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr))) ++count;
  const unsigned long last = ERR_peek_last_error();
  ERR_clear_error();
  if (ERR_GET_LIB(last) != ERR_LIB_PEM || ERR_GET_REASON(last) != PEM_R_NO_START_LINE) {
    return fail(ErrorCode::parse, "holds a certificate that cannot be read");
  }
  if (count == 0) return fail(ErrorCode::parse, "holds no certificate");
  return {};
}

Result<void> check_key_pair(const std::string& certificate_pem, const std::string& key_pem) {
  const Bio certificate_bio = open(certificate_pem), key_bio = open(key_pem);
  if (!certificate_bio || !key_bio) return fail(ErrorCode::parse, "too large for a key pair");
  const Certificate certificate(
      PEM_read_bio_X509(certificate_bio.get(), nullptr, no_passphrase, nullptr));
  const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_passphrase, nullptr));
  const bool match =
      certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!certificate) return fail(ErrorCode::parse, "the client certificate cannot be read");
  if (!key) return fail(ErrorCode::parse, "the client key cannot be read");
  if (!match) return fail(ErrorCode::parse, "the client key does not belong to the certificate");
  return {};
}

}  // namespace kwatt::kube
