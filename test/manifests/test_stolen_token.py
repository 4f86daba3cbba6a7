"""What a stolen token of an agent is good for: reading what agents read, and the report of its own machine."""
import base64
import json
import subprocess
import time
from pathlib import Path

import pytest

from bed import ApiError, objects, wait_until
from rights import rights_of

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "kwatt-system"
pytestmark = pytest.mark.xdist_group("manifests")

POWER = "/apis/kwatt.dev/v1alpha1/nodepowers"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
MERGE, JSON_PATCH, APPLY = ("application/merge-patch+json", "application/json-patch+json",
                            "application/apply-patch+yaml")


@pytest.fixture(scope="module")
def bed(bare_bed):
    bed = bare_bed
    bed.kubectl("create", "secret", "generic", "bmc", "-n", NAMESPACE, "--from-literal=password=x")
    bed.kubectl("apply", "-f", "-", input=lease())
    thief = stolen(bed)
    # The API server reads roles and admission policies from watches of its own: wait until they count.
    wait_until(lambda: status(thief, "PATCH", f"{POWER}/other/status", {"status": {"watts": 1}}, MERGE) == 403 and
               status(thief, "GET", "/api/v1/nodes") == 200, 20, "roles and policy to be in force")
    return bed


def lease():
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "kwatt-controller", "namespace": NAMESPACE}, "spec": {"holderIdentity": "controller"}}


def stolen(bed):
    return bed.client_with_token(bed.token_for("kwatt-agent", NAMESPACE, bound_node="own"))


def status(client, method, path, body=None, content_type="application/json"):
    """The HTTP status of the answer."""
    try:
        client.request(method, path, body, content_type)
    except ApiError as error:
        return error.status
    return 200


@pytest.fixture(scope="module")
def thief(bed):
    return stolen(bed)


def annotated(**annotations):
    return {"metadata": {"annotations": {f"kwatt.dev/{key}": value for key, value in annotations.items()}}}


OPERATION = {"id": "evil", "kind": "PowerOff", "step": "SoftOff"}
REFUSED = {
    # Its own machine, but not its report.
    "forge an operation": ("PATCH", f"{POWER}/own/status", {"status": {"operation": OPERATION}}, MERGE),
    "forge an operation beside a report": (
        "PATCH", f"{POWER}/own/status", {"status": {"report": {"watts": 5}, "operation": OPERATION}}, MERGE),
    "forge the memory": ("PATCH", f"{POWER}/own/status",
                         [{"op": "add", "path": "/status", "value": {"memory": {"poweredOffByUs": True}}}], JSON_PATCH),
    "forge the memory by apply": (
        "PATCH", f"{POWER}/own/status?fieldManager=kwatt-controller-status&force=true",
        {"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower", "metadata": {"name": "own"},
         "status": {"memory": {"failureCount": 9}}}, APPLY),
    "forge the decision": ("PATCH", f"{POWER}/own/status", {"status": {"decision": {"desired": "Off"}}}, MERGE),
    "forge the power state": ("PATCH", f"{POWER}/own/status", {"status": {"powerState": "Off"}}, MERGE),
    "forge the BMC's limit of before": (
        "PATCH", f"{POWER}/own/status", {"status": {"bmc": {"originalKnown": True, "originalCapWatts": 999}}}, MERGE),
    "forge the source of the watts": ("PATCH", f"{POWER}/own/status", {"status": {"power": {"meter": "redfish"}}}, MERGE),
    "replace its status": ("PUT", f"{POWER}/own/status", {
        "apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower", "metadata": {"name": "own"}, "status": {}}),
    "point its machine at another BMC": ("PATCH", f"{POWER}/own", {"spec": {"bmc": {"address": "lab://x"}}}, MERGE),
    "ask for a wake test": ("PATCH", f"{POWER}/own", annotated(**{"wake-test": "requested"}), MERGE),
    "delete its NodePower": ("DELETE", f"{POWER}/own"),
    # Other machines.
    "report for another machine": ("PATCH", f"{POWER}/other/status", {"status": {"report": {"watts": 5}}}, MERGE),
    "make a NodePower": ("POST", POWER, {"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower",
                                         "metadata": {"name": "new"}}),
    "list all NodePowers": ("GET", POWER),
    # Nodes, its own among them.
    "label a Node": ("PATCH", "/api/v1/nodes/own", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    "annotate its Node": ("PATCH", "/api/v1/nodes/own", annotated(governor="performance"), MERGE),
    "annotate another Node": ("PATCH", "/api/v1/nodes/other", annotated(exclude="true"), MERGE),
    "cordon a Node": ("PATCH", "/api/v1/nodes/other", {"spec": {"unschedulable": True}}, MERGE),
    "change a Node's capacity": ("PATCH", "/api/v1/nodes/own/status", {"status": {"capacity": {"cpu": "1000"}}}, MERGE),
    "delete a Node": ("DELETE", "/api/v1/nodes/other"),
    # What is the controller's, or nobody's.
    "read the BMC's password": ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/bmc"),
    "list Secrets": ("GET", "/api/v1/secrets"),
    "take the controller's Lease": ("PATCH", f"{LEASES}/kwatt-controller", {"spec": {"holderIdentity": "x"}}, MERGE),
    "renew the controller's Lease": ("PUT", f"{LEASES}/kwatt-controller", lease()),
    "delete the controller's Lease": ("DELETE", f"{LEASES}/kwatt-controller"),
    "make a Lease": ("POST", LEASES, {**lease(), "metadata": {"name": "x", "namespace": NAMESPACE}}),
    "read another Lease": ("GET", f"{LEASES}/x"),
    "read a policy": ("GET", "/apis/kwatt.dev/v1alpha1/energypolicies"),
    "change a policy": ("PATCH", "/apis/kwatt.dev/v1alpha1/energypolicies/x", {"spec": {"suspend": True}}, MERGE),
    "read pods": ("GET", "/api/v1/pods"),
    "evict a pod": ("POST", "/api/v1/namespaces/default/pods/x/eviction",
                    {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}}),
    "get a token for another node": (
        "POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/kwatt-agent/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
    "review tokens": ("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                      {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}}),
    "write an event": ("POST", "/apis/events.k8s.io/v1/namespaces/default/events", {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "x"}}),
    "weaken the admission policy": (
        "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kwatt-agent"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_stolen_token_cannot(what, bed, thief):
    before = bed.api.get("NodePower", "own")
    assert status(thief, *REFUSED[what]) == 403
    assert bed.api.get("NodePower", "own")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_stolen_token_can_report_for_its_own_machine_and_read_what_agents_read(bed, thief):
    report = {"status": {"report": {"watts": 77}}}
    assert status(thief, "PATCH", f"{POWER}/own/status", report, MERGE) == 200
    assert bed.api.get("NodePower", "own")["status"]["report"]["watts"] == 77
    for path in ("/api/v1/nodes", f"{POWER}/own", f"{POWER}/other", f"{LEASES}/kwatt-controller"):
        assert (path, status(thief, "GET", path)) == (path, 200)


def test_metadata_does_not_ride_along_with_a_report(bed, thief):
    body = {**annotated(**{"wake-test": "requested"}), "status": {"report": {"watts": 78}}}
    body["metadata"]["labels"] = {"stolen": "yes"}
    body["spec"] = {"bmc": {"address": "lab://x"}}
    assert status(thief, "PATCH", f"{POWER}/own/status", body, MERGE) == 200
    after = bed.api.get("NodePower", "own")
    assert after["status"]["report"]["watts"] == 78
    assert not after["metadata"].get("annotations") and not after["metadata"].get("labels")
    assert not after.get("spec", {}).get("bmc", {}).get("address")


def test_the_api_servers_own_list_of_an_agents_rights_is_that_of_the_manifests(thief):
    """SelfSubjectRulesReview also counts what every account gets; nothing but these may come on top."""
    everybodys = {"authentication.k8s.io", "authorization.k8s.io"}
    for namespace in (NAMESPACE, "default"):
        answer = thief.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}})
        counted = {(group, resource, verb) for rule in answer["status"]["resourceRules"]
                   for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
                   if group not in everybodys}
        given = {(r.group, r.resource, r.verb) for r in rights_of("kwatt-agent") if r.scope in ("*", namespace)}
        assert counted == given


# ---- tokens that are no longer, or never were --------------------------------------------------------------------


def test_a_token_of_another_audience_is_refused(bed):
    token = bed.token_for("kwatt-agent", NAMESPACE, audience="kwatt", bound_node="own")
    assert status(bed.client_with_token(token), "GET", "/api/v1/nodes") == 401


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def signed(head, claims, key):
    """A JWT (ES256). openssl writes the two numbers of the signature as DER, a JWT holds them bare."""
    text = f"{encoded(json.dumps(head).encode())}.{encoded(json.dumps(claims).encode())}"
    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(key)], input=text.encode(), capture_output=True,
                         check=True).stdout
    size = der[3]
    numbers = der[4:4 + size], der[6 + size:]
    bare = b"".join(int.from_bytes(number, "big").to_bytes(32, "big") for number in numbers)
    return f"{text}.{encoded(bare)}"


def test_an_expired_token_and_one_of_another_key_are_refused(bed, tmp_path):
    """Tokens live ten minutes at least, so an old one is signed here with the API server's key."""
    head, claims, _ = (bed.token_for("kwatt-agent", NAMESPACE, bound_node="own")).split(".")
    head, claims = decoded(head), decoded(claims)
    key = bed.directory / "pki" / "service-account.key"

    def answer(token):
        return status(bed.client_with_token(token), "GET", "/api/v1/nodes")

    now = int(time.time())
    assert answer(signed(head, claims, key)) == 200, "signing itself works"
    assert answer(signed(head, {**claims, "iat": now - 7200, "nbf": now - 7200, "exp": now - 3600}, key)) == 401
    foreign = tmp_path / "foreign.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                    str(foreign)], check=True, capture_output=True)
    assert answer(signed(head, claims, foreign)) == 401
    other = {**claims["kubernetes.io"], "node": {"name": "other", "uid": "x"}}
    assert answer(signed(head, {**claims, "kubernetes.io": other}, foreign)) == 401


def test_the_token_of_a_deleted_pod_is_refused(bed):
    body = objects.pod("agent", namespace=NAMESPACE, node_name="own")
    body["spec"]["serviceAccountName"] = "kwatt-agent"
    bed.api.create(body)
    token = bed.client_with_token(bed.token_for("kwatt-agent", NAMESPACE, bound_pod="agent"))
    # A pod's token names its node, so the agent's DaemonSet needs no more than this.
    assert status(token, "PATCH", f"{POWER}/own/status", {"status": {"report": {"watts": 79}}}, MERGE) == 200
    assert status(token, "PATCH", f"{POWER}/other/status", {"status": {"report": {"watts": 79}}}, MERGE) == 403
    bed.kubectl("delete", "pod", "agent", "-n", NAMESPACE, "--grace-period=0", "--force")
    wait_until(lambda: status(token, "GET", "/api/v1/nodes") == 401, 40, "the token to be refused")


def test_the_token_of_a_deleted_node_is_refused(bed):
    bed.create_node("short-lived", wait=False)
    token = bed.client_with_token(bed.token_for("kwatt-agent", NAMESPACE, bound_node="short-lived"))
    assert status(token, "GET", "/api/v1/nodes") == 200
    bed.kubectl("delete", "node", "short-lived")
    wait_until(lambda: status(token, "GET", "/api/v1/nodes") == 401, 40, "the token to be refused")
