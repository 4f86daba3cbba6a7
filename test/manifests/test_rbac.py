"""Least privilege, seen from outside: a site under audit lives through everything kwatt does, and each right in
manifests/ must have been used, and no request refused. The same run must not have told anybody a secret."""
import base64
import http.client
import json
import ssl
import urllib.parse
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

import pytest

from bed import ApiError, CommandError, wait_until
from e2e.case import Case
from lab.site import BMC_PASSWORD, BMC_USER, NAMESPACE, Site
from rights import ROOT, Right, requests_of, rights_of

pytestmark = [pytest.mark.xdist_group("rbac"), pytest.mark.long(70)]

CONTROLLER = f"system:serviceaccount:{NAMESPACE}:kwatt-controller"
AGENT = f"system:serviceaccount:{NAMESPACE}:kwatt-agent"
WRONG_PASSWORD = "wrong-password-8c1f77"
# A right that no ordinary run needs → the test that needs it.
ELSEWHERE = {
    "kwatt-controller": {
        # Looks whether the pod that could not be evicted is still the one of the plan.
        Right("*", "", "pods", "get"): ("test/kube/live/test_live.cpp", "eviction honours the uid"),
        # No job is queued in this run.
        Right("*", "", "pods", "patch"):
            ("test/reconcilers/test_queue_on_bed.py", "test_jobs_pass_the_gate_in_the_order_of_the_strategy"),
        Right("*", "batch", "jobs", "create"):
            ("test/reconcilers/test_queue_on_bed.py", "test_a_posted_job_becomes_a_job_that_runs"),
        # Asks whether a caller may read the history.
        Right("*", "authorization.k8s.io", "subjectaccessreviews", "create"):
            ("test/e2e/test_telemetry.py", "the_history_is_for_those_who_may_read_it"),
        # Answers to SiteRecommendations, and what was measured of Sites.
        **{Right("*", "kwatt.dev", f"{resource}/status", "patch"):
           ("test/reconcilers/test_sites_on_bed.py", "test_the_worked_case_comes_out_exactly")
           for resource in ("sites", "siterecommendations")},
        # Kinds of other projects, whose CRDs are not there in this run.
        **{Right("*", group, resource, verb): ("test/e2e/test_guards_others.py", "buffers_of_others_hold_machines")
           for group, resource in (("autoscaling.x-k8s.io", "capacitybuffers"), ("", "podtemplates"),
                                   ("remediation.medik8s.io", "nodehealthchecks"))
           for verb in ("list", "watch")},
        # There is no Estimator in this run.
        Right("*", "kwatt.dev", "estimators/status", "patch"):
            ("test/e2e/test_estimator.py", "the_status_tells_their_watts"),
        # Takes the request for a wake test back when it has its result.
        Right("*", "kwatt.dev", "nodepowers", "patch"): ("test/e2e/test_wake.py", "the annotation to be gone"),
        # Only with --metrics-api.
        Right("*", "metrics.k8s.io", "nodes", "list"): ("test/e2e/test_telemetry_sources.py", "test_utilization_comes_from"),
    },
    "kwatt-agent": {},
}
DVFS = {"powerOff": {"enabled": False}, "powerOn": {"enabled": False}, "dvfs": {"enabled": True, "window": "3s"}}
MIGRATE = {"migration": {"enabled": True, "strategy": "FewestPods", "maxNodes": 1, "minSavingScore": 1,
                         "drainTimeout": "20s", "evictionRetry": "1s"}, "powerOff": {"idleFor": "1s"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("rbac"), audit=True) as site:
        site.start_controller()
        yield site


@pytest.fixture(scope="module")
def story(site):
    """Drains, switches off and wakes over Redfish, slows down, gives back, fails at a wrong password."""
    wrong_password(site)
    drained_and_woken(site)
    slowed_down_twice(site)
    return site


def drained_and_woken(site):
    case = Case(site, "drain")
    first, second = case.add_machines(2, cpu=8, bmc="redfish")
    case.add_machines(1, bmc=None, model=None)  # its NodePower is made by the controller
    case.deploy_on("big", first, replicas=2, cpu="1")
    case.deploy_on("small", second, replicas=1, cpu="1")
    case.apply_policy(MIGRATE)
    case.wait_off(second, seconds=60)
    case.bed.kubectl("annotate", "node", second, "kwatt.dev/override=on")
    case.wait_on(second, seconds=60)


def slowed_down_twice(site):
    """Twice the same, so that its event is counted up instead of written anew."""
    case = Case(site, "slow")
    machine, = case.add_machines(1)
    site.room.set_load(machine, 5)
    original = site.governor(machine)
    for _ in range(2):
        case.apply_policy(DVFS)
        case.wait(lambda: site.governor(machine) == "powersave", 40, "powersave in sysfs")
        case.bed.kubectl("delete", "energypolicy", case.name, "--timeout=40s")
        case.wait(lambda: site.governor(machine) == original, 30, "the original governor")


def wrong_password(site):
    def encoded(text):
        return base64.b64encode(text.encode()).decode()

    site.bed.kubectl("apply", "-f", "-", input={
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bmc-wrong", "namespace": NAMESPACE},
        "data": {"username": encoded(BMC_USER), "password": encoded(WRONG_PASSWORD)}})
    case = Case(site, "wrong")
    for machine in case.add_machines(2, bmc="redfish"):
        site.bed.api.patch("NodePower", machine, {"spec": {"bmc": {"credentialsSecretRef": {"name": "bmc-wrong"}}}})
    case.apply_policy()
    case.wait(lambda: any("BMCError" in site.bed.kubectl("get", "events", "-n", "default", "--field-selector",
                                                         f"involvedObject.name={m}") for m in case.machines),
              40, "the password to be refused")
    assert site.commands(case.machines[0]) == []


# ---- what leaves the programs --------------------------------------------------------------------------------


def tokens_in(site):
    for path in [*site.directory.rglob("*.kubeconfig"), *site.directory.rglob("push.token")]:
        text = path.read_text()
        if path.suffix == ".token":
            yield text.strip()
        elif " token: " in text:
            yield text.split(" token: ", 1)[1].split()[0]


def what_kwatt_says(site):
    """(where, text) of everything that people or collectors get to see."""
    for path in [*site.directory.glob("*.log"), *site.directory.glob("room/*/agent.log")]:
        yield str(path.relative_to(site.directory)), path.read_text(errors="replace")
    for kind in ("events.events.k8s.io", "events", "nodepowers", "energypolicies", "nodes", "leases"):
        yield kind, site.bed.kubectl("get", kind, "--all-namespaces", "-o", "json", "--show-managed-fields")
    with urllib.request.urlopen(f"{site.health_url}/metrics", timeout=10) as reply:
        yield "/metrics", reply.read().decode()
    for arguments in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = arguments.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # ended meanwhile
        if str(site.directory) in text and ("kwatt-controller" in text or "kwatt-agent" in text):
            yield "argv", text


def test_no_password_and_no_token_is_ever_shown(story):
    pairs = [f"{BMC_USER}:{password}" for password in (BMC_PASSWORD, WRONG_PASSWORD)]
    secrets = [BMC_PASSWORD, WRONG_PASSWORD]
    secrets += [base64.b64encode(text.encode()).decode() for text in [*pairs, BMC_PASSWORD, WRONG_PASSWORD]]
    tokens = list(tokens_in(story))
    assert len(tokens) > 5, "the tokens of the run were not found, so nothing would be either"
    secrets += tokens
    said = list(what_kwatt_says(story))
    assert sum(len(text) for where, text in said if where.endswith(".log")) > 10_000
    assert sum(where == "argv" for where, _ in said) > 3
    shown = [f"{where}: {secret[:12]}…" for where, text in said for secret in secrets if secret in text]
    assert shown == []


# ---- Secrets -------------------------------------------------------------------------------------------------


def test_a_secret_of_another_namespace_is_out_of_reach(story):
    bed = story.bed
    bed.create_namespace("elsewhere")
    bed.kubectl("create", "secret", "generic", "bmc-elsewhere", "-n", "elsewhere",
                f"--from-literal=username={BMC_USER}", f"--from-literal=password={BMC_PASSWORD}")
    body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower", "metadata": {"name": "reaching-out"},
            "spec": {"bmc": {"address": "redfish+https://127.0.0.1:1/redfish/v1/Systems/1",
                             "credentialsSecretRef": {"name": "bmc-elsewhere", "namespace": "elsewhere"}}}}
    with pytest.raises(CommandError, match="unknown field"):
        bed.kubectl("create", "--validate=strict", "-f", "-", input=body)
    # Named with a path, or without being told to be strict: still only our own namespace is asked.
    case = Case(story, "elsewhere")
    machines = case.add_machines(3, bmc="redfish")
    for machine, name in zip(machines, ("bmc-elsewhere", "../../elsewhere/secrets/bmc-elsewhere",
                                        "elsewhere/bmc-elsewhere")):
        try:
            bed.api.patch("NodePower", machine, {"spec": {"bmc": {"credentialsSecretRef": {
                "name": name, "namespace": "elsewhere"}}}})
        except ApiError as error:
            assert error.status == 422 and "/" in name  # the schema may refuse what is no name
    case.apply_policy({"powerOff": {"minAwake": 0}})
    case.wait(lambda: any("bmc-elsewhere" in json.dumps(case.power(m)) for m in machines) or
              "bmc-elsewhere" in story.controller.log_tail(2000), 40, "the controller to look for the Secret")
    asked = {r for r in requests_of(bed.audit_log, CONTROLLER) if r.resource == "secrets"}
    assert {r.namespace for r in asked} == {NAMESPACE} and {r.verb for r in asked} == {"get"}
    case.clean_up()


def test_the_controllers_token_reads_no_other_secret(story):
    controller = story.bed.client_with_token(story.bed.token_for("kwatt-controller", NAMESPACE))
    for path in ("/api/v1/namespaces/default/secrets/x", "/api/v1/secrets", f"/api/v1/namespaces/{NAMESPACE}/secrets"):
        with pytest.raises(ApiError) as refused:
            controller.request("GET", path)
        assert refused.value.status == 403


# ---- the controller's own door -------------------------------------------------------------------------------


def push(site, token, node):
    """(status, text) of a push of one sample for `node`."""
    tls = ssl.create_default_context(cafile=str(site.bed.ca_file))
    connection = http.client.HTTPSConnection("127.0.0.1", urllib.parse.urlsplit(site.ingest_url).port, timeout=10,
                                             context=tls)
    sample = {"time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "milliwatts": 1_000, "source": "hwmon",
              "cpuBusyPermille": 10}
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    connection.request("POST", "/metrics-ingest", json.dumps({"node": node, "samples": [sample]}), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def nodes(story):
    for name in ("pushed-1", "pushed-2"):
        story.bed.create_node(name, wait=False)
    return "pushed-1", "pushed-2"


def test_samples_are_taken_from_the_nodes_own_agent_only(story, nodes):
    own, other = nodes
    bed = story.bed
    agent = bed.token_for("kwatt-agent", NAMESPACE, audience="kwatt", bound_node=own)
    assert push(story, agent, own)[0] == 204
    refused = {
        "another node's samples": (agent, other, 403),
        "no token": ("", own, 401),
        "not a token": ("garbage", own, 401),
        "a token for the API server": (bed.token_for("kwatt-agent", NAMESPACE, bound_node=own), own, 401),
        "a token of no node": (bed.token_for("kwatt-agent", NAMESPACE, audience="kwatt"), own, 403),
        # Any pod can ask for a token of our audience, bound to the node that it runs on.
        "a pod's that is no agent": (bed.token_for("default", "default", audience="kwatt", bound_node=own), own, 403),
        "a changed signature": (agent[:-4] + ("AAAA" if agent[-4:] != "AAAA" else "BBBB"), own, 401),
    }
    for what, (token, node, status) in refused.items():
        assert (what, push(story, token, node)[0]) == (what, status)


def test_the_token_of_a_node_that_is_gone_is_refused(story):
    bed = story.bed
    bed.create_node("short-lived", wait=False)
    token = bed.token_for("kwatt-agent", NAMESPACE, audience="kwatt", bound_node="short-lived")
    bed.kubectl("delete", "node", "short-lived")
    # The API server looks at Nodes through a cache of its own.
    wait_until(lambda: push(story, token, "short-lived")[0] == 401, 40, "the token to be refused")


# ---- rights --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def audited(story, nodes):
    """The run with its end: without a controller the agents look at its Lease."""
    story.controller.stop(grace=10)
    wait_until(lambda: any(r.resource == "leases" for r in requests_of(story.bed.audit_log, AGENT)), 60,
               "an agent to read the controller's Lease")
    return story.bed.audit_log


@pytest.mark.parametrize("account, user", [("kwatt-controller", CONTROLLER), ("kwatt-agent", AGENT)])
def test_every_request_is_allowed(audited, account, user):
    requests, rights = requests_of(audited, user), rights_of(account)
    assert len(requests) > 3
    # "get …/secrets" of default and of all namespaces is what a test above tries.
    tried = {r for r in requests if r.resource == "secrets" and (r.namespace != NAMESPACE or r.verb == "list")}
    missing = [str(r) for r in sorted(requests - tried) if r.refused or not any(right.covers(r) for right in rights)]
    assert missing == [], "manifests/ lack a right"


@pytest.mark.parametrize("account, user", [("kwatt-controller", CONTROLLER), ("kwatt-agent", AGENT)])
def test_every_right_is_used(audited, account, user):
    used = {right for right in rights_of(account)
            if any(right.covers(r) and not r.refused for r in requests_of(audited, user))}
    unused = rights_of(account) - used - set(ELSEWHERE[account])
    assert sorted(map(str, unused)) == [], "manifests/ give a right that nothing uses"


@pytest.mark.parametrize("account", ELSEWHERE)
def test_rights_used_elsewhere_are_given_and_have_their_test(account):
    for right, (path, phrase) in ELSEWHERE[account].items():
        assert right in rights_of(account)
        assert phrase in (ROOT / path).read_text()


def test_no_right_is_a_wildcard_or_escalates():
    for account in ("kwatt-controller", "kwatt-agent"):
        for right in rights_of(account):
            assert "*" not in (right.group, right.resource, right.verb)
            assert right.verb not in ("escalate", "bind", "impersonate", "deletecollection", "delete")
    assert not [r for r in rights_of("kwatt-agent") if r.resource.startswith("nodes") and
                r.verb not in ("get", "list", "watch")]
