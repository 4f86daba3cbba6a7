#pragma once
// Private to net/. OpenSSL contexts from PEM texts, and OpenSSL's errors in words.
#include <memory>
#include <string>

#include "net/http.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace kwatt::net {

using SslContext = std::shared_ptr<ssl_ctx_st>;

// TLS >= 1.2. Client: the chain is always verified, against ca_pem or else the system's roots.
// Server: needs certificate and key; with ca_pem it demands a client certificate issued by it.
// Errors: invalid_argument, naming the text that OpenSSL refused.
Result<SslContext> client_context(const TlsConfig& config);
Result<SslContext> server_context(const TlsConfig& config);

// A new connection of this context. Client: verifies `name` (a DNS name, sent as SNI too, or an IP
// address) against the certificate. Owned by the caller, who gives it to asio::ssl::stream.
// Errors: invalid_argument for a name that no certificate can carry.
Result<ssl_st*> new_client_ssl(const SslContext& context, std::string name);
ssl_st* new_server_ssl(const SslContext& context);

// The error of a failed TLS operation from OpenSSL's code: forbidden when we do not trust the
// peer's certificate or the peer does not accept ours, else protocol.
Error tls_error(ssl_st* ssl, unsigned long code);

}  // namespace kwatt::net
