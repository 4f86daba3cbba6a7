"""Real kube-schedulers ask the real kwatt-controller where pods go."""
import http.client
import itertools
import json
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest
from bed import objects
from bed.process import wait_until
from e2e.case import FAST, merged
from e2e.test_frequency_and_power import CAPPING, LAB_MODEL

from extender_site import ExtenderSite

pytestmark = pytest.mark.xdist_group("extender")
ROOT = Path(__file__).resolve().parent.parent.parent
NUMBERS = itertools.count(1)
FLAT = {"idleMilliwatts": 100_000, "maxMilliwatts": 140_000}
STEEP = {"idleMilliwatts": 100_000, "maxMilliwatts": 400_000}
DVFS = {"powerOff": {"enabled": False}, "powerOn": {"enabled": False},
        "dvfs": {"enabled": True, "window": "3s", "lowUtilizationPercent": 30, "highUtilizationPercent": 60}}


@pytest.fixture(scope="module")
def extender(tmp_path_factory):
    with ExtenderSite(tmp_path_factory.mktemp("extender")) as site:
        yield site


@pytest.fixture
def space(extender):
    """A namespace, which is the label case=… of its machines, too."""
    name = f"place-{next(NUMBERS)}"
    extender.bed.create_namespace(name)
    yield name
    extender.bed.kubectl("delete", "energypolicies", "--all", "--wait=false")
    extender.bed.kubectl("delete", "pods", "-n", name, "--all", "--force", "--grace-period=0", "--wait=false")


def add(extender, space, *machines):
    """(suffix, model, further fields) each; the names of the machines."""
    names = [f"{space}-{suffix}" for suffix, _, _ in machines]
    extender.site.add_machines(*({"name": name, "bmc": None, "model": model, "labels": {"case": space}, **fields}
                                 for name, (_, model, fields) in zip(names, machines)))
    return names


def apply_policy(extender, space, spec):
    body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": space},
            "spec": merged({**FAST, "nodeSelector": {"matchLabels": {"case": space}}}, spec)}
    extender.bed.kubectl("apply", "-f", "-", input=body)


def label(extender, node, key):
    return extender.site.node(node)["metadata"]["labels"].get(key)


@pytest.mark.parametrize("scheduler", ["default-scheduler", "kwatt-bind", "kwatt-whole"])
def test_a_pod_lands_on_the_node_with_the_least_increase_and_the_log_says_why(extender, space, scheduler):
    flat, steep = add(extender, space, ("flat", FLAT, {}), ("steep", STEEP, {}))
    chosen = [extender.place(space, f"web-{i}", cpu="1", node_selector={"case": space}, scheduler=scheduler)
              for i in range(3)]
    assert chosen == [flat] * 3
    controller = extender.follower if scheduler == "kwatt-bind" else extender.leader
    line = wait_until(lambda: extender.ranking(f"{space}/web-0", controller), 10, "the explanation")
    print(line)
    assert f"{flat}: score 10" in line and f"{steep}: score 1" in line and "EnergyIncrease" in line


def test_a_slow_node_is_chosen_only_if_nothing_else_fits(extender, space):
    flat, steep = add(extender, space, ("flat", FLAT, {"cpu": 4}), ("steep", STEEP, {"cpu": 4}))
    extender.bed.kubectl("label", "node", flat, "kwatt.dev/frequency=low")
    wait_until(lambda: label(extender, flat, "kwatt.dev/frequency") == "low", 10, "the label")
    assert extender.place(space, "first", cpu="3", node_selector={"case": space}) == steep
    assert extender.place(space, "second", cpu="3", node_selector={"case": space}) == flat
    assert "fits elsewhere" in extender.log()


def slow_machine(extender, space):
    """A machine that a policy has slowed down."""
    machine, = add(extender, space, ("slow", FLAT, {}))
    extender.site.room.set_load(machine, 5)
    apply_policy(extender, space, DVFS)
    wait_until(lambda: label(extender, machine, "kwatt.dev/frequency") == "low", 60, "the machine to be slow")
    return machine


def test_without_bind_a_chosen_slow_node_is_restored_when_the_assignment_is_seen(extender, space):
    machine = slow_machine(extender, space)
    assert extender.place(space, "web", cpu="1", node_selector={"case": space}) == machine
    wait_until(lambda: extender.site.governor(machine) == "performance", 30, "the governor of full speed")
    wait_until(lambda: label(extender, machine, "kwatt.dev/frequency") == "normal", 20, "the label")
    wait_until(lambda: extender.site.machine_power(machine)["decision"]["reason"] == "Scheduled", 10, "the reason")
    wait_until(lambda: f"pod {space}/web was scheduled to it while it was slow" in extender.log(), 10, "the log line")


def test_without_bind_a_chosen_capped_node_is_restored_when_the_assignment_is_seen(extender, space):
    machine, = add(extender, space, ("hot", LAB_MODEL, {}))
    extender.site.room.set_load(machine, 100)
    apply_policy(extender, space, CAPPING)
    wait_until(lambda: label(extender, machine, "kwatt.dev/capped") == "true", 60, "the machine to be capped")
    assert extender.place(space, "web", cpu="1", node_selector={"case": space}) == machine
    wait_until(lambda: f"pod {space}/web was scheduled to it while it was capped" in extender.log(), 30, "the log line")
    extender.site.room.set_load(machine, 5)  # or it would be capped again for what it draws
    report = lambda: extender.site.machine_power(machine)["report"]
    wait_until(lambda: report().get("requestedCapWatts", 0) == 0, 40, "the cap to be gone")


def test_bind_restores_a_slow_node_before_the_pod_is_bound_by_a_replica_that_does_not_lead(extender, space):
    machine = slow_machine(extender, space)
    assert extender.place(space, "web", cpu="1", node_selector={"case": space}, scheduler="kwatt-bind") == machine
    log = extender.log(extender.follower)
    line = next(line for line in log.splitlines() if f"pod={space}/web" in line and "restored" in line)
    print(line)
    # kwatt itself has bound it: kube-scheduler would, too, had that failed.
    assert any(f"pod={space}/web" in line and "pod bound" in line for line in log.splitlines())
    assert extender.site.governor(machine) == "performance"
    assert "kwatt.dev/restore" not in extender.site.node(machine)["metadata"]["annotations"]


def test_a_replacement_goes_where_the_plan_reserved_room(extender, space):
    # The policy has the plan take the fullest node first, so the reserved node is not the one that kube-scheduler, or
    # the least increase, would choose.
    cheap, full, empty = add(extender, space, ("cheap", FLAT, {}), ("full", STEEP, {}), ("drained", STEEP, {}))
    for node, app, count in ((full, "filling", 3), (empty, "moving", 1), (cheap, "other", 2)):
        body = objects.deployment(app, replicas=count, namespace=space, cpu="1",
                                  node_selector={"kubernetes.io/hostname": node})
        extender.bed.kubectl("apply", "-f", "-", input=body)
    wait_until(lambda: sum(objects.pod_is_running(p) for p in extender.bed.api.list("Pod", space)) == 6, 30, "6 pods")
    # From now on the pod that is to move may go anywhere in this case.
    extender.bed.kubectl("cordon", cheap, full)
    extender.bed.kubectl("patch", "deployment", "moving", "-n", space, "--type=json", "-p", json.dumps(
        [{"op": "replace", "path": "/spec/template/spec/nodeSelector", "value": {"case": space}}]))
    wait_until(lambda: [p["spec"].get("nodeName") for p in extender.bed.api.list("Pod", space)
                        if p["metadata"]["labels"]["app"] == "moving"
                        and p["spec"]["nodeSelector"] == {"case": space} and objects.pod_is_running(p)] == [empty],
               30, "the new pod on the node that will be drained")
    extender.bed.kubectl("uncordon", cheap, full)
    extender.site.bed.api.patch("NodePower", empty, {"spec": {"bmc": extender.site.bmc_of(empty, "lab")}})
    apply_policy(extender, space, {
        "placement": {"strategy": "Default"},
        "migration": {"enabled": True, "strategy": "FewestPods", "maxNodes": 1, "minSavingScore": 1,
                      "drainTimeout": "20s", "evictionRetry": "1s"},
        "powerOff": {"idleFor": "1s", "minAwake": 2}})
    def moved():
        status = extender.site.policy(space).get("status", {})
        return [m for m in status.get("migrations", []) if m["podName"].startswith("moving-") and m.get("boundNode")]
    migration = wait_until(moved, 60, "the migration with its bound node")[0]
    assert migration["nodeName"] == full, migration
    assert migration["boundNode"] == full, migration


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", path, body=body if isinstance(body, bytes) else json.dumps(body),
                       headers={"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


POD = objects.pod("asked")


@pytest.mark.parametrize("path, body, status, sentence", [
    ("/scheduler/filter", b"{", 200, "no JSON"),
    ("/scheduler/filter", {"Pod": POD, "NodeNames": []}, 200, "nothing to choose from"),
    ("/filter", {"Pod": POD}, 200, "neither Nodes nor NodeNames"),
    ("/scheduler/prioritize", b"[]", 400, "not ExtenderArgs"),
    ("/prioritize", {"Pod": POD, "NodeNames": []}, 400, "nothing to choose from"),
    ("/scheduler/bind", {"PodName": "a"}, 200, "bind is not enabled"),
], ids=["cut", "empty", "no-nodes", "list", "empty-prioritize", "bind-off"])
def test_what_is_no_request_gets_a_sentence(extender, path, body, status, sentence):
    got, text = post(extender.plain_port, path, body)
    assert got == status and sentence in text, (got, text)


def test_unknown_nodes_pass_with_score_0(extender):
    body = {"Pod": POD, "NodeNames": ["never-heard-of"]}
    assert json.loads(post(extender.plain_port, "/filter", body)[1])["NodeNames"] == ["never-heard-of"]
    assert json.loads(post(extender.plain_port, "/prioritize", body)[1]) == [{"Host": "never-heard-of", "Score": 0}]


def test_a_body_that_is_too_large_is_refused_and_the_next_request_answered(extender):
    try:
        status, _ = post(extender.plain_port, "/filter", b" " * ((64 << 20) + 1))
    except (BrokenPipeError, ConnectionResetError):
        status = 413
    assert status == 413
    assert post(extender.plain_port, "/filter", {"Pod": POD, "NodeNames": ["x"]})[0] == 200


def test_requests_are_counted(extender):
    text = urllib.request.urlopen(extender.site.health_url + "/metrics").read().decode()
    for name in ("kwatt_extender_requests_total", "kwatt_extender_duration_seconds_bucket"):
        assert name in text, name


def test_the_readme_shows_what_its_command_prints():
    section = (ROOT / "README.md").read_text().split("## Where pods go")[1].split("\n## ")[0]
    command = re.search(r"```sh\n(.*?)\n```", section, re.S).group(1)
    printed = re.search(r"```text\n(.*?)```", section, re.S).group(1)
    run = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout == printed


def test_pods_are_scheduled_without_the_extender_and_with_one_that_is_not_ready(extender, space):
    add(extender, space, ("only", FLAT, {}))
    extender.leader.stop(grace=5)
    try:
        assert extender.place(space, "down", cpu="1", node_selector={"case": space}) == f"{space}-only"
    finally:
        extender.leader.start()
    # The caches are being filled: no opinion, but an answer.
    def answers():
        try:
            return post(extender.plain_port, "/filter", {"Pod": POD, "NodeNames": ["x"]})[0] == 200
        except OSError:
            return False
    wait_until(answers, 30, "the extender to answer again")
    assert extender.place(space, "back", cpu="1", node_selector={"case": space}) == f"{space}-only"
