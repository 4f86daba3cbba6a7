"""What an Estimator asks, in one server: a model server that speaks KServe V2, WAO's pressure sensors and an
ipmi_exporter. `mode` says how the model behaves: good, nan, slow or broken."""
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

INPUTS = ("CPUUsage", "LogicalProcessors", "AmbientTemp", "StaticPressureDiff")


class Peers:
    def __init__(self):
        peers = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self, status, text, kind="application/json"):
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                peers.seen.append((self.path, dict(self.headers), None))
                if self.path.startswith("/api/sensor/"):
                    self.answer(200, json.dumps({"code": 200, "sensor": [
                        {"pressure": 0.5, "sensorid": "101037B", "temperature": 26.0}]}))
                elif self.path == "/metrics":
                    self.answer(200, 'ipmi_temperature_celsius{id="1",name="Ambient Temp"} 20\n', "text/plain")
                elif self.path == "/v2/models/model1/versions/v0.1.0":
                    self.answer(200, json.dumps({
                        "name": "model1", "versions": ["v0.1.0"], "platform": "xgboost",
                        "inputs": [{"name": name, "datatype": "FP32", "shape": [-1, 1]} for name in INPUTS],
                        "outputs": [{"name": "predict", "datatype": "FP64", "shape": [-1, 1]}]}))
                else:
                    self.answer(404, "{}")

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                peers.seen.append((self.path, dict(self.headers), body))
                columns = {one["name"]: flat(one["data"]) for one in body["inputs"]}
                watts = [100 + 200 * usage + 2 * ambient + 4 * pressure for usage, ambient, pressure in
                         zip(columns["CPUUsage"], columns["AmbientTemp"], columns["StaticPressureDiff"])]
                if peers.mode == "slow":
                    time.sleep(8)
                if peers.mode == "broken":
                    return self.answer(500, '{"error":"out of order"}')
                text = json.dumps({"model_name": "model1", "outputs": [
                    {"name": "predict", "shape": [len(watts), 1], "datatype": "FP64", "data": watts}]})
                self.answer(200, text.replace(f"{watts[0]}", "NaN", 1) if peers.mode == "nan" else text)

        self.mode, self.seen = "good", []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def flat(data):
    return [one[0] if isinstance(one, list) else one for one in data]
