#pragma once
// Closed lists of words that specs may hold, where the C++ type is a string. The CRDs hold the same
// lists; a test compares them.
#include <array>
#include <string_view>

namespace kwatt::api {

// cpufreq governors of the kernel; an agent refuses those its machine does not offer.
inline constexpr std::array<std::string_view, 6> kGovernors{
    "performance", "powersave", "ondemand", "conservative", "schedutil", "userspace"};

// energy_performance_preference of intel_pstate and amd-pstate; a number 0..255 is allowed, too.
inline constexpr std::array<std::string_view, 5> kEnergyPreferences{
    "default", "performance", "balance_performance", "balance_power", "power"};

// Operators of a LabelSelector.
inline constexpr std::array<std::string_view, 4> kSelectorOperators{"In", "NotIn", "Exists",
                                                                    "DoesNotExist"};

// The reasons for which an action can be taken, and so be limited by a disruption budget.
inline constexpr std::array<std::string_view, 10> kBudgetReasons{
    "Idle",     "LowUtilization", "PendingPods", "HighLoad", "PowerHigh",
    "Headroom", "Scheduled",      "Manual",      "Carbon",   "OverBudget"};

// Schemes of spec.bmc.address.
inline constexpr std::array<std::string_view, 8> kBmcSchemes{
    "redfish+https", "redfish+http", "ipmi", "wol", "command", "metal3", "lab", "lab+http"};

// Effects of a taint that a SiteRecommendation tolerates; "" is all of them.
inline constexpr std::array<std::string_view, 4> kToleratedEffects{"", "NoSchedule",
                                                                   "PreferNoSchedule", "NoExecute"};

// What a SiteRecommendation can weigh beside indicators: placement/sites/ has a plugin for each.
inline constexpr std::array<std::string_view, 6> kSiteScorers{
    "NetworkFlow", "ResourceMgmt", "CPUOverload", "Taint", "EnergyIncrease", "Carbon"};

}  // namespace kwatt::api
