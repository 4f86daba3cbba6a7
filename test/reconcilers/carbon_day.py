"""A day whose hours are seconds long, and a service that publishes its carbon intensities ahead: so that a test sees
jobs wait for the clean hour and start in it without waiting for an hour."""
import datetime
import http.server
import json
import threading
import time
import urllib.parse

# Grams per kWh of a sunny day's hours from the evening on, as forecasts are published: one hour is far cleaner than
# all others, and the hours around it are not as bad as the rest.
GRAMS = (430, 440, 410, 230, 60, 210, 390, 420, 440, 450, 450, 440)


class ScaledDay:
    """Begins with `hours_before` dirty hours behind us, so that its first hour begins now."""

    def __init__(self, hour_seconds, grams=GRAMS, hours_before=3):
        self.hour, self.grams = hour_seconds, grams
        self.begin = int(time.time())
        first = self.begin - hours_before * hour_seconds
        self.steps = [(first + i * hour_seconds, grams[0] if i < hours_before else grams[i - hours_before])
                      for i in range(hours_before + len(grams))]
        self.clean = self.begin + grams.index(min(grams)) * hour_seconds
        self.clean_grams = min(grams)

    @property
    def clean_end(self):
        return self.clean + self.hour

    def grams_at(self, when):
        return next(grams for at, grams in reversed(self.steps) if at <= when)


class CarbonService:
    """GET /ZONE answers {"forecast": [{"from": TIME, "intensity": {"forecast": GRAMS}}]} of the zones in `days`; 404
    for others. While `broken` it answers 503. Requests are counted by zone."""

    MAPPING = {"list": "/forecast", "time": "/from", "value": "/intensity/forecast"}

    def __init__(self):
        self.days, self.broken, self.asked = {}, False, {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                zone = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path.lstrip("/"))
                outer.asked[zone] = outer.asked.get(zone, 0) + 1
                status, body = outer.answer(zone)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, zone):
        if self.broken:
            return 503, b'{"error": "maintenance"}'
        if zone not in self.days:
            return 404, b'{"error": "no such zone"}'
        steps = [{"from": datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "intensity": {"forecast": grams, "actual": None}} for at, grams in self.days[zone].steps]
        return 200, json.dumps({"zone": zone, "forecast": steps}).encode()

    def source(self, name):
        """For the file of --carbon-sources."""
        return {"name": name, "http": {"url": f"{self.url}/{{zone}}", **self.MAPPING}}

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
