#pragma once
// Tables that Site and SiteRecommendation share.
#include "api/describe.hpp"
#include "api/site.hpp"

namespace kwatt::api {

template <>
struct Describe<SiteResources> {
  static constexpr std::string_view name = "SiteResources";
  static constexpr auto fields =
      std::array{written<&SiteResources::cpu_millicores>("cpuMillicores"),
                 written<&SiteResources::memory_mebibytes>("memoryMebibytes"),
                 written<&SiteResources::gpus>("gpus"), written<&SiteResources::ips>("ips")};
};

}  // namespace kwatt::api
