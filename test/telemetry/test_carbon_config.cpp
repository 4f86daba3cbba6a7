#include <fstream>
#include <sstream>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "telemetry/carbon_config.hpp"
#include "test/support/source_dir.hpp"

namespace kwatt::telemetry {
namespace {

TEST_CASE("carbon sources: what is wrong is told with file and place") {
  const auto one = [](const std::string& source) { return R"({"sources":[)" + source + "]}"; };
  struct Case {
    std::string json;
    std::string_view complaint;
  };
  for (const Case& each : {
           Case{"{", "c.json: byte 1: this is no JSON"},
           Case{"[]", "c.json: /: an object is expected"},
           Case{R"({"source":[]})", "c.json: /source: there is no such field; there are: sources"},
           Case{R"({"sources":[]})", "c.json: /sources: a list of 1 to 64 sources is expected"},
           Case{one(R"({"csv":{"path":"a"}})"), "c.json: /sources/0/name: it is missing"},
           Case{one(R"({"name":"a"})"),
                "c.json: /sources/0: one of csv, prometheus and http is expected"},
           Case{one(R"({"name":"a","csv":{"path":"a"},"http":{}})"), "c.json: /sources/0: one of"},
           Case{one(R"({"name":"a","csv":{"path":"a"}},{"name":"a","csv":{"path":"b"}})"),
                "c.json: /sources/1/name: another source has this name"},
           Case{one(R"({"name":"a","csv":{"path":7}})"),
                "c.json: /sources/0/csv/path: a text is expected"},
           Case{one(R"({"name":"a","csv":{"path":"a","skipBad":1}})"),
                "c.json: /sources/0/csv/skipBad: true or false is expected"},
           Case{one(R"({"name":"a","csv":{"path":"a","step":"0s"}})"),
                "c.json: /sources/0/csv/step: a duration such as 10s is expected, at most 24h"},
           Case{one(R"({"name":"a","http":{"url":"https://x/","unti":"g/kWh"}})"),
                "c.json: /sources/0/http/unti: there is no such field; there are: caFile, header"},
           Case{one(R"({"name":"a","http":{"url":"https://x/","unit":"g/MJ"}})"),
                "c.json: /sources/0/http/: unit: \"g/MJ\" is not known"},
           Case{one(R"({"name":"a","http":{"url":"https://x/","header":"k"}})"),
                "c.json: /sources/0/http/header: header and secretFile go together"},
           Case{one(R"({"name":"a","prometheus":{"url":"prom:9090","query":"x"}})"),
                "c.json: /sources/0/prometheus/url: "},
           Case{one(R"({"name":"a","prometheus":{"url":"http://prom:9090"}})"),
                "c.json: /sources/0/prometheus/query: it is missing"},
       }) {
    const auto read = parse_carbon_config(each.json, "c.json");
    REQUIRE_FALSE(read.has_value());
    INFO(read.error().message);
    CHECK(read.error().code == ErrorCode::parse);
    CHECK(read.error().message.starts_with(each.complaint));
  }
}

TEST_CASE("carbon sources: each is made only where the allow-list has its host") {
  const auto config = parse_carbon_config(
      R"({"sources":[{"name":"p","prometheus":{"url":"http://127.0.0.1:9090","query":"x"}},
        {"name":"h","http":{"url":"https://api.example.com/h?zone={zone}"}},
        {"name":"f","csv":{"path":"ci.csv"}}]})",
      "c.json");
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  boost::asio::io_context io;
  CarbonWorld world;
  world.read_file = [](const std::string&) { return Result<std::string>(""); };
  const auto made = [&](std::size_t index) {
    const auto source = make_carbon_source(io.get_executor(), (*config)[index], world);
    return source ? "made " + (*source)->name() : source.error().message;
  };
  CHECK(made(0) == "p: 127.0.0.1 is not allowed");
  CHECK(made(1).starts_with("h: api.example.com is not allowed: "));
  CHECK(made(2) == "made f");
  world.allowed = *net::AllowList::parse({"127.0.0.1,api.example.com"}, net::AllowList::Bare::both);
  CHECK(made(0) == "made p");
  CHECK(made(1) == "made h");
}

TEST_CASE("the examples of the reference page are carbon sources") {
  const std::string page = test::source_path("docs/reference/carbon-sources.md");
  std::ifstream in(page);
  REQUIRE(in.good());
  std::string line, block;
  bool inside = false;
  std::size_t found = 0;
  while (std::getline(in, line)) {
    if (inside && line == "```") {
      const auto read = parse_carbon_config(block, page);
      CHECK_MESSAGE(read.has_value(), block, " ", read ? "" : read.error().message);
      block.clear();
      inside = false;
      ++found;
    } else if (inside) {
      block += line + "\n";
    } else if (line == "```json") {
      inside = true;
    }
  }
  CHECK(found >= 4);
}

}  // namespace
}  // namespace kwatt::telemetry
