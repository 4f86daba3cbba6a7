"""The estimator of the real controller, on a real API server: objects of kwatt and of WAO-Estimator's users, the HTTP
API, kubectl kwatt estimate, and schemathesis (which we did not write) against the document it serves."""
import fcntl
import json
import subprocess
import urllib.error
import urllib.request
import venv
from pathlib import Path

import pytest
from bed import objects
from bed.build import cache_root
from bed.process import wait_until
from e2e.estimator_peers import Peers
from ipmi_sim import IpmiSim
from lab.site import Site, program
from prometheus_server import IpmiExporter

pytestmark = [pytest.mark.xdist_group("estimator"), pytest.mark.long(60)]
ROOT = Path(__file__).resolve().parent.parent.parent
INFEASIBLE = 1.7976931348623157e+308
# hypothesis: the last line that this schemathesis was made for; newer ones lack what it calls.
SCHEMATHESIS = ("schemathesis==3.39.16", "hypothesis==6.131.9")
# As in WAO-Estimator's README.
WAO_MINIMAL = """
apiVersion: waofed.bitmedia.co.jp/v1beta1
kind: Estimator
metadata:
  namespace: default
  name: default
spec:
  defaultNodeConfig:
    nodeMonitor:
      agents: []
    powerConsumptionPredictor:
      type: None
"""
WAO_FAKE = """
apiVersion: waofed.bitmedia.co.jp/v1beta1
kind: Estimator
metadata:
  namespace: default
  name: wao
spec:
  defaultNodeConfig:
    nodeMonitor:
      refreshInterval: 5s
      agents:
        - type: Fake
          endpoint: ""
    powerConsumptionPredictor:
      type: Fake
      endpoint: ""
  nodeConfigOverrides:
    big:
      nodeMonitor:
        agents:
          - type: None
      powerConsumptionPredictor:
        type: None
"""


def labels(base, per_core):
    return {"waofed.bitmedia.co.jp/fakepcp.basewatts": str(base), "waofed.bitmedia.co.jp/fakepcp.wpc": str(per_core)}


class Desk:
    def __init__(self, site):
        self.site, self.bed = site, site.bed
        self.peers = Peers()
        self.port, self.keyed_port = site._port(), site._port()
        self.url = f"http://127.0.0.1:{self.port}"
        keys = site.directory / "keys"
        keys.write_text("# of this test\nopen sesame\nanother\n")
        # Either may lead, and the one that leads asks.
        allowed = ("--endpoint-allow", "http://127.0.0.1")
        site.start_controller("--estimator-address", f"127.0.0.1:{self.port}", *allowed)
        site.start_controller("--estimator-address", f"127.0.0.1:{self.keyed_port}", "--estimator-api-key-file", keys,
                              *allowed, name="keyed")

    def raw(self, body, name="default", namespace="default", port=None, headers=None, method="POST"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port or self.port}/namespaces/{namespace}/estimators/{name}/values/powerconsumption",
            data=body if isinstance(body, bytes) else json.dumps(body).encode(), method=method,
            headers={"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ask(self, name, cpu=500, workloads=5):
        status, text = self.raw({"cpu_milli": cpu, "num_workloads": workloads}, name)
        return json.loads(text)["watt_increases"] if status == 200 else (status, json.loads(text)["code"])

    def wait_for(self, name, want, seconds=30, **question):
        wait_until(lambda: self.ask(name, **question) == want, seconds,
                   f"{name} to answer {want}", every=0.2)

    def apply(self, name, predictor, agents=(), refresh="1s", overrides=None):
        self.bed.kubectl("apply", "-f", "-", input={
            "apiVersion": "kwatt.dev/v1alpha1", "kind": "Estimator", "metadata": {"namespace": "default", "name": name},
            "spec": {"defaultNodeConfig": {"nodeMonitor": {"refreshInterval": refresh, "agents": list(agents)},
                                           "powerConsumptionPredictor": predictor},
                     "nodeConfigOverrides": overrides or {}}})

    def status(self, name, kind="estimators.kwatt.dev"):
        return self.bed.kubectl_json("get", kind, "-n", "default", name).get("status", {})

    def condition(self, name, kind, status, reason, seconds=30, resource="estimators.kwatt.dev"):
        def holds():
            return any((one["type"], one["status"], one["reason"]) == (kind, status, reason)
                       for one in self.status(name, resource).get("conditions", []))
        wait_until(holds, seconds, f"{name}: {kind}={status} {reason}", every=0.3)
        return next(one["message"] for one in self.status(name, resource)["conditions"] if one["type"] == kind)

    def cli(self, *words):
        return subprocess.run([program("kubectl-kwatt"), "--kubeconfig", str(self.bed.kubeconfig), "estimate", *words],
                              capture_output=True, text=True, timeout=30)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("estimator"), agents=False, redfish=False) as site:
        wao = ROOT / "manifests" / "optional" / "wao-estimators.yaml"
        site.bed.kubectl("apply", "-f", wao)
        site.bed.kubectl("wait", "--for=condition=Established", "--timeout=20s",
                         "crd/estimators.waofed.bitmedia.co.jp")
        desk = Desk(site)
        for name, cpu, watts in (("small", 2, labels(100, 5)), ("big", 8, labels(200, 10))):
            site.bed.api.create(objects.node(name, cpu=str(cpu), labels=watts))
            wait_until(lambda name=name: objects.node_is_ready(site.bed.api.get("Node", name)), 30, f"{name} ready")
        yield desk
        desk.peers.stop()


def test_fake_nodes_answer_in_waos_bytes_and_the_status_tells_their_watts(desk):
    desk.apply("fake", {"type": "Fake"}, [{"type": "Fake"}])
    # Four of 500 millicores on the small machine at 5 W a core, then the big one at 10 W.
    desk.wait_for("fake", [2.5, 5, 7.5, 10, 15])
    assert desk.raw({"cpu_milli": 500, "num_workloads": 2}, "fake") == (
        200, '{"cpu_milli":500,"num_workloads":2,"watt_increases":[2.5,5]}\n')
    desk.condition("fake", "Ready", "True", "Estimating")
    desk.condition("fake", "Accepted", "True", "Valid")
    desk.condition("fake", "PredictorsAvailable", "True", "Answering")
    status = desk.status("fake")
    assert (status["nodesTotal"], status["nodesUsable"], status["watts"]) == (2, 2, 300)
    assert [(one["nodeName"], one["milliwatts"], one["fullMilliwatts"]) for one in status["nodes"]] == [
        ("big", 200_000, 280_000), ("small", 100_000, 110_000)]
    table = desk.bed.kubectl("get", "est", "-n", "default", "fake")
    assert table.split()[:6] == ["NAME", "NODES", "USABLE", "WATTS", "READY", "AGE"]


def test_labels_pods_and_cordons_count_at_once(desk):
    desk.apply("live", {"type": "Fake"}, refresh="1h")
    desk.wait_for("live", [2.5, 5, 7.5, 10, 15])
    desk.bed.kubectl("label", "--overwrite", "node", "small", "waofed.bitmedia.co.jp/fakepcp.wpc=6")
    desk.wait_for("live", [3, 6, 9, 12, 17])
    desk.bed.api.create(objects.pod("filler", cpu="1500m", node_name="small"))
    desk.wait_for("live", [3, 8, 13, 18, 23])
    desk.bed.kubectl("cordon", "small")
    desk.wait_for("live", [5, 10, 15, 20, 25])
    assert desk.condition("live", "Ready", "True", "Estimating")
    wait_until(lambda: desk.status("live")["nodes"][0].get("reason") == "Unschedulable", 20, "the cordon in the status")
    desk.bed.kubectl("uncordon", "small")
    desk.bed.kubectl("delete", "pod", "filler", "--now")
    desk.bed.kubectl("label", "--overwrite", "node", "small", "waofed.bitmedia.co.jp/fakepcp.wpc=5")
    desk.wait_for("live", [2.5, 5, 7.5, 10, 15])


def test_more_workloads_than_fit_are_the_largest_double(desk):
    desk.apply("full", {"type": "Fake"})
    wait_until(lambda: isinstance(desk.ask("full"), list), 20, "an answer")
    increases = desk.ask("full", cpu=2000, workloads=7)
    assert increases == [10, 30, 50, 70, 90, INFEASIBLE, INFEASIBLE]
    assert "1.7976931348623157e+308" in desk.raw({"cpu_milli": 2000, "num_workloads": 7}, "full")[1]


def test_objects_of_waos_users_apply_unchanged(desk):
    desk.bed.kubectl("apply", "-f", "-", input=WAO_MINIMAL)
    desk.wait_for("default", [INFEASIBLE] * 5)
    desk.bed.kubectl("apply", "-f", "-", input=WAO_FAKE)
    desk.wait_for("wao", [2.5, 5, 7.5, 10, INFEASIBLE])
    kind = "estimators.waofed.bitmedia.co.jp"
    desk.condition("wao", "Ready", "True", "Estimating", resource=kind)
    assert desk.condition("default", "Ready", "False", "NoUsableNodes", resource=kind).endswith(
        "powerConsumptionPredictor is None")
    # What their schema takes and nobody knows is told, not hidden.
    desk.bed.kubectl("apply", "-f", "-", input=WAO_FAKE.replace("name: wao", "name: odd").replace(
        "type: Fake\n      endpoint", "type: Oracle\n      endpoint"))
    assert "must be one of None, Fake" in desk.condition("odd", "Accepted", "False", "Invalid", resource=kind)
    # One of ours with the same name goes first.
    desk.apply("wao", {"type": "None"})
    desk.condition("wao", "Accepted", "False", "Conflict", resource=kind)
    desk.wait_for("wao", [INFEASIBLE] * 5)
    desk.bed.kubectl("delete", "estimators.kwatt.dev", "-n", "default", "wao")
    desk.wait_for("wao", [2.5, 5, 7.5, 10, INFEASIBLE])
    desk.bed.kubectl("delete", kind, "-n", "default", "wao")
    wait_until(lambda: desk.ask("wao") == (404, "ErrServerEstimatorNotFound"), 20, "the estimator to be gone")


def test_a_model_server_and_sensors_are_asked_and_their_failures_told(desk):
    peers = desk.peers
    agents = [{"type": "Fake"}, {"type": "IPMIExporter", "endpoint": f"{peers.url}/metrics"},
              {"type": "DifferentialPressureAPI", "endpoint": f"{peers.url}/api/sensor/101037B"}]
    predictor = {"type": "MLServer", "endpoint": f"{peers.url}/v2/models/model1/versions/v0.1.0/infer"}
    desk.apply("ml", predictor, agents)
    # 200 W for all CPUs: 50 W for two of eight, and 100 W for the one of two.
    desk.wait_for("ml", [50, 100, 150], cpu=2000, workloads=3)
    wait_until(lambda: [one["milliwatts"] for one in desk.status("ml").get("nodes", [])] == [142_000, 142_000], 30,
               "100 W + 20 degrees + 0.5 Pa", every=0.3)
    assert not any("authorization" in {key.lower() for key in headers} for _, headers, _ in peers.seen)
    asked = len(peers.seen)
    for cpu in range(1, 50):
        desk.ask("ml", cpu=cpu)
    assert len(peers.seen) - asked < 20, "requests are not passed on to the model server"

    for mode, word in (("nan", ""), ("broken", "500"), ("slow", "")):
        peers.mode = mode
        message = desk.condition("ml", "PredictorsAvailable", "False", "PredictorFailed", seconds=40)
        assert message.startswith("2 of 2 nodes without a new prediction") and word in message, message
        assert desk.ask("ml", cpu=2000, workloads=3) == [50, 100, 150], "the last good prediction counts for a while"
        peers.mode = "good"
        desk.condition("ml", "PredictorsAvailable", "True", "Answering", seconds=40)
    # One that never answered has nothing to fall back on.
    peers.mode = "nan"
    desk.apply("never", predictor, agents)
    desk.wait_for("never", [INFEASIBLE] * 5)
    desk.condition("never", "Ready", "False", "NoUsableNodes")
    peers.mode = "good"
    desk.wait_for("never", [50], cpu=2000, workloads=1)


def test_the_air_is_what_the_real_ipmi_exporter_says_of_a_bmc(desk, tmp_path):
    sim = IpmiSim(tmp_path, temperatures=("Inlet Temp", "CPU1 Temp"), standard_port=True)
    exporter = None
    try:
        sim.set("Inlet Temp", 31)
        exporter = IpmiExporter(tmp_path, sim).start()
        predictor = {"type": "MLServer", "endpoint": f"{desk.peers.url}/v2/models/model1/versions/v0.1.0/infer"}
        desk.apply("bmc", predictor, [
            {"type": "Fake"}, {"type": "IPMIExporter", "endpoint": exporter.url},
            {"type": "DifferentialPressureAPI", "endpoint": f"{desk.peers.url}/api/sensor/101037B"}])
        # The model adds 2 W for each degree of the air and 4 W for each pascal.
        wait_until(lambda: [one["milliwatts"] for one in desk.status("bmc").get("nodes", [])] == [164_000, 164_000], 30,
                   "100 W, 31 degrees and 0.5 Pa", every=0.3)
    finally:
        if exporter is not None:
            exporter.stop()
        sim.stop()


def test_only_allowed_endpoints_are_asked(desk):
    desk.apply("stranger", {"type": "MLServer", "endpoint": "http://192.0.2.7:8080/v2/models/m/versions/1/infer"},
               overrides={"small": {"powerConsumptionPredictor": {"type": "Fake"}}})
    message = desk.condition("stranger", "Accepted", "False", "EndpointNotAllowed")
    assert "192.0.2.7 is not allowed" in message and "--endpoint-allow" in message
    # The machine whose predictor is allowed is served all the same.
    desk.wait_for("stranger", [2.5, 5, 7.5, 10, INFEASIBLE])


def test_kwatts_own_model(desk):
    desk.apply("model", {"type": "Model"}, refresh="1s")
    desk.bed.kubectl("apply", "-f", "-", input={
        "apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower", "metadata": {"name": "big"},
        "spec": {"model": {"idleMilliwatts": 100_000, "maxMilliwatts": 180_000}}})
    desk.apply("model", {"type": "None"}, overrides={"big": {"powerConsumptionPredictor": {"type": "Model"}}})
    desk.wait_for("model", [10, 20, 30], cpu=1000, workloads=3)


def test_the_api_server_refuses_what_cannot_be_meant(desk):
    for predictor, agents, refresh, words in (
            ({"type": "Oracle"}, (), "1s", "Unsupported value"),
            ({"type": "Fake"}, [{"type": "Redfish"}], "1s", "need an endpoint"),
            ({"type": "Fake"}, (), "1ms", "must be at least 1s"),
            ({"type": "Fake"}, (), "soon", "spec.defaultNodeConfig.nodeMonitor.refreshInterval")):
        with pytest.raises(Exception, match=words):
            desk.apply("bad", predictor, agents, refresh)


def test_keys_open_the_api_where_they_are_configured(desk):
    question = {"cpu_milli": 500, "num_workloads": 1}
    desk.apply("keyed", {"type": "Fake"})
    desk.wait_for("keyed", [2.5], workloads=1)
    for headers, status in (({}, 401), ({"X-API-KEY": "wrong"}, 401), ({"X-API-KEY": "open sesame"}, 200),
                            ({"X-API-KEY": "another"}, 200)):
        wait_until(lambda: desk.raw(question, "keyed", port=desk.keyed_port, headers=headers)[0] == status, 20,
                   f"{status} for {headers}")
    assert json.loads(desk.raw(question, "keyed", port=desk.keyed_port)[1])["code"] == "ErrClientUnauthorized"
    log = (desk.site.directory / "keyed.log").read_text()
    assert "sesame" not in log and "another" not in log.replace("another machine", "")


def test_bad_requests(desk):
    desk.apply("bad-requests", {"type": "Fake"})
    desk.wait_for("bad-requests", [2.5], workloads=1)
    for body, words in ((b"{", "not JSON"), (b"", "is needed"), (b"[]", "must be an object"),
                        ({"cpu_milli": -5, "num_workloads": 5}, "cpu_milli: must be an integer from 0"),
                        ({"cpu_milli": 5, "num_workloads": 0}, "num_workloads: must be an integer from 1"),
                        ({"cpu_milli": 5, "num_workloads": 10**9}, "num_workloads: must be"),
                        ({"num_workloads": 1}, "cpu_milli: must be an integer from 0 to 1000000000, but it is missing"),
                        (b"x" * 200_000, "too many")):
        status, text = desk.raw(body, "bad-requests")
        assert status == 400 and json.loads(text)["code"] == "ErrEstimatorInvalidRequest", text
        assert words in json.loads(text)["message"]
    assert desk.raw(b"x" * 2_000_000, "bad-requests")[0] == 413
    assert desk.ask("nobody") == (404, "ErrServerEstimatorNotFound")


def test_the_cli_prints_what_waos_prints(desk):
    desk.apply("cli", {"type": "Fake"})
    desk.wait_for("cli", [2.5, 5, 7.5, 10, 15])
    done = desk.cli("-a", desk.url, "-n", "default/cli", "-p", "500,5", "pc")
    assert (done.stdout, done.stderr, done.returncode) == ("[2.5 5 7.5 10 15]\n", "", 0)
    done = desk.cli("-a", desk.url, "-n", "default/cli", "-p", "2000,7", "-v", "pc")
    assert done.stdout == "[10 30 50 70 90 +Inf +Inf]\n"
    assert done.stderr == ("curl -X 'POST' -d '{\"cpu_milli\":2000,\"num_workloads\":7}' -H 'Content-Type: "
                           f"application/json' '{desk.url}/namespaces/default/estimators/cli/values/powerconsumption'\n")
    again = subprocess.run(done.stderr, shell=True, capture_output=True, text=True, timeout=20)
    assert json.loads(again.stdout)["watt_increases"][-1] == INFEASIBLE, "the line asks the same"
    done = desk.cli("-a", desk.url, "-n", "default/cli", "-o", "json", "pc")
    assert json.loads(done.stdout) == {"cpu_milli": 500, "num_workloads": 5, "watt_increases": [2.5, 5, 7.5, 10, 15]}
    done = desk.cli("-a", desk.url, "-n", "default/nobody", "pc")
    assert done.returncode == 1 and "ErrServerEstimatorNotFound" in done.stderr


def test_the_cli_asks_through_the_api_server(desk):
    """The Service of manifests/, with this process's controller as its endpoint."""
    desk.apply("cli", {"type": "Fake"})
    desk.wait_for("cli", [2.5, 5, 7.5, 10, 15])
    done = desk.cli("-n", "default/cli", "pc")
    assert done.returncode == 1 and done.stdout == "", "nobody stands behind the Service"
    assert "the way to the estimator through the API server" in done.stderr


def schemathesis():
    """The program in a virtual environment, which is made at the first call on this machine."""
    folder = cache_root() / "-".join(SCHEMATHESIS).replace("==", "-")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            venv.create(folder, with_pip=True, clear=True)
            subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet",
                            "--disable-pip-version-check", *SCHEMATHESIS], check=True, timeout=300)
            (folder / "complete").touch()
    return folder / "bin" / "schemathesis"


def test_schemathesis_finds_nothing(desk, tmp_path):
    desk.bed.kubectl("apply", "-f", "-", input=WAO_FAKE.replace("name: wao", "name: checked"))
    desk.wait_for("checked", [2.5, 5, 7.5, 10, INFEASIBLE])
    # Real names in place of the example, so that answers other than 404 are seen, too.
    with urllib.request.urlopen(f"{desk.url}/openapi.json", timeout=10) as answer:
        document = json.load(answer)
    path = "/namespaces/{ns}/estimators/{name}/values/powerconsumption"
    for parameter, value in zip(document["paths"][path]["parameters"], ("default", "checked")):
        parameter["schema"] = {"type": "string", "enum": [value]}
    for name, source in (("served", f"{desk.url}/openapi.json"), ("named", str(tmp_path / "named.json"))):
        (tmp_path / "named.json").write_text(json.dumps(document))
        done = subprocess.run([schemathesis(), "run", source, "--base-url", desk.url, "--checks", "all",
                               "--hypothesis-max-examples", "100", "--hypothesis-seed", "5656", "--experimental",
                               "openapi-3.1", "--data-generation-method", "all"],
                              capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert done.returncode == 0, f"{name}: {done.stdout[-4000:]}{done.stderr[-1000:]}"
        assert "1 / 1" in done.stdout or "collected api operations: 1" in done.stdout.lower(), done.stdout[-2000:]
