"""Sites and their recommendations against a real API server, with the real kwatt-controller and the rights of
manifests/: the worked case of the reference, values from a real Prometheus, machines that a hook starts, and the
HTTP endpoint for callers outside Kubernetes."""
import json
import ssl
import stat
import urllib.error
import urllib.request
from pathlib import Path

import prometheus_server as peers
import pytest
from bed import ApiError
from bed.process import wait_until
from lab.site import NAMESPACE
from lab.site import Site as Ground  # the test bed's own "site": not the kind that is tested here

pytestmark = [pytest.mark.xdist_group("sites"), pytest.mark.long(60)]
ROOT = Path(__file__).resolve().parents[2]
API = "kwatt.dev/v1alpha1"
# Idempotent, as the contract wants it: one machine for each operation. It is slow, so that the controller can be
# killed in the middle, and it fails where a test says so.
HOOK = """#!/bin/sh
folder="{folder}"
[ "$1" = create ] || exit 3
echo "$KWATT_SITE $KWATT_OPERATION_ID $KWATT_RECOMMENDATION $KWATT_REQUEST" >> "$folder/calls"
[ -e "$folder/full-$2" ] && {{ echo "no room in $2" >&2; exit 5; }}
[ -e "$folder/later-$2" ] && exit 6
if [ ! -e "$folder/machine-$KWATT_OPERATION_ID" ]; then
  echo "vm-$2-$(ls "$folder" | grep -c '^machine-')" > "$folder/machine-$KWATT_OPERATION_ID.new"
  mv "$folder/machine-$KWATT_OPERATION_ID.new" "$folder/machine-$KWATT_OPERATION_ID"
fi
[ -e "$folder/slow" ] && sleep 5
cat "$folder/machine-$KWATT_OPERATION_ID"
"""


class Room:
    """A control plane with kwatt-controller, Prometheus and a hook."""

    def __init__(self, directory):
        self.ground = Ground(directory / "ground", agents=False, redfish=False)
        self.exporter = peers.Server()
        self.exporter.answers["/link"] = "link_used_mbps 100\n"
        self.prometheus = peers.Prometheus(directory / "prometheus", {
            "link": [{"target": f"127.0.0.1:{self.exporter.port}", "path": "/link"}]})
        self.hooks = directory / "hooks"
        self.hooks.mkdir()
        self.program = self.hooks / "hook"
        self.program.write_text(HOOK.format(folder=self.hooks))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def start(self):
        self.ground.start()
        self.prometheus.start()
        self.options = ("--prometheus-url", self.prometheus.url, "--site-metrics", "--site-metrics-interval", "1s",
                        "--site-hook", f"vms={self.program}")
        self.ground.start_controller(*self.options)
        return self

    def stop(self):
        self.ground.stop()
        self.prometheus.stop()
        self.exporter.stop()

    @property
    def api(self):
        return self.ground.bed.api

    def add_site(self, name, **spec):
        self.api.create({"apiVersion": API, "kind": "Site", "metadata": {"name": name}, "spec": spec})

    def ask(self, name, namespace="default", **spec):
        self.api.create({"apiVersion": API, "kind": "SiteRecommendation",
                         "metadata": {"name": name, "namespace": namespace}, "spec": spec})

    def status(self, name, namespace="default"):
        return self.api.get("SiteRecommendation", name, namespace).get("status", {})

    def site_status(self, name):
        return self.api.get("Site", name).get("status", {})

    def wait(self, condition, seconds, what, story=lambda: ""):
        try:
            return wait_until(condition, seconds, what, every=0.2)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{story()}\n{self.ground.controller.log_tail(40)}") from None

    def wait_status(self, name, condition, what, seconds=30):
        self.wait(lambda: condition(self.status(name)), seconds, what, lambda: json.dumps(self.status(name), indent=1))
        return self.status(name)

    def calls(self):
        path = self.hooks / "calls"
        return path.read_text().splitlines() if path.exists() else []


def condition(status, kind):
    none = {"status": "", "reason": "", "message": ""}
    return next((c for c in status.get("conditions", []) if c["type"] == kind), none)


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    room = Room(tmp_path_factory.mktemp("sites"))
    try:
        yield room.start()
    finally:
        room.stop()


def test_the_worked_case_comes_out_exactly(room):
    room.ground.bed.kubectl("apply", "-f", ROOT / "examples" / "siterecommendation.yaml")
    status = room.wait_status("worked-case", lambda s: s.get("site") == "d" and s["sitesTotal"] == 3,
                              "d to be recommended")
    assert [(s["name"], s["total"]) for s in status["sites"]] == [("d", 220), ("b", 220), ("a", 110)]
    assert [s["name"] for s in status["sites"] if s.get("recommended")] == ["d"]
    assert status["sites"][0]["scores"] == [
        {"name": "Indicator/X", "raw": 2, "normalized": 2, "weight": 10, "weighted": 20},
        {"name": "Indicator/Y", "raw": 2, "normalized": 2, "weight": 100, "weighted": 200}]
    assert status["excluded"] == [
        {"name": "c", "plugin": "Taint", "totalIfTolerated": 330,
         "reason": "it has the taint maintenance:NoSchedule, which is not tolerated"},
        {"name": "e", "plugin": "Region", "reason": 'it is in region "B", asked for is "A"'}]
    assert condition(status, "Ready")["reason"] == "Recommended"
    assert condition(status, "Created")["reason"] == condition(status, "Propagated")["reason"] == "NotAsked"

    # The answer follows the sites; what did not change is not written anew.
    room.api.patch("Site", "c", {"spec": {"taints": []}})
    status = room.wait_status("worked-case", lambda s: s.get("site") == "c", "c to be recommended")
    assert status["total"] == 330
    version = room.api.get("SiteRecommendation", "worked-case", "default")["metadata"]["resourceVersion"]
    room.api.patch("Site", "c", {"metadata": {"labels": {"no": "news"}}})
    room.ask("after", region="A", siteSelector={"matchLabels": {"no": "news"}})
    room.wait_status("after", lambda s: s.get("site") == "c", "the label to be seen")
    assert room.api.get("SiteRecommendation", "worked-case", "default")["metadata"]["resourceVersion"] == version
    room.ground.bed.kubectl("delete", "-f", ROOT / "examples" / "siterecommendation.yaml", "--wait=false")
    room.api.delete("SiteRecommendation", "after", "default")


def test_bandwidth_comes_from_prometheus_and_its_loss_excludes_the_site(room):
    room.add_site("linked", region="net", bandwidth={"totalMbps": 1000},
                  metrics=[{"value": "BandwidthUsedMbps", "query": "sum(link_used_mbps)"}])
    room.wait(lambda: room.site_status("linked").get("freeBandwidthMbps") == 900, 40, "the link to be read",
              lambda: room.site_status("linked"))
    assert condition(room.site_status("linked"), "MetricsAvailable")["status"] == "True"
    room.ask("flows", region="net", workloads=4,
             bandwidth=[{"name": "up", "mbps": 100}, {"name": "down", "mbps": 125}])
    status = room.wait_status("flows", lambda s: s.get("site") == "linked", "the flows to fit")
    room.exporter.answers["/link"] = "link_used_mbps 101\n"
    status = room.wait_status("flows", lambda s: s.get("excluded"), "the flows to fit no more")
    assert status["excluded"] == [{"name": "linked", "plugin": "NetworkFlow",
                                   "reason": "900 Mbit/s are asked for, 899 of 1000 are free"}]
    assert "site" not in status and condition(status, "Ready")["reason"] == "NoSiteFits"

    room.api.patch("Site", "linked", {"spec": {"metrics": [
        {"value": "BandwidthUsedMbps", "query": "nobody_has_this"}]}})
    room.wait(lambda: condition(room.site_status("linked"), "MetricsAvailable")["status"] == "False", 20, "the failure")
    said = condition(room.site_status("linked"), "MetricsAvailable")["message"]
    assert said.startswith("the query of BandwidthUsedMbps: the query gives no series")
    room.api.patch("Site", "linked", {"spec": {"metrics": [{"value": "BandwidthUsedMbps", "query": "sum(("}]}})
    room.wait(lambda: "refuses the query" in condition(room.site_status("linked"), "MetricsAvailable")["message"], 20,
              "the wrong query to be told", lambda: room.site_status("linked"))
    room.api.delete("SiteRecommendation", "flows", "default")
    room.api.delete("Site", "linked")


def test_a_machine_is_started_once_even_if_the_controller_is_killed_meanwhile(room):
    room.add_site("vm-room", region="create", createHook="vms", indicators=[{"name": "cost", "value": 1}])
    before = len(room.calls())
    (room.hooks / "slow").touch()
    room.ask("machine", region="create", action="Create", resources={"cpuMillicores": 0, "gpus": 0},
             weights=[{"indicator": "cost", "prefer": "Low"}])
    # The intent stands in the API before the hook is called.
    room.wait(lambda: len(room.calls()) == before + 1, 30, "the hook to be called", lambda: room.status("machine"))
    machine = room.status("machine")["machines"][0]
    assert machine["phase"] == "Intended" and "machineID" not in machine
    room.ground.controller.stop(grace=0)  # SIGKILL
    (room.hooks / "slow").unlink()
    room.ground.controller.start()
    status = room.wait_status("machine", lambda s: s["machines"][0]["phase"] == "Started",
                              "the machine to be started", 60)
    assert status["machines"][0]["operationID"] == machine["operationID"]
    made = [path for path in room.hooks.iterdir() if path.name.startswith("machine-")]
    assert len(made) == 1 and status["machines"][0]["machineID"] == made[0].read_text().strip()
    assert condition(status, "Created")["reason"] == "Started"
    calls = [line.split() for line in room.calls()[before:]]
    assert {tuple(call[:3]) for call in calls} == {("vm-room", machine["operationID"], "default/machine")}
    assert json.loads(calls[0][3])["workloads"] == 1

    # Decided is decided: a better site that comes later changes nothing.
    room.add_site("vm-cheap", region="create", createHook="vms", indicators=[{"name": "cost", "value": 0}])
    room.ask("later", region="create")
    room.wait_status("later", lambda s: s.get("sitesTotal") == 2, "both sites to be seen")
    assert room.status("machine")["site"] == "vm-room"
    assert len([path for path in room.hooks.iterdir() if path.name.startswith("machine-")]) == 1
    for name in ("machine", "later"):
        room.api.delete("SiteRecommendation", name, "default")
    room.api.delete("Site", "vm-cheap")
    room.api.delete("Site", "vm-room")


def test_a_hook_that_refuses_is_not_asked_again_and_one_that_waits_is(room):
    for name, value in (("full", 2), ("later", 1)):
        room.add_site(f"hook-{name}", region="hooks", createHook="vms", indicators=[{"name": "v", "value": value}])
    room.add_site("hook-none", region="hooks", indicators=[{"name": "v", "value": 0}])
    (room.hooks / "full-hook-full").touch()
    (room.hooks / "later-hook-later").touch()
    room.ask("three", region="hooks", action="Create", count=3, weights=[{"indicator": "v"}])
    status = room.wait_status("three", lambda s: len([m for m in s.get("machines", []) if m.get("attempts")]) == 3,
                              "all hooks to be called")
    full, later, none = status["machines"]
    assert (full["phase"], full["site"]) == ("Failed", "hook-full")
    assert "outside what it offers" in full["message"] and "no room in hook-full" in full["message"]
    assert (later["phase"], later["message"]) == ("Intended", "the hook has accepted it") and later["nextAttempt"]
    assert none["phase"] == "Intended" and "--site-hook" in none["message"]
    assert condition(status, "Created")["reason"] == "HookRefused"
    (room.hooks / "later-hook-later").unlink()
    status = room.wait_status("three", lambda s: s["machines"][1]["phase"] == "Started", "the later machine")
    assert status["machines"][1]["operationID"] == later["operationID"] and status["machines"][1]["attempts"] == 2
    assert len([line for line in room.calls() if line.startswith("hook-full ")]) == 1
    room.api.delete("SiteRecommendation", "three", "default")
    for name in ("full", "later", "none"):
        room.api.delete("Site", f"hook-{name}")


def test_callers_outside_kubernetes_get_the_same_answer_if_they_may(room):
    room.ground.bed.kubectl("apply", "-f", ROOT / "examples" / "siterecommendation.yaml")
    room.wait_status("worked-case", lambda s: s.get("site") == "d", "the object's answer")
    spec = room.api.get("SiteRecommendation", "worked-case", "default")["spec"]
    trust = ssl.create_default_context(cafile=str(room.ground.bed.ca_file))
    url = room.ground.ingest_url + "/apis/sites/recommendations"

    def post(body, token=None, method="POST"):
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, context=trust, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    token = room.ground.bed.token_for("kwatt-site-recommender", NAMESPACE, audience="kwatt")
    code, answer = post(spec, token)
    assert code == 200, answer
    status = room.status("worked-case")
    for member in ("site", "total", "sites", "sitesTotal", "excluded", "excludedTotal", "weights"):
        assert answer.get(member) == status.get(member), member
    assert post({}, token)[1]["sitesTotal"] >= 4  # an empty request ranks all

    assert post(spec)[0] == 401 and post(spec, "nonsense")[0] == 401
    code, said = post(spec, room.ground.bed.token_for("kwatt-history-reader", NAMESPACE, audience="kwatt"))
    assert code == 403 and "ClusterRole kwatt-site-recommender" in said
    for body, sentence in ((b"{", "malformed JSON"), ({"regoin": "A"}, "regoin: there is no such field"),
                           ({"affinity": {"site": ["d"]}}, "affinity.site: there is no such field"),
                           ({"workloads": -1}, "spec.workloads: -1 must be within 1 and 1000"),
                           ({"resources": {"cpuMillicores": "1"}}, "resources.cpuMillicores: expected"),
                           ({"action": "Create"}, "make a SiteRecommendation"),
                           (b"[]", "expected")):
        code, said = post(body, token)
        assert code == 400 and sentence in said, (body, said)
    assert post(b" " * 70_000, token)[0] == 413
    assert post({}, token, "PUT")[0] == 405
    room.ground.bed.kubectl("delete", "-f", ROOT / "examples" / "siterecommendation.yaml", "--wait=false")


def test_people_without_the_right_cannot_write_answers(room):
    client = room.ground.bed.client_with_token(room.ground.bed.token_for("kwatt-site-recommender", NAMESPACE))
    with pytest.raises(ApiError) as refused:
        client.create({"apiVersion": API, "kind": "SiteRecommendation",
                       "metadata": {"name": "x", "namespace": "default"}})
    assert refused.value.status == 403
