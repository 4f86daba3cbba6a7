// What the estimator's API offers, for machines. Own words for the interface that WAO-Estimator's
// clients use; test/servers holds it against the running server with schemathesis.
#include "servers/estimator.hpp"

namespace kwatt::servers {

std::string estimator_openapi(bool keyed) {
  constexpr std::string_view kDocument = R"json({
  "openapi": "3.1.0",
  "info": {
    "title": "kwatt estimator",
    "version": "1.0.0",
    "description": "What more power a cluster would draw with more workloads. Compatible with WAO-Estimator."
  },
  "paths": {
    "/namespaces/{ns}/estimators/{name}/values/powerconsumption": {
      "parameters": [
        {"name": "ns", "in": "path", "required": true, "description": "Namespace of the Estimator.",
         "schema": {"type": "string", "minLength": 1, "maxLength": 253, "example": "default"}},
        {"name": "name", "in": "path", "required": true, "description": "Name of the Estimator.",
         "schema": {"type": "string", "minLength": 1, "maxLength": 253, "example": "default"}}
      ],
      "post": {
        "operationId": "estimatePowerConsumption",
        "summary": "The least increase of power for 1, 2, ... workloads, cumulative, in watts.",
        "security": [@SECURITY@],
        "requestBody": {
          "required": true,
          "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Question"}}}
        },
        "responses": {
          "200": {"description": "The estimate.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PowerConsumption"}}}},
          "400": {"description": "The request is wrong; in plain text where it is not even HTTP.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
                        "text/plain": {"schema": {"type": "string"}}}},
          "401": {"$ref": "#/components/responses/Error"},
          "404": {"$ref": "#/components/responses/Error"},
          "500": {"$ref": "#/components/responses/Error"},
          "503": {"$ref": "#/components/responses/Error"}
        }
      }
    }
  },
  "components": {
    "securitySchemes": {
      "apiKeyAuth": {"type": "apiKey", "in": "header", "name": "X-API-KEY",
        "description": "Only where the controller has --estimator-api-key-file."}
    },
    "responses": {
      "Error": {
        "description": "Why there is no estimate: 401 the key, 404 there is no such Estimator, 500 there are no nodes, 503 there is too much to do.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      }
    },
    "schemas": {
      "Question": {
        "type": "object",
        "required": ["cpu_milli", "num_workloads"],
        "properties": {
          "cpu_milli": {"type": "integer", "minimum": 0, "maximum": 1000000000, "examples": [500],
            "description": "CPU that each workload requests, in thousandths of a CPU."},
          "num_workloads": {"type": "integer", "minimum": 1, "maximum": 10000, "examples": [5],
            "description": "How many workloads."},
          "watt_increases": {"type": ["array", "null"], "items": {"type": "number"},
            "description": "Passed over."}
        }
      },
      "PowerConsumption": {
        "type": "object",
        "required": ["cpu_milli", "num_workloads", "watt_increases"],
        "properties": {
          "cpu_milli": {"type": "integer"},
          "num_workloads": {"type": "integer"},
          "watt_increases": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 10000,
            "description": "Entry n: watts that n workloads add at least. 1.7976931348623157e+308: they do not fit."}
        }
      },
      "Error": {
        "type": "object",
        "required": ["code", "message"],
        "properties": {
          "code": {"type": "string", "examples": ["ErrEstimatorInvalidRequest"],
            "description": "A stable word, as WAO's clients know it."},
          "message": {"type": "string", "description": "A sentence."}
        }
      }
    }
  }
}
)json";
  constexpr std::string_view kMark = "@SECURITY@";
  std::string text(kDocument);
  return text.replace(text.find(kMark), kMark.size(), keyed ? R"({"apiKeyAuth": []})" : "");
}

}  // namespace kwatt::servers
