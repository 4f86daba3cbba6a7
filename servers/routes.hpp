#pragma once
// Several handlers on one server, by path.
#include <string>
#include <vector>

#include "net/server.hpp"

namespace kwatt::servers {

struct Route {
  std::string path;  // exact, without the query: "/history"
  net::Handler handler;
};

// The handler of the route whose path the request has, else `otherwise`.
net::Handler routes(std::vector<Route> known, net::Handler otherwise);

}  // namespace kwatt::servers
