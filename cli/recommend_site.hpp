#pragma once
// What `recommend-site` asks and shows. Pure.
#include <string>
#include <vector>

#include "api/site_recommendation.hpp"
#include "base/result.hpp"

namespace kwatt::cli {

struct RecommendOptions {
  std::string name;            // of a SiteRecommendation; "": asked with the options below
  std::string namespace_name;  // "": of the kubeconfig's context
  std::string region, isp, cpu, memory, normalize;
  std::int64_t gpus = 0, ips = 0, mbps = 0, workloads = 1, count = 1;
  std::vector<std::string> weights;   // Carbon=2, X=10, cost=3:low
  std::vector<std::string> affinity;  // names of sites
  bool explain = false;
};

// The request that the options make. Errors: invalid_argument, naming the option.
Result<api::SiteRecommendationSpec> request_of(const RecommendOptions& options);

// The answer for people: the sites in their order, then those that do not fit, with `explain` each
// score with its sentence.
std::string text_of(const api::SiteRecommendationStatus& status, bool explain);

}  // namespace kwatt::cli
