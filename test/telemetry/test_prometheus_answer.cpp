#include <cmath>

#include <doctest/doctest.h>

#include "telemetry/prometheus_answer.hpp"

namespace kwatt::telemetry {
namespace {

const std::vector<std::string> kWanted{"node", "instance"};

std::string vector_of(const std::string& elements) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + elements + "]}}";
}

TEST_SUITE("telemetry") {
  TEST_CASE("an instant vector is read with the labels that were asked for") {
    const auto series = parse_instant_vector(
        R"({"status":"success","warnings":["a"],"isPartial":false,"data":{"resultType":"vector",)"
        R"("stats":{"samples":{"peak":[1,[2]]}},"result":[)"
        R"({"metric":{"__name__":"w","node":"n1","zone":"psys"},"value":[1763674000.5,"12.5"]},)"
        R"({"value":[1763674000,"3"],"metric":{"instance":"n2:9100"},"histogram":[1,{"a":"b"}]}]}})",
        kWanted);
    REQUIRE(series.has_value());
    REQUIRE(series->size() == 2);
    CHECK(series->at(0).label("node") == "n1");
    CHECK(series->at(0).label("zone") == "");
    CHECK(series->at(0).value == 12.5);
    CHECK(series->at(0).time == 1763674000.5);
    CHECK(series->at(1).label("instance") == "n2:9100");
    CHECK(series->at(1).time == 1763674000);
  }

  TEST_CASE("values are what Prometheus writes, and other texts are told apart") {
    const auto value = [](const std::string& text) {
      return parse_instant_vector(vector_of(R"({"metric":{},"value":[1,")" + text + "\"]}"),
                                  kWanted)
          ->front();
    };
    CHECK(value("1e+06").value == 1e6);
    CHECK(value("-0.25").value == -0.25);
    CHECK(std::isnan(value("NaN").value));
    CHECK(std::isinf(value("+Inf").value));
    CHECK(std::isinf(value("-Inf").value));
    CHECK(value("NaN").is_number);
    for (const char* text : {"", "x", "1 ", " 1", "1,5", "0x10"}) {
      CAPTURE(text);
      CHECK_FALSE(value(text).is_number);
    }
  }

  TEST_CASE("what is no answer of Prometheus is refused with the reason") {
    struct Case {
      std::string body, message;
    };
    const Case cases[] = {
        {"", "not JSON"},
        {"<!DOCTYPE html><html><body>login</body></html>", "not JSON"},
        {R"({"status":"success","data":{"resultType":"vector","result":[)", "not JSON"},
        {"{}", "it has no status"},
        {"[]", "a list where it does not belong"},
        {"17", "another type"},
        {R"("text")", "a text where it does not belong"},
        {R"({"status":"success"})", "gives a nothing"},
        {R"({"status":"success","data":[]})", "gives a nothing"},
        {R"({"status":"success","data":{"resultType":"matrix","result":[]}})", "gives a matrix"},
        {R"({"status":"success","data":{"resultType":"scalar","result":[1,"2"]}})", "another type"},
        {R"({"status":"success","data":{"resultType":"vector","result":{}}})", "must be a list"},
        {vector_of("1"), "another type"},
        {vector_of("[]"), "a list where it does not belong"},
        {vector_of(R"({"metric":{}})"), "without a value"},
        {vector_of(R"({"metric":{},"value":[]})"), "a time and a text"},
        {vector_of(R"({"metric":{},"value":[1]})"), "a time and a text"},
        {vector_of(R"({"metric":{},"value":["1","2"]})"), "a time and a text"},
        {vector_of(R"({"metric":{},"value":[1,2]})"), "another type"},
        {vector_of(R"({"metric":{},"value":[1,"2","3"]})"), "a time and a text"},
        {vector_of(R"({"metric":{"node":1},"value":[1,"2"]})"), "another type"},
        {vector_of(R"({"metric":{"node":{}},"value":[1,"2"]})"), "an object where"},
        {vector_of(R"({"metric":{"node":")" + std::string(1025, 'x') + R"("},"value":[1,"2"]})"),
         "label node is too long"},
        {R"({"x":)" + std::string(40, '[') + std::string(40, ']') + "}", "nested too deep"},
        {"{\"status\":\"\xff\"}", "not JSON"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.body);
      const auto series = parse_instant_vector(c.body, kWanted);
      REQUIRE_FALSE(series.has_value());
      CHECK(series.error().code == ErrorCode::parse);
      CHECK_MESSAGE(series.error().message.find(c.message) != std::string::npos,
                    series.error().message);
    }
  }

  TEST_CASE("refusals of Prometheus keep their type and its words") {
    struct Case {
      const char* type;
      ErrorCode code;
    };
    const Case cases[] = {
        {"bad_data", ErrorCode::invalid_argument}, {"execution", ErrorCode::invalid_argument},
        {"timeout", ErrorCode::timeout},           {"canceled", ErrorCode::cancelled},
        {"unavailable", ErrorCode::unavailable},   {"internal", ErrorCode::internal}};
    for (const Case& c : cases) {
      CAPTURE(c.type);
      const auto series = parse_instant_vector(
          R"({"status":"error","errorType":")" + std::string(c.type) + R"(","error":"its words"})",
          kWanted);
      REQUIRE_FALSE(series.has_value());
      CHECK(series.error().code == c.code);
      CHECK(series.error().server_text == "its words");
    }
  }

  TEST_CASE("an answer with more series than any cluster has nodes is refused") {
    std::string elements;
    for (std::size_t i = 0; i <= kMostSeries; ++i) {
      elements += i == 0 ? "" : ",";
      elements += R"({"metric":{},"value":[1,"2"]})";
    }
    const auto series = parse_instant_vector(vector_of(elements), kWanted);
    REQUIRE_FALSE(series.has_value());
    CHECK(series.error().message.find("more series") != std::string::npos);
  }
}

}  // namespace
}  // namespace kwatt::telemetry
