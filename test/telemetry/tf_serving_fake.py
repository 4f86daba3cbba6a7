"""A fake of TensorFlow Serving's REST API, written by hand: there is no package of the real one for this system.

Its model `konohana` has WAO's four inputs and answers 100 + 10·(1·usage + 2·ambient + 3·cpu1 + 4·cpu2) watts. Other
names of models make it fail in the ways the real one and its models do.
"""
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def watts(row):
    return 100 + 10 * sum(weight * value for weight, value in zip((1, 2, 3, 4), row))


class TfServingFake:
    def __init__(self):
        fake = self
        self.requests = []  # (path, headers, body)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.requests.append((self.path, dict(self.headers), body))
                status, answer = fake.answer(self.path, body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path, body):
        model = path.removeprefix("/v1/models/").split(":")[0].split("/")[0]
        if model == "nan":
            return 200, {"outputs": [[float("nan")] for _ in body["inputs"]]}
        if model == "slow":
            time.sleep(3)
        if model == "huge":
            return 200, b'{"outputs":[' + b" " * (5 << 20) + b"]}"
        if model not in ("konohana", "slow"):
            return 404, {"error": f"Servable not found for request: Latest({model})"}
        if body.get("signature_name", "serving_default") not in ("konohana", "serving_default"):
            return 400, {"error": 'Serving signature name: "other" not found in signature def'}
        if any(len(row) != 4 for row in body["inputs"]):
            return 400, {"error": "Tensor inputs, shape incompatible"}
        return 200, {"outputs": [[watts(row)] for row in body["inputs"]]}

    def url(self, model="konohana"):
        return f"http://127.0.0.1:{self.port}/v1/models/{model}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
