#include <doctest/doctest.h>

#include "base/log.hpp"

using namespace kwatt;

TEST_CASE("log: one line per event in both formats, with escapes") {
  CHECK(log::render(log::Format::logfmt, log::Level::info, "node off",
                    {{"node", "n1"}, {"watts", 12}, {"text", "a \"b\"\nc"}, {"ok", true}}) ==
        R"(level=info msg="node off" node=n1 watts=12 text="a \"b\"\nc" ok=true)");
  CHECK(log::render(log::Format::json, log::Level::warn, "x", {{"node", "n\t1"}, {"n", 3}}) ==
        R"({"level":"warn","msg":"x","node":"n\t1","n":3})");
}

TEST_CASE("log: an error shows its sentence and apart from it what the peer said") {
  const Error error = fail(ErrorCode::conflict, "writing", "object modified");
  CHECK(log::render(log::Format::logfmt, log::Level::error, "failed", {{"error", error}}) ==
        "level=error msg=failed error=\"writing (answer: object modified)\"");
}

TEST_CASE("log: levels and formats by name") {
  CHECK(log::parse_level("debug") == log::Level::debug);
  CHECK_FALSE(log::parse_level("loud").has_value());
  CHECK(log::parse_format("json") == log::Format::json);
  CHECK_FALSE(log::parse_format("xml").has_value());
}
