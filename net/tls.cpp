#include "net/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace kwatt::net {

namespace {

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(ASN1_OCTET_STRING* p) const { ASN1_OCTET_STRING_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> reader(const std::string& pem) {
  return Owned<BIO>{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
}

// Instead of asking for a passphrase on the terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

Error refuse(std::string_view what) {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return fail(ErrorCode::invalid_argument,
              reason != nullptr ? fmt::format("{}: {}", what, reason) : std::string{what});
}

Owned<X509> next_certificate(BIO* bio) {
  return Owned<X509>{PEM_read_bio_X509(bio, nullptr, no_passphrase, nullptr)};
}

// PEM_read reports "no start line" at the end of the text; anything else is a broken block.
bool at_end() {
  const unsigned long code = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  if (end) ERR_clear_error();
  return end;
}

Result<void> add_roots(SSL_CTX* context, const std::string& pem) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  const auto bio = reader(pem);
  std::size_t count = 0;
  while (const auto certificate = next_certificate(bio.get())) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) return refuse("CA certificate refused");
    SSL_CTX_add_client_CA(context, certificate.get());
    ++count;
  }
  if (!at_end()) return refuse("CA certificates are not valid PEM");
  if (count == 0) return fail(ErrorCode::invalid_argument, "CA text holds no certificate");
  // As in Go: what is in the bundle is trusted, also an intermediate or a pinned leaf.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

Result<void> add_identity(SSL_CTX* context, const TlsConfig& config) {
  const auto chain = reader(config.certificate_pem);
  const auto own = next_certificate(chain.get());
  if (!own) return refuse("certificate is not valid PEM");
  if (SSL_CTX_use_certificate(context, own.get()) != 1) return refuse("certificate refused");
  while (auto issuer = next_certificate(chain.get()))
    if (SSL_CTX_add1_chain_cert(context, issuer.get()) != 1)
      return refuse("certificate chain refused");
  if (!at_end()) return refuse("certificate chain is not valid PEM");

  const auto bio = reader(config.private_key_pem);
  const Owned<EVP_PKEY> key{PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr)};
  if (!key) return refuse("private key is not valid unencrypted PEM");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return refuse("private key does not belong to the certificate");
  return {};
}

Result<SslContext> new_context(const SSL_METHOD* method) {
  ERR_clear_error();
  SslContext context{SSL_CTX_new(method), [](SSL_CTX* p) { SSL_CTX_free(p); }};
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return refuse("OpenSSL cannot make a context");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  // Idle connections give their buffers back; asio writes from a buffer of its own.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_ENABLE_PARTIAL_WRITE);
  // No resumption: after a rotation every connection proves itself with the new certificate.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  return context;
}

// TLS alerts arrive as reason 1000 + alert number; these are about certificates.
bool is_certificate_alert(int reason) {
  const int alert = reason - SSL_AD_REASON_OFFSET;
  return (alert >= SSL3_AD_NO_CERTIFICATE && alert <= SSL3_AD_CERTIFICATE_UNKNOWN) ||
         alert == TLS1_AD_UNKNOWN_CA || alert == TLS1_AD_ACCESS_DENIED ||
         alert == TLS13_AD_CERTIFICATE_REQUIRED;
}

}  // namespace

Result<SslContext> client_context(const TlsConfig& config) {
  auto made = new_context(TLS_client_method());
  if (!made) return made;
  SSL_CTX* context = made->get();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (!config.ca_pem.empty()) {
    if (auto added = add_roots(context, config.ca_pem); !added) return added.error();
  } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
    return refuse("the system's root certificates cannot be loaded");
  }
  if (config.certificate_pem.empty() != config.private_key_pem.empty())
    return fail(ErrorCode::invalid_argument,
                "a client certificate and its private key must be given together");
  if (!config.certificate_pem.empty())
    if (auto added = add_identity(context, config); !added) return added.error();
  return made;
}

Result<SslContext> server_context(const TlsConfig& config) {
  if (config.certificate_pem.empty() || config.private_key_pem.empty())
    return fail(ErrorCode::invalid_argument, "a TLS server needs a certificate and a private key");
  auto made = new_context(TLS_server_method());
  if (!made) return made;
  SSL_CTX* context = made->get();
  if (!config.ca_pem.empty()) {
    if (auto added = add_roots(context, config.ca_pem); !added) return added.error();
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  if (auto added = add_identity(context, config); !added) return added.error();
  return made;
}

Result<ssl_st*> new_client_ssl(const SslContext& context, std::string name) {
  if (name.ends_with('.')) name.pop_back();  // the DNS root, which certificates leave out
  SSL* ssl = SSL_new(context.get());
  if (ssl == nullptr) throw std::bad_alloc{};
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  const Owned<ASN1_OCTET_STRING> address{a2i_IPADDRESS(name.c_str())};
  bool ok = false;
  if (address) {
    ok = X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) == 1;
  } else {
    ERR_clear_error();
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // An empty name would switch the check off; that must never happen.
    ok = !name.empty() && SSL_set1_host(ssl, name.c_str()) == 1 &&
         SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
  }
  if (!ok) {
    SSL_free(ssl);
    return refuse(fmt::format("\"{}\" is not a name that a certificate can carry", name));
  }
  return ssl;
}

ssl_st* new_server_ssl(const SslContext& context) {
  SSL* ssl = SSL_new(context.get());
  if (ssl == nullptr) throw std::bad_alloc{};
  return ssl;
}

Error tls_error(ssl_st* ssl, unsigned long code) {
  ERR_clear_error();
  const long verified = SSL_get_verify_result(ssl);
  if (verified != X509_V_OK)
    return fail(ErrorCode::forbidden, fmt::format("the certificate is not trusted: {}",
                                                  X509_verify_cert_error_string(verified)));
  const char* reason = ERR_reason_error_string(code);
  const std::string words = reason != nullptr ? reason : fmt::format("OpenSSL error {:#x}", code);
  if (ERR_GET_LIB(code) == ERR_LIB_SSL && is_certificate_alert(ERR_GET_REASON(code)))
    return fail(ErrorCode::forbidden, "the peer does not accept our certificate: " + words);
  if (ERR_GET_REASON(code) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return fail(ErrorCode::forbidden, "the peer has no certificate: " + words);
  return fail(ErrorCode::protocol, "TLS failed: " + words);
}

}  // namespace kwatt::net
