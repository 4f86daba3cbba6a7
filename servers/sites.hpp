#pragma once
// POST /apis/sites/recommendations: the choice of a site for callers outside Kubernetes.
//
// The body holds the fields of a SiteRecommendation's spec, the answer those of its status. Nothing
// is stored: `action: Create` and `propagation` need an object, and are refused. Who calls is told
// by a bearer token of audience kwatt, as for /history; the right is "post" on the path.
#include <functional>

#include "net/server.hpp"
#include "placement/sites/recommend.hpp"
#include "servers/access_reviewer.hpp"
#include "servers/token_reviewer.hpp"

namespace kwatt::servers {

inline constexpr const char* kSitesPath = "/apis/sites/recommendations";
inline constexpr std::size_t kSitesBody = 64 * 1024;  // bytes of a request
inline constexpr int kSitesAtOnce = 16;               // more at the same time are refused

struct SitesDependencies {
  TokenReviewer& tokens;
  AccessReviewer& access;
  // Errors: unavailable, timeout (503), invalid_argument (400).
  std::function<net::Task<Result<placement::sites::SiteAnswer>>(api::SiteRecommendationSpec)>
      advise;
  const Clock& clock;
};

// 200; 400 with what is wrong and where; 401, 403; 405; 413 a body that is too large; 503 too much
// to do, or what the answer needs cannot be had. The dependencies outlive the handler.
net::Handler sites_handler(SitesDependencies dependencies);

// The request in a body. Unknown members are refused: a misspelt one would be a wish unheard.
// Errors: invalid_argument, one sentence for all problems. Pure.
Result<api::SiteRecommendationSpec> parse_site_request(std::string_view body);

}  // namespace kwatt::servers
