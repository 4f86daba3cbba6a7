// Reads specs, one JSON text a line, and writes for each what the C++ side has against it: "ok", or
// the first sentence. test_random_specs.py compares that with a real API server.
//
//   judge-specs KIND < specs
#include <algorithm>
#include <iostream>
#include <map>
#include <string>

#include "api/decode.hpp"

namespace {

template <class Kind>
std::string judge(const std::string& spec) {
  Kind object;
  const auto done = kwatt::api::decode("{\"spec\":" + spec + "}", object);
  if (!done) return done.error().message;
  const auto problems = kwatt::api::validate(object.spec);
  return problems.empty() ? "ok" : problems.front();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kwatt::api;
  const std::map<std::string, std::string (*)(const std::string&)> kinds{
      {"EnergyPolicy", judge<EnergyPolicy>},
      {"NodePower", judge<NodePower>},
      {"Site", judge<Site>},
      {"SiteRecommendation", judge<SiteRecommendation>}};
  const auto kind = kinds.find(argc == 2 ? argv[1] : "");
  if (kind == kinds.end()) {
    std::cerr << "usage: judge-specs EnergyPolicy|NodePower|Site|SiteRecommendation < specs\n";
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer = kind->second(line);
    std::replace(answer.begin(), answer.end(), '\n', ' ');  // a value may hold one
    std::cout << answer << '\n';
  }
  return 0;
}
