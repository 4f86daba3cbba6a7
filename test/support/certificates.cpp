#include "test/support/certificates.hpp"

#include <stdexcept>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace kwatt::test {

namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;

void require(bool ok, const char* what) {
  if (!ok) throw std::runtime_error{std::string{"cannot make a test certificate: "} + what};
}

Key new_key() {
  Key key{EVP_EC_gen("P-256"), EVP_PKEY_free};
  require(key != nullptr, "key");
  return key;
}

template <class Write>
std::string to_pem(Write&& write) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bio{BIO_new(BIO_s_mem()), BIO_free};
  require(write(bio.get()) == 1, "PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem(const Certificate& certificate) {
  return to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); });
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> extension{
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), X509_EXTENSION_free};
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1, value.c_str());
}

Certificate new_certificate(const std::string& common_name, std::chrono::seconds not_before,
                            std::chrono::seconds not_after, EVP_PKEY* key, X509* issuer) {
  Certificate certificate{X509_new(), X509_free};
  X509* x = certificate.get();
  std::uint64_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "serial");
  X509_set_version(x, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial >> 1U);
  X509_gmtime_adj(X509_getm_notBefore(x), not_before.count());
  X509_gmtime_adj(X509_getm_notAfter(x), not_after.count());
  X509_set_pubkey(x, key);
  X509_NAME* name = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(x, issuer == nullptr ? name : X509_get_subject_name(issuer));
  return certificate;
}

}  // namespace

struct Authority::Impl {
  Key key;
  Certificate certificate;
  std::string ca_pem;
};

Authority::Authority(const std::string& common_name) : impl_(std::make_unique<Impl>()) {
  impl_->key = new_key();
  impl_->certificate = new_certificate(common_name, std::chrono::hours{-24}, std::chrono::hours{24},
                                       impl_->key.get(), nullptr);
  X509* x = impl_->certificate.get();
  add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(x, x, NID_subject_key_identifier, "hash");
  require(X509_sign(x, impl_->key.get(), EVP_sha256()) > 0, "signature");
  impl_->ca_pem = pem(impl_->certificate);
}

Authority::~Authority() = default;
Authority::Authority(Authority&&) noexcept = default;

const std::string& Authority::ca_pem() const {
  return impl_->ca_pem;
}

Identity Authority::issue(const CertificateRequest& request) const {
  const Key key = new_key();
  X509* issuer = impl_->certificate.get();
  const Certificate certificate = new_certificate(request.common_name, request.not_before,
                                                  request.not_after, key.get(), issuer);
  X509* x = certificate.get();
  add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(x, issuer, NID_authority_key_identifier, "keyid");
  std::string names;
  for (const std::string& name : request.names) names += (names.empty() ? "" : ",") + name;
  if (!names.empty()) add_extension(x, issuer, NID_subject_alt_name, names);
  require(X509_sign(x, impl_->key.get(), EVP_sha256()) > 0, "signature");
  return {pem(certificate), to_pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace kwatt::test
