"""Debian's real prometheus on loopback, what it scrapes, and a plain HTTP server for answers it would never give.

Exporters that cannot be had are replayed by hand, and say so in their name: a text in the exposition format that their
documentation shows, served as a scrape target.
"""
import http.server
import json
import shutil
import threading
import urllib.parse
import urllib.request
from pathlib import Path

from bed.process import PortReservation, Process, wait_until

PACKAGES = {name: name for name in ("prometheus", "prometheus-node-exporter", "prometheus-ipmi-exporter")}


def program(name):
    """Debian's program; its absence is an error and no reason to skip: cmake/debian-packages.txt has it."""
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not installed: run ./dev deps (Debian package {PACKAGES[name]})")
    return path


class Server:
    """Serves texts by path; `answers[path]` is a body, or (status, headers, body). Unknown paths are 404."""

    def __init__(self):
        self.answers, self.requests = {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                answer = outer.answers.get(self.path.split("?")[0], (404, {}, "no such page"))
                status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
                self.send_response(status)
                for name, value in {"Content-Type": "text/plain; version=0.0.4", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


class Prometheus:
    """`jobs`: name → list of {"target": "host:port", "path": "/metrics", "params": {…}, "labels": {…}}. Scrapes every
    second."""

    def __init__(self, directory, jobs, scrape_interval="1s"):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._port = PortReservation()
        config = {"global": {"scrape_interval": scrape_interval, "scrape_timeout": "1s"}, "scrape_configs": [
            {"job_name": f"{name}-{number}", "metrics_path": one.get("path", "/metrics"),
             "params": one.get("params", {}), "static_configs": [{"targets": [one["target"]], "labels": one.get("labels", {})}]}
            for name, targets in jobs.items() for number, one in enumerate(targets)]}
        file = self.directory / "prometheus.json"  # JSON is YAML
        file.write_text(json.dumps(config))
        self.process = Process("prometheus", [
            program("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={self.directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port.port}", "--log.level=warn",
        ], self.directory / "prometheus.log")

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port.port}"

    def start(self):
        self.process.start()

        def ready():
            self.process.check()
            try:
                with urllib.request.urlopen(self.url + "/-/ready", timeout=2) as answer:
                    return answer.status == 200
            except OSError:
                return False
        wait_until(ready, 20, "prometheus to be ready", every=0.1)
        return self

    def query(self, promql):
        """The instant vector as {labels without name…: value}, asked without kwatt."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": promql})
        with urllib.request.urlopen(url, timeout=5) as answer:
            return [(one["metric"], float(one["value"][1])) for one in json.load(answer)["data"]["result"]]

    def wait_for(self, promql, count, seconds=30):
        wait_until(lambda: len(self.query(promql)) >= count, seconds, f"{count} series of {promql}", every=0.2)

    def stop(self):
        self.process.stop(grace=0)
        self._port.release()


class IpmiExporter:
    """Debian's real prometheus-ipmi-exporter, which runs FreeIPMI's tools. `sim`: an IpmiSim on the standard port."""

    def __init__(self, directory, sim):
        self._port = PortReservation()
        self.target = f"127.0.0.1:{self._port.port}"
        self.params = {"target": [sim.host], "module": ["default"]}
        # ipmi_sim knows cipher suite 3 and no newer one, and is strict about the privilege of an open session.
        file = Path(directory) / "ipmi-exporter.json"
        file.write_text(json.dumps({"modules": {"default": {
            "user": sim.USER, "pass": sim.PASSWORD, "driver": "LAN_2_0", "privilege": "admin", "timeout": 10000,
            "collectors": ["ipmi", "dcmi"], "workaround_flags": ["opensesspriv"],
            "custom_args": {"ipmi": ["-I", "3"], "dcmi": ["-I", "3"]}}}}))
        self.process = Process("ipmi-exporter", [
            program("prometheus-ipmi-exporter"), f"--config.file={file}", f"--web.listen-address={self.target}",
            "--freeipmi.path=/usr/sbin"], Path(directory) / "ipmi-exporter.log")

    @property
    def url(self):
        return f"http://{self.target}/ipmi?" + urllib.parse.urlencode(self.params, doseq=True)

    def start(self):
        self.process.start()

        def answers():
            self.process.check()
            try:
                with urllib.request.urlopen(self.url, timeout=10) as answer:
                    return b"ipmi_temperature_celsius" in answer.read()
            except OSError:
                return False
        wait_until(answers, 20, "the ipmi exporter to answer", every=0.2)
        return self

    def stop(self):
        self.process.stop(grace=0)
        self._port.release()


class NodeExporter:
    """Debian's real prometheus-node-exporter over a /sys tree of files."""

    def __init__(self, directory, sysfs):
        self.directory = Path(directory)
        self._port = PortReservation()
        self.target = f"127.0.0.1:{self._port.port}"
        self.process = Process("node-exporter", [
            program("prometheus-node-exporter"), f"--web.listen-address={self.target}", f"--path.sysfs={sysfs}",
            "--collector.disable-defaults", "--collector.hwmon", "--collector.rapl", "--log.level=warn",
        ], self.directory / "node-exporter.log")

    def start(self):
        self.process.start()
        return self

    def stop(self):
        self.process.stop(grace=0)
        self._port.release()


def replayed_kepler(node, psys, package, core, platform=None):
    """Kepler's exposition (0.11), replayed by hand: there is no Kepler that could be installed here."""
    text = "".join(f'kepler_node_cpu_watts{{node_name="{node}",path="/sys/class/powercap/{zone}",zone="{zone}"}} {watts}\n'
                   for zone, watts in (("psys", psys), ("package", package), ("core", core)))
    text += f'kepler_pod_cpu_watts{{node_name="{node}",pod_name="p",zone="package"}} 3.5\n'
    if platform is not None:
        text += (f'kepler_platform_watts{{source="redfish",node_name="{node}",bmc_id="bmc-1",chassis_id="1"}} '
                 f"{platform}\n")
    return text


def replayed_scaphandre(microwatts):
    """Scaphandre's exposition (1.0), replayed by hand."""
    return ("# HELP scaph_host_power_microwatts Power measurement on the whole host, in microwatts.\n"
            f"# TYPE scaph_host_power_microwatts gauge\nscaph_host_power_microwatts {microwatts}\n")


def replayed_ipmi(watts):
    """prometheus-ipmi-exporter's exposition (1.6), replayed by hand."""
    return f"ipmi_up{{collector=\"dcmi\"}} 1\nipmi_dcmi_power_consumption_watts {watts}\n"


def replayed_ipmi_temperatures(**celsius):
    """The same exporter's sensors: by name, in the order given. Underscores stand for blanks."""
    return "".join(f'ipmi_temperature_celsius{{id="{number}",name="{name.replace("_", " ")}",type="Temperature"}} {value}\n'
                   for number, (name, value) in enumerate(celsius.items(), 1))
