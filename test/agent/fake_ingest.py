"""FakeIngest: an HTTP server on loopback in the place of the controller's /metrics-ingest. It checks what it is
sent by rules written down here, independently of kwatt's own decoder."""
import http.server
import json
import threading
from datetime import datetime

SAMPLE_KEYS = {"time", "cpuBusyPermille", "utilizationPermille", "milliwatts", "source", "mhz", "governor",
               "milliCelsius"}


def check_batch(batch):
    assert set(batch) == {"node", "bootID", "samples"}, batch
    assert 0 <= len(batch["samples"]) <= 600
    times = [sample["time"] for sample in batch["samples"]]
    assert times == sorted(times)
    for sample in batch["samples"]:
        assert set(sample) <= SAMPLE_KEYS, sample
        datetime.fromisoformat(sample["time"].replace("Z", "+00:00"))
        assert 0 <= sample["cpuBusyPermille"] <= 1000 and 0 <= sample["utilizationPermille"] <= 1000
        assert 0 <= sample.get("milliCelsius", 0) <= 150_000
        assert ("milliwatts" in sample) == (sample["source"] != "none")


class FakeIngest:
    """alive=False: requests are answered with 503. Batches and Authorization headers are kept."""

    def __init__(self):
        self.alive = True
        self.batches, self.tokens, self.complaints = [], [], []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = fake.take(self.path, self.headers, body) if fake.alive else 503
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path, headers, body):
        try:
            assert path == "/metrics-ingest", path
            assert headers["Content-Type"] == "application/json"
            batch = json.loads(body)
            check_batch(batch)
        except (AssertionError, ValueError, KeyError) as error:
            self.complaints.append(f"{error!r} in {body[:500]!r}")
            return 400
        self.tokens.append(headers.get("Authorization"))
        self.batches.append(batch)
        return 200

    def samples(self):
        return [sample for batch in list(self.batches) for sample in batch["samples"]]

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
