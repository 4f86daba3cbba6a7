"""The test bed behaves like a cluster of machines that can be switched off and on."""
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bed import ApiError, Bed, Timers, bulk, objects, wait_until
from bed.process import port_is_free

# One control plane for this file, and parts of it are stopped: all on one worker, apart from the shared one's tests.
pytestmark = [pytest.mark.xdist_group("bed"), pytest.mark.long(80)]

BED_SCRIPT = Path(__file__).with_name("bed.py")


@pytest.fixture(scope="module")
def bed():
    with Bed(timers=Timers(node_monitor_grace="8s", node_lease_seconds=6),
             scheduler_config={"percentageOfNodesToScore": 100}) as running:
        yield running


@pytest.fixture
def namespace(bed, request):
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    bed.create_namespace(name)
    return name


def running_pods(bed, namespace):
    return [pod for pod in bed.api.list("Pod", namespace) if objects.pod_is_running(pod)]


def taints(bed, node):
    return {taint["key"] for taint in bed.api.get("Node", node)["spec"].get("taints", [])}


def add_nodes(bed, *names):
    """Nodes for one test only: pods select them by label, so that tests do not see each other."""
    for name in names:
        bed.create_node(name, labels={"group": names[0]})
    return {"group": names[0]}


def test_starts_within_seconds_and_answers_kubectl(bed):
    assert bed.start_seconds < 30
    version = bed.kubectl_json("version")
    assert version["serverVersion"]["gitVersion"] == version["clientVersion"]["gitVersion"] == "v1.34.4"


def test_a_deployment_runs_and_an_evicted_pod_is_replaced_on_the_other_node(bed, namespace):
    selector = add_nodes(bed, "evict-a", "evict-b")
    bed.api.create(objects.deployment("web", 2, namespace, cpu="1", node_selector=selector))
    wait_until(lambda: len(running_pods(bed, namespace)) == 2, 20, "two pods to run")
    # Which of them the scheduler took is its own business: one may still have been not ready.
    emptied = running_pods(bed, namespace)[0]["spec"]["nodeName"]
    other = ({"evict-a", "evict-b"} - {emptied}).pop()
    bed.kubectl("cordon", emptied)
    for pod in running_pods(bed, namespace):
        if pod["spec"]["nodeName"] == emptied:
            bed.api.evict(pod["metadata"]["name"], namespace)

    def moved():
        pods = bed.api.list("Pod", namespace)
        return len(pods) == 2 and all(map(objects.pod_is_running, pods)) and \
            {pod["spec"]["nodeName"] for pod in pods} == {other}
    wait_until(moved, 20, "both pods to run on the other node, what was evicted gone")


def test_a_disruption_budget_refuses_an_eviction_with_429(bed, namespace):
    selector = add_nodes(bed, "budget-a")
    bed.api.create(objects.disruption_budget("all", {"app": "web"}, min_available=1, namespace=namespace))
    bed.api.create(objects.deployment("web", 1, namespace, node_selector=selector))
    wait_until(lambda: running_pods(bed, namespace), 20, "the pod to run")
    with pytest.raises(ApiError) as refused:
        bed.api.evict(running_pods(bed, namespace)[0]["metadata"]["name"], namespace)
    assert refused.value.status == 429


def test_a_node_that_is_switched_off_goes_not_ready_and_comes_back(bed, namespace):
    selector = add_nodes(bed, "power-a")
    bed.api.create(objects.deployment("web", 1, namespace, node_selector=selector))
    wait_until(lambda: running_pods(bed, namespace), 20, "the pod to run")
    pod = running_pods(bed, namespace)[0]["metadata"]["name"]

    bed.power_off_node("power-a")
    bed.wait_node_ready("power-a", False, 20)
    wait_until(lambda: "node.kubernetes.io/unreachable" in taints(bed, "power-a"), 20, "the taint of a silent node")
    bed.api.delete("Pod", pod, namespace)
    time.sleep(2)
    assert "deletionTimestamp" in bed.api.get("Pod", pod, namespace)["metadata"], \
        "a silent kubelet ended a pod"

    bed.power_on_node("power-a")
    bed.wait_node_ready("power-a", True, 20)
    wait_until(lambda: bed.api.find("Pod", pod, namespace) is None, 20, "the returned kubelet to end the deleted pod")
    wait_until(lambda: running_pods(bed, namespace), 20, "the replacement to run on the returned node")
    assert objects.condition(running_pods(bed, namespace)[0], "Ready")["status"] == "True"


def test_pods_of_a_node_that_returns_become_ready_again(bed, namespace):
    selector = add_nodes(bed, "return-a")
    bed.api.create(objects.deployment("web", 1, namespace, node_selector=selector))
    wait_until(lambda: running_pods(bed, namespace), 20, "the pod to run")

    def ready():
        return objects.condition(running_pods(bed, namespace)[0], "Ready")["status"]
    bed.power_off_node("return-a")
    wait_until(lambda: ready() == "False", 25, "the pod of the lost node to be not ready")
    bed.power_on_node("return-a")
    wait_until(lambda: ready() == "True", 20, "the pod to be ready again")


def test_a_client_certificate_has_the_rights_of_its_groups_only(bed):
    viewer = bed.client_for("jane", ["people"])
    with pytest.raises(ApiError) as refused:
        viewer.list("Node")
    assert refused.value.status == 403 and 'User "jane"' in str(refused.value)
    kubeconfig = bed.kubeconfig_for("root", ["system:masters"])
    assert bed.kubectl("auth", "can-i", "*", "*", kubeconfig=kubeconfig).strip() == "yes"


def test_a_node_bound_token_names_its_node_and_audience(bed):
    bed.create_node("token-a")
    token = bed.token_for("default", "default", audience="kwatt", bound_node="token-a")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
              "spec": {"token": token, "audiences": ["kwatt"]}}
    status = bed.api.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
    assert status["authenticated"] and status["audiences"] == ["kwatt"]
    assert status["user"]["username"] == "system:serviceaccount:default:default"
    assert status["user"]["extra"]["authentication.kubernetes.io/node-name"] == ["token-a"]
    with pytest.raises(ApiError) as refused:
        bed.client_with_token(token).list("Node")
    assert refused.value.status == 401, "a token for another audience was taken by the API server"


def test_a_server_certificate_is_verified_by_the_ca(bed):
    certificate, key = bed.issue_server_cert("bmc-7", ["127.0.0.1", "bmc-7.example"])
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    for name in ("127.0.0.1", "bmc-7.example"):
        handshake(server, ssl.create_default_context(cafile=bed.ca_file), name)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, ssl.create_default_context(cafile=bed.ca_file), "other.example")


def handshake(server_context, client_context, name):
    """A TLS handshake in memory; raises what the client finds wrong with the certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    assert client.version() in ("TLSv1.2", "TLSv1.3")


def test_an_api_server_restart_keeps_port_and_data(bed):
    port = bed.port
    bed.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"},
                    "data": {"value": "42"}})
    bed.stop_apiserver(kill=True)
    with pytest.raises(OSError):
        bed.api.get("ConfigMap", "kept", "default")
    bed.start_apiserver()
    assert bed.port == port
    assert bed.api.get("ConfigMap", "kept", "default")["data"] == {"value": "42"}
    bed.restart_apiserver()
    assert bed.api.get("ConfigMap", "kept", "default")["data"] == {"value": "42"}


def test_many_objects_are_created_by_several_processes(bed, monkeypatch):
    monkeypatch.setattr(bulk, "CHUNK", 100)
    bed.create_namespace("bulk")
    names = [f"bulk-{index}" for index in range(5)]
    bulk.create_all(bed, (objects.node(name, kwok=False) for name in names))
    bulk.create_all(bed, bulk.bound_pods(250, names, "bulk"))
    pods = bed.api.list("Pod", "bulk")
    assert len(pods) == 250 and {pod["spec"]["nodeName"] for pod in pods} == set(names)
    with pytest.raises(RuntimeError, match="already exists"):
        bulk.create_all(bed, bulk.bound_pods(250, names, "bulk"))


def test_a_bed_without_controllers_keeps_what_is_written_into_it(tmp_path):
    with Bed(tmp_path, kwok=False, scheduler=False, controller_manager=False, audit=True) as bare:
        bare.create_namespace("load")
        bulk.create_all(bare, [objects.node("static", kwok=False, ready=True)])
        running = ({**pod, "status": {"phase": "Running"}} for pod in bulk.bound_pods(3, ["static"], "load"))
        bulk.create_all(bare, running, statuses=True)
        assert objects.node_is_ready(bare.api.get("Node", "static"))
        assert [pod["status"]["phase"] for pod in bare.api.list("Pod", "load")] == ["Running"] * 3
        assert set(bare.process_names()) == {"etcd", "kube-apiserver"}
        requests = [json.loads(line) for line in bare.audit_log.read_text().splitlines()]
    created = [one for one in requests if one["verb"] == "create" and one["objectRef"]["resource"] == "pods"]
    assert len(created) == 3 and created[0]["requestObject"]["spec"]["nodeName"] == "static"


def test_no_process_outlives_a_killed_owner(tmp_path):
    owner = subprocess.Popen([sys.executable, BED_SCRIPT, "up", "--dir", tmp_path, "--no-kwok"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert owner.stdout.readline().startswith("KUBECONFIG=")
        children = Path(f"/proc/{owner.pid}/task/{owner.pid}/children")
        pids = {int(pid) for task in children.parent.parent.iterdir()
                for pid in (task / "children").read_text().split()}
        assert len(pids) == 4
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait(timeout=10)
        owner.stdout.close()
    wait_until(lambda: not any(alive(pid) for pid in pids), 10, "etcd and the others to end")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_up_detaches_and_down_ends_it(tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, BED_SCRIPT, *arguments, "--dir", tmp_path], capture_output=True,
                              text=True, timeout=120)
    try:
        started = run("up", "--nodes", "2", "--detach")
        assert started.returncode == 0, started.stderr
        assert started.stdout == f"KUBECONFIG={tmp_path}/admin.kubeconfig\n"
        assert run("up").stdout == started.stdout, "a second up must name the running bed"
        state = json.loads((tmp_path / "bed.json").read_text())
        port = int((tmp_path / "admin.kubeconfig").read_text().split("https://127.0.0.1:")[1].split()[0])
        assert not port_is_free(port)
    finally:
        ended = run("down")
    assert ended.returncode == 0, ended.stderr
    assert not os.path.exists(f"/proc/{state['pid']}") and port_is_free(port)
