#include "cli/read.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/describe_meta.hpp"
#include "kube/path.hpp"
#include "kube/status_error.hpp"

namespace kwatt::api {

// Their tables are in api/, only those of events are here.
extern template const TypeInfo& type_of<EnergyPolicy>();
extern template const TypeInfo& type_of<NodePower>();
extern template const TypeInfo& type_of<Site>();
extern template const TypeInfo& type_of<SiteRecommendation>();

template <>
struct Describe<cli::EventSeries> {
  static constexpr std::string_view name = "EventSeries";
  static constexpr auto fields =
      std::array{field<&cli::EventSeries::count>("count"),
                 field<&cli::EventSeries::last_observed_time>("lastObservedTime")};
};

template <>
struct Describe<cli::EventView> {
  static constexpr std::string_view name = "Event";
  static constexpr auto fields =
      std::array{field<&cli::EventView::meta>("metadata"),
                 field<&cli::EventView::type>("type"),
                 field<&cli::EventView::reason>("reason"),
                 field<&cli::EventView::action>("action"),
                 field<&cli::EventView::note>("note"),
                 field<&cli::EventView::event_time>("eventTime"),
                 field<&cli::EventView::series>("series"),
                 field<&cli::EventView::deprecated_last_timestamp>("deprecatedLastTimestamp"),
                 field<&cli::EventView::deprecated_count>("deprecatedCount")};
};

}  // namespace kwatt::api

namespace kwatt::cli {
namespace {

constexpr Duration kIdle = std::chrono::seconds{30};
constexpr std::size_t kErrorBody = 64 * 1024;
// As kubectl asks for lists.
constexpr int kPage = 500;

struct Page {
  std::string continue_token;
};

template <class T>
kube::Task<Result<Page>> read_page(Session& session, std::string path, std::vector<T>& into) {
  auto stream = co_await session.client.open(path);
  if (!stream) co_return stream.error();
  if ((*stream)->status() < 200 || (*stream)->status() >= 300) {
    auto body = co_await (*stream)->read_all(kErrorBody, kIdle);
    if (!body) co_return body.error();
    co_return kube::to_error(
        kube::status_of_response((*stream)->status(), (*stream)->headers().get("Retry-After"),
                                 *body),
        "GET " + path);
  }
  api::ListDecoder<T> decoder(nullptr, [&into](T&& item) { into.push_back(std::move(item)); });
  for (;;) {
    auto piece = co_await (*stream)->read_some(kIdle);
    if (!piece) co_return piece.error().with_context("GET " + path);
    if (piece->empty()) break;
    if (auto fed = decoder.feed(*piece); !fed) co_return fed.error().with_context("GET " + path);
  }
  auto meta = decoder.finish();
  if (!meta) co_return meta.error().with_context("GET " + path);
  if (meta->kind == "Status") co_return kube::to_error(meta->status, "GET " + path);
  Page page;
  page.continue_token = meta->continue_token;
  co_return page;
}

}  // namespace

TimePoint EventView::last() const {
  if (series.last_observed_time) return *series.last_observed_time;
  if (deprecated_last_timestamp) return *deprecated_last_timestamp;
  if (event_time) return *event_time;
  return meta.creation_timestamp.value_or(TimePoint{});
}

std::int64_t EventView::count() const {
  return std::max<std::int64_t>({1, series.count, deprecated_count});
}

std::string_view noun(const kube::Resource& resource) {
  if (resource.plural == "nodes") return "node";
  if (resource.plural == "pods") return "pod";
  if (resource.plural == "nodepowers") return "NodePower";
  if (resource.plural == "energypolicies") return "policy";
  if (resource.plural == "sites") return "Site";
  if (resource.plural == "siterecommendations") return "SiteRecommendation";
  return resource.plural;
}

template <class T>
kube::Task<Result<T>> read(Session& session, const kube::Resource& resource, kube::Name name) {
  const std::string shown =
      name.namespace_name.empty() ? name.name : name.namespace_name + "/" + name.name;
  auto body = co_await session.client.get(resource, std::move(name));
  if (!body) {
    if (body.error().code == ErrorCode::not_found) {
      co_return fail(ErrorCode::not_found, fmt::format("there is no {} {}", noun(resource), shown));
    }
    co_return body.error();
  }
  T value;
  if (auto decoded = api::decode(*body, value); !decoded) {
    co_return decoded.error().with_context(fmt::format("{} {}", noun(resource), shown));
  }
  co_return value;
}

template <class T>
kube::Task<Result<std::vector<T>>> read_all(Session& session, const kube::Resource& resource,
                                            std::string selector, std::string namespace_name) {
  std::vector<T> all;
  std::string token;
  do {
    std::string path = fmt::format("{}?limit={}", kube::path_of(resource, namespace_name), kPage);
    if (!selector.empty()) path += "&" + selector;
    if (!token.empty()) path += "&continue=" + kube::percent_encode(token);
    auto page = co_await read_page<T>(session, std::move(path), all);
    if (!page) co_return page.error();
    token = page->continue_token;
  } while (!token.empty());
  co_return all;
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define KWATT_CLI_READ(T)                                                                  \
  template kube::Task<Result<T>> read<T>(Session&, const kube::Resource&, kube::Name);     \
  template kube::Task<Result<std::vector<T>>> read_all<T>(Session&, const kube::Resource&, \
                                                          std::string, std::string);
// NOLINTEND(bugprone-macro-parentheses)
KWATT_CLI_READ(api::Node)
KWATT_CLI_READ(api::Pod)
KWATT_CLI_READ(api::NodePower)
KWATT_CLI_READ(api::EnergyPolicy)
KWATT_CLI_READ(api::Site)
KWATT_CLI_READ(api::SiteRecommendation)
KWATT_CLI_READ(EventView)
#undef KWATT_CLI_READ

std::string field_selector(std::string_view key, std::string_view value) {
  return "fieldSelector=" + kube::percent_encode(fmt::format("{}={}", key, value));
}

std::optional<Kind> kind_of(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, Kind>, 14> kWords{
      {{"node", Kind::node},
       {"nodes", Kind::node},
       {"no", Kind::node},
       {"nodepower", Kind::node},
       {"nodepowers", Kind::node},
       {"npw", Kind::node},
       {"policy", Kind::policy},
       {"policies", Kind::policy},
       {"energypolicy", Kind::policy},
       {"energypolicies", Kind::policy},
       {"enp", Kind::policy},
       {"pod", Kind::pod},
       {"pods", Kind::pod},
       {"po", Kind::pod}}};
  for (const auto& [known, kind] : kWords) {
    if (known == word) return kind;
  }
  return std::nullopt;
}

Result<std::string> object_name(const std::string& name, std::string_view what) {
  const bool good =
      !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      });
  if (good) return name;
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is not the name of a {}: lower-case letters, digits, '-' and '.'",
                          name, what));
}

namespace {

Result<std::string> named(const std::string& argument, Kind wanted, std::string_view what) {
  const auto slash = argument.find('/');
  if (slash == std::string::npos) return object_name(argument, what);
  if (kind_of(std::string_view(argument).substr(0, slash)) != wanted) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a {}; write {}/NAME or NAME", argument, what, what));
  }
  return object_name(argument.substr(slash + 1), what);
}

}  // namespace

Result<std::string> node_name(const std::string& argument) {
  return named(argument, Kind::node, "node");
}

Result<std::string> policy_name(const std::string& argument) {
  return named(argument, Kind::policy, "policy");
}

}  // namespace kwatt::cli
