#include "controller/api_has.hpp"

#include <fmt/format.h>

namespace kwatt::controller {
namespace {

// A group's list of resources is a few KiB; what is longer is not one.
constexpr std::size_t kLongestAnswer = 1024 * 1024;

}  // namespace

kube::Task<std::optional<bool>> api_has(kube::Client& client, kube::Resource resource) {
  auto stream = co_await client.open(fmt::format("/apis/{}/{}", resource.group, resource.version));
  if (!stream) co_return std::nullopt;
  if ((*stream)->status() == 404) co_return false;
  if ((*stream)->status() != 200) co_return std::nullopt;
  std::string body;
  while (body.size() <= kLongestAnswer) {
    auto piece = co_await (*stream)->read_some(std::chrono::seconds{10});
    if (!piece) co_return std::nullopt;
    if (piece->empty()) co_return body.find("\"" + resource.plural + "\"") != std::string::npos;
    body += *piece;
  }
  co_return std::nullopt;
}

}  // namespace kwatt::controller
