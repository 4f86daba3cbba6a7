"""mlserver 1.7.1 with mlserver-sklearn (PyPI), which we did not write, serving small models trained here.

Installed once into a virtual environment in the cache directory, 527 MB: only where KWATT_TEST_MLSERVER=1 asks
for it (`./dev test --group mlserver` does); elsewhere its tests are skipped, with the reason.
"""
import fcntl
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
import venv

from bed.build import cache_root
from bed.process import Process, wait_until

PACKAGES = ("mlserver==1.7.1", "mlserver-sklearn==1.7.1")

# Watts that a straight line of four inputs can learn exactly: a wrong order of columns shows at once.
TRAIN = """
import sys, joblib, numpy, pandas
from sklearn.linear_model import LinearRegression
names = ["AmbientTemp", "CPUUsage", "LogicalProcessors", "StaticPressureDiff"]
random = numpy.random.default_rng(1)
table = pandas.DataFrame({"AmbientTemp": random.uniform(10, 40, 200), "CPUUsage": random.uniform(0, 1, 200),
                          "LogicalProcessors": random.integers(1, 128, 200).astype(float),
                          "StaticPressureDiff": random.uniform(0, 1, 200)})
watts = 50 + 100 * table.CPUUsage + 2 * table.AmbientTemp + 0.5 * table.LogicalProcessors + 10 * table.StaticPressureDiff
joblib.dump(LinearRegression().fit(table[names], watts), sys.argv[1])
three = table[["CPUUsage", "AmbientTemp", "StaticPressureDiff"]].to_numpy()
joblib.dump(LinearRegression().fit(three, 50 + 100 * three[:, 0] + 2 * three[:, 1] + 10 * three[:, 2]), sys.argv[2])
joblib.dump(LinearRegression().fit(three, -500 - 100 * three[:, 0]), sys.argv[3])
"""


def watts(usage, ambient, cpus, pressure):
    return 50 + 100 * usage + 2 * ambient + 0.5 * cpus + 10 * pressure


def folder():
    return cache_root() / "mlserver-1.7.1"


def reason_to_skip():
    """Why there is no mlserver here, or None."""
    if (folder() / "complete").exists() or os.environ.get("KWATT_TEST_MLSERVER") == "1":
        return None
    return "mlserver is not installed (527 MB): ./dev test --group mlserver installs it"


def python():
    folder().parent.mkdir(parents=True, exist_ok=True)
    program = folder() / "bin" / "python"
    with open(f"{folder()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder() / "complete").exists():
            venv.create(folder(), with_pip=True, clear=True)
            subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
                           check=True, timeout=900)
            (folder() / "complete").touch()
    return program


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class MlServer:
    """Models: `power` describes its four inputs, `wao` describes none and takes WAO-Estimator's three, `broken`
    wants what nobody sends, `negative` answers what no machine draws."""

    def __init__(self, directory):
        interpreter = python()
        names = ("power", "wao", "negative")
        subprocess.run([interpreter, "-c", TRAIN, *[directory / f"{name}.joblib" for name in names]], check=True,
                       timeout=120)
        inputs = [{"name": name, "datatype": "FP64", "shape": [-1, 1]}
                  for name in ("AmbientTemp", "CPUUsage", "LogicalProcessors", "StaticPressureDiff")]
        described = {"power": inputs, "broken": inputs + [{"name": "FanSpeed", "datatype": "FP64", "shape": [-1, 1]}],
                     # It is told to take a column that it was not trained on: it fails while it predicts.
                     "mistaken": inputs[:2]}
        for name in ("power", "wao", "broken", "mistaken", "negative"):
            (directory / name).mkdir()
            weights = name if name in names else "power"
            (directory / name / "model-settings.json").write_text(json.dumps({
                "name": name, "implementation": "mlserver_sklearn.SKLearnModel", "inputs": described.get(name, []),
                "parameters": {"uri": str(directory / f"{weights}.joblib"), "version": "v0.1.0"}}))
        self.port = free_port()
        (directory / "settings.json").write_text(json.dumps({
            "host": "127.0.0.1", "http_port": self.port, "grpc_port": free_port(), "metrics_port": free_port(),
            "parallel_workers": 0, "debug": False}))
        self.process = Process("mlserver", [folder() / "bin" / "mlserver", "start", str(directory)],
                               directory / "mlserver.log", env={**os.environ, "HOME": str(directory)})
        self.process.start()
        wait_until(self._ready, 90, "mlserver to be ready", every=0.3)

    def _ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/health/ready", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def url(self, model, version="v0.1.0"):
        return f"http://127.0.0.1:{self.port}/v2/models/{model}/versions/{version}/infer"

    def stop(self):
        self.process.stop()
