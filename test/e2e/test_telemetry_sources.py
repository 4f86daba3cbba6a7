"""Sources beside the agents: a real Prometheus and a real metrics-server, on sites whose machines have no agent."""
import urllib.request

import pytest

from lab.site import Site
from bed import Bed, objects
from bed.metrics_server import Aggregation
from bed.process import wait_until

import prometheus_server as peers

POLICY = {"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": "all"},
          "spec": {"mode": "Recommend", "interval": "1s", "nodeSelector": {"matchLabels": {"pool": "telemetry"}}}}
LABELS = {"pool": "telemetry"}
MODEL = {"idleMilliwatts": 100_000, "maxMilliwatts": 300_000}


def power(site, name):
    return site.machine_power(name).get("power", {})


def condition(site):
    conditions = site.policy("all").get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == "TelemetryAvailable"), {"status": "", "reason": "", "message": ""})


def wait(check, seconds, what, story):
    try:
        wait_until(check, seconds, what, every=0.2)
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{story()}") from None


def story_of(site, *names):
    return lambda: "\n".join([*(f"{n}: {site.machine_power(n)}" for n in names), f"{condition(site)}",
                              site.controller.log_tail(40)])


def metrics(site):
    with urllib.request.urlopen(site.health_url + "/metrics", timeout=5) as answer:
        return answer.read().decode()


@pytest.mark.xdist_group("telemetry")
@pytest.mark.long(120)
def test_watts_come_from_prometheus_and_its_failure_is_told_and_takes_nothing_away(tmp_path):
    server = peers.Server()
    server.answers.update({
        "/m1": peers.replayed_kepler("m1", psys=150, package=80.5, core=60),
        "/m2": peers.replayed_ipmi(199),
        "/m2-kepler": peers.replayed_kepler("m2", psys=150, package=70, core=60),
        "/foreign": peers.replayed_ipmi(50),
    })
    here = f"127.0.0.1:{server.port}"
    prometheus = peers.Prometheus(tmp_path / "prometheus", {
        "kepler": [{"target": here, "path": "/m1"}, {"target": here, "path": "/m2-kepler"}],
        "ipmi": [{"target": here, "path": "/m2", "labels": {"node": "m2"}},
                 {"target": here, "path": "/foreign", "labels": {"node": "of-another-cluster"}}]}).start()
    site = Site(tmp_path / "site", agents=False, redfish=False)
    try:
        site.start()
        prometheus.wait_for("ipmi_dcmi_power_consumption_watts", 2)
        story = story_of(site, "m1", "m2", "m3")
        for name in ("m1", "m2", "m3"):
            site.add_machine(name, bmc=None, labels=LABELS, model=MODEL if name == "m3" else None)
        site.start_controller("--prometheus-url", prometheus.url, "--prometheus-exporter", "ipmi-exporter",
                              "--prometheus-exporter", "kepler", "--prometheus-interval", "1s")
        site.bed.kubectl("apply", "-f", "-", input=POLICY)

        # The packages of m1; the machine of m2, though Kepler has its packages; m3 has no meter, but a model.
        wait(lambda: power(site, "m1").get("meter") == "kepler" and power(site, "m2").get("meter") == "ipmi-exporter"
             and power(site, "m3").get("source") == "Specified", 90, "power of all three", story)
        assert power(site, "m1")["milliwatts"] == 80_500 and power(site, "m1")["source"] == "Measured"
        assert power(site, "m2")["milliwatts"] == 199_000
        assert power(site, "m3")["milliwatts"] == 100_000
        table = {row.split()[0]: row.split() for row in site.bed.kubectl("get", "nodepowers").splitlines()[1:]}
        assert "199" in table["m2"] and "100" in table["m3"]
        wait(lambda: condition(site)["message"] == "samples of 2 of 3 selected nodes", 20, "the condition", story)
        assert condition(site)["status"] == "True"
        text = metrics(site)
        assert 'kwatt_telemetry_source_up{source="ipmi-exporter"} 1' in text
        assert 'kwatt_telemetry_rejected_total{reason="unknown_node",source="ipmi-exporter"}' in text

        # A second value for m2: it is no more believed than the first.
        server.answers["/m2"] = "".join(f'ipmi_dcmi_power_consumption_watts{{sensor="{n}"}} {90 + n}\n' for n in (1, 2))
        wait(lambda: "ipmi-exporter: 1 readings not taken" in condition(site)["message"], 30, "the ambiguity to be told", story)
        assert "2 series for node m2" in condition(site)["message"]
        assert condition(site)["status"] == "True" and condition(site)["reason"] == "SourceFailing"

        prometheus.process.stop(grace=0)
        wait(lambda: condition(site)["status"] == "False", 60, "the failure to be told", story)
        assert condition(site)["reason"] == "SourceFailed"
        assert "ipmi-exporter: " in condition(site)["message"] and "kepler: " in condition(site)["message"]
        assert 'kwatt_telemetry_source_up{source="ipmi-exporter"} 0' in metrics(site)
        # What was measured is not believed any more; the default model is what is left.
        wait(lambda: power(site, "m2").get("source") == "Default", 120, "m2 to be estimated", story)
        assert all(objects.node_is_ready(site.node(name)) and not site.node(name)["spec"].get("unschedulable")
                   for name in ("m1", "m2", "m3"))
        for _, headers in server.requests:
            assert "Authorization" not in headers
    finally:
        site.stop()
        prometheus.stop()
        server.stop()


@pytest.mark.xdist_group("telemetry")
def test_utilization_comes_from_metrics_server_where_no_agent_pushes(tmp_path):
    aggregation = Aggregation(tmp_path / "aggregation")
    site = Site(tmp_path / "site", agents=False, redfish=False)
    site.bed = Bed(site.directory / "bed", apiserver_args=aggregation.apiserver_args, kwok_args=aggregation.kwok_args)
    try:
        site.start()
        story = story_of(site, "u1", "u2")
        for name in ("u1", "u2"):
            site.add_machine(name, bmc=None, labels=LABELS, model=MODEL, cpu=8)
            aggregation.prepare_node(site.bed, name)
            site.bed.api.create(objects.pod(f"work-{name}", node_name=name, cpu="100m",
                                            annotations={"kwok.x-k8s.io/usage-cpu": "4" if name == "u1" else "800m",
                                                         "kwok.x-k8s.io/usage-memory": "64Mi"}))
        site.start_controller("--metrics-api", "--metrics-api-interval", "2s")
        site.bed.kubectl("apply", "-f", "-", input=POLICY)
        # Nothing serves it yet.
        wait(lambda: "is metrics-server installed" in condition(site)["message"], 30, "its absence to be told", story)
        assert condition(site)["status"] == "False"

        aggregation.start(site.bed)
        aggregation.wait_for(site.bed, ["u1", "u2"])
        wait(lambda: condition(site)["message"] == "samples of 2 of 2 selected nodes", 60, "both to be measured", story)
        # Half and a tenth of 8 CPUs on a line of 100 to 300 W, whatever the pods request.
        text = metrics(site)
        assert 'kwatt_telemetry_source_up{source="metrics.k8s.io"} 1' in text
        wait(lambda: abs(site.policy("all")["status"]["power"]["estimatedMilliwatts"] - 320_000) < 15_000, 60,
             "the estimate to follow the load", story)
    finally:
        site.stop()
        aggregation.stop()
