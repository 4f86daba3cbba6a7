#include "servers/routes.hpp"

#include <utility>

namespace kwatt::servers {

net::Handler routes(std::vector<Route> known, net::Handler otherwise) {
  return [known = std::move(known), otherwise = std::move(otherwise)](net::Request request) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    for (const Route& route : known) {
      if (route.path == path) return route.handler(std::move(request));
    }
    return otherwise(std::move(request));
  };
}

}  // namespace kwatt::servers
