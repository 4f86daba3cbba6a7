#include <doctest/doctest.h>

#include "agent/options.hpp"

namespace kwatt::agent {
namespace {

ParsedOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kwatt-agent");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST_CASE("only the node's name is needed, the rest has the documented defaults") {
  const auto parsed = parse({"--node-name", "n1"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->node_name == "n1");
  CHECK(parsed.options->sysfs_root == "/sys");
  CHECK(parsed.options->proc_root == "/proc");
  CHECK(parsed.options->restore_after == std::chrono::minutes{10});
  CHECK(parsed.options->sample_interval == std::chrono::seconds{1});
  CHECK(parsed.options->push_interval == std::chrono::seconds{10});
  CHECK(parsed.options->lease_namespace == "kwatt-system");
  CHECK(parsed.options->lease_name == "kwatt-controller");
  CHECK((parsed.options->log_format == log::Format::json));
}

TEST_CASE("durations are written as Go does") {
  const auto parsed = parse({"--node-name", "n1", "--restore-after", "1h30m", "--sample-interval",
                             "250ms", "--push-interval", "2s", "--log-format", "logfmt"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->restore_after == std::chrono::minutes{90});
  CHECK(parsed.options->sample_interval == std::chrono::milliseconds{250});
  CHECK(parsed.options->push_interval == std::chrono::seconds{2});
  CHECK((parsed.options->log_format == log::Format::logfmt));
}

TEST_CASE("the command restore takes the options on either side") {
  CHECK_FALSE(parse({"--node-name", "n1"}).options->restore);
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"restore", "--node-name", "n1"},
        std::vector<const char*>{"--node-name", "n1", "restore"}}) {
    const auto parsed = parse(words);
    REQUIRE(parsed.options);
    CHECK(parsed.options->restore);
    CHECK(parsed.options->node_name == "n1");
  }
}

TEST_CASE("mistakes end with status 2, help and version with 0") {
  const std::vector<std::vector<const char*>> mistakes{
      {"--node-name", "n1", "--restore-after", "5"},
      {"--node-name", "n1", "--sample-interval", "1ms"},
      {"--node-name", "n1", "--controller-url", "ftp://x"},
      {"--node-name", "n1", "--log-level", "loud"},
      {"--node-name", "n1", "--no-such-option"}};
  for (const auto& arguments : mistakes) {
    CAPTURE(arguments.back());
    const auto parsed = parse(arguments);
    CHECK_FALSE(parsed.options);
    CHECK(parsed.exit_code == 2);
  }
  for (const char* word : {"--help", "--version"}) {
    const auto parsed = parse({word});
    CHECK_FALSE(parsed.options);
    CHECK(parsed.exit_code == 0);
  }
}

}  // namespace
}  // namespace kwatt::agent
