// The rules of NodePower: those of crds/nodepowers.yaml once more.
#include "api/node_power.hpp"
#include "api/problems.hpp"
#include "api/validate_parts.hpp"
#include "api/words.hpp"

namespace kwatt::api {
namespace {

void check(const BmcSpec& bmc, Problems& out) {
  check_secret(bmc.credentials_secret_ref, "spec.bmc.credentialsSecretRef", out);
  check_secret(bmc.ca_secret_ref, "spec.bmc.caSecretRef", out);
  out.length("spec.bmc.address", bmc.address, 1024);
  if (bmc.address.empty()) return;
  const std::size_t colon = bmc.address.find(':');
  const std::string_view scheme = std::string_view{bmc.address}.substr(0, colon);
  const bool known = std::find(kBmcSchemes.begin(), kBmcSchemes.end(), scheme) != kBmcSchemes.end();
  const bool complete = colon != std::string::npos && colon + 1 < bmc.address.size() &&
                        bmc.address.find_first_of(" \t\n\r\f\v") == std::string::npos;
  if (!known || !complete) {
    out.add("spec.bmc.address",
            "\"{}\" must be an address with one of the schemes {}, such as "
            "redfish+https://10.0.0.7/redfish/v1/Systems/1",
            bmc.address, fmt::join(kBmcSchemes, ", "));
  }
}

void check(const PowerModelSpec& model, Problems& out) {
  const auto& curve = model.curve_milliwatts;
  if (!curve.empty() && curve.size() != 11) {
    out.add("spec.model.curveMilliwatts", "{} points must be 11, for 0, 10 … 100 % load, or none",
            curve.size());
  }
  for (std::size_t i = 0; i < curve.size(); ++i) {
    out.within(fmt::format("spec.model.curveMilliwatts[{}]", i), curve[i], 0, 1'000'000'000);
  }
  if (!std::is_sorted(curve.begin(), curve.end())) {
    out.add("spec.model.curveMilliwatts",
            "a machine must not draw less at more load: sort the "
            "points in rising order");
  }
  out.within("spec.model.idleMilliwatts", model.idle_milliwatts, 0, 1'000'000'000);
  out.within("spec.model.maxMilliwatts", model.max_milliwatts, 0, 1'000'000'000);
  if (model.idle_milliwatts > model.max_milliwatts) {
    out.add("spec.model.idleMilliwatts", "{} must not be above maxMilliwatts ({}); give both",
            model.idle_milliwatts, model.max_milliwatts);
  }
  out.within("spec.model.bootSeconds", model.boot_seconds, 0, 86'400);
  out.within("spec.model.bootJoules", model.boot_joules, 0, 1'000'000'000);
  out.within("spec.model.shutdownSeconds", model.shutdown_seconds, 0, 86'400);
  out.within("spec.model.opsPerJoule", model.ops_per_joule, 0, 1'000'000'000'000);
  out.within("spec.model.standbyMilliwatts", model.standby_milliwatts, 0, 1'000'000);
}

}  // namespace

std::vector<std::string> validate(const NodePowerSpec& spec) {
  Problems out;
  check(spec.bmc, out);
  check(spec.model, out);
  out.within("spec.capRange.minWatts", spec.cap_range.min_watts, 0, 1'000'000);
  out.within("spec.capRange.maxWatts", spec.cap_range.max_watts, 0, 1'000'000);
  if (spec.cap_range.max_watts > 0 && spec.cap_range.min_watts > spec.cap_range.max_watts) {
    out.add("spec.capRange.minWatts", "{} must not be above maxWatts ({})",
            spec.cap_range.min_watts, spec.cap_range.max_watts);
  }
  return out.take();
}

}  // namespace kwatt::api
