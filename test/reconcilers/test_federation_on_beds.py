"""Sites that are member clusters, with two real API servers: a host with the real kwatt-controller, and a member whose
estimator (FakeEstimator, which also says what no estimator should) is reached through its own API. Karmada's policies are written into
the host, where minimal CRDs of Karmada stand; its aggregated proxy is FakeKarmadaProxy."""
import base64
import json
import socket
from pathlib import Path

import pytest
from bed import Bed, objects, register_kind
from bed.access import write_kubeconfig
from bed.process import wait_until
from fake_estimator import FakeEstimator, FakeKarmadaProxy
from lab.site import NAMESPACE
from lab.site import Site as Ground  # the test bed's own "site": not the kind that is tested here

pytestmark = [pytest.mark.xdist_group("federation"), pytest.mark.long(60)]
ROOT = Path(__file__).resolve().parents[2]
API = "kwatt.dev/v1alpha1"
register_kind("PropagationPolicy", "/apis/policy.karmada.io/v1alpha1", "propagationpolicies", namespaced=True)
register_kind("OverridePolicy", "/apis/policy.karmada.io/v1alpha1", "overridepolicies", namespaced=True)
ESTIMATOR = {"namespace": NAMESPACE, "name": "pc"}
WEB = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]


def own_address():
    """An address of this machine that is not loopback: the API server's service proxy goes to no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            address = probe.getsockname()[0]
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    return address


class Federation:
    def __init__(self, directory):
        self.address = own_address()
        self.inside = FakeEstimator(4.0, self.address)  # behind a Service of the member
        self.outside = FakeEstimator(12.0)              # asked by its URL
        self.host = Ground(directory / "host", agents=False, redfish=False)
        self.member = Bed(directory / "member", kwok=False, scheduler=False, controller_manager=False)
        self.directory = directory

    def start(self):
        self.member.start()
        self.member.kubectl("apply", "-f", ROOT / "manifests" / "00-namespace.yaml")
        for document in (
                {"apiVersion": "v1", "kind": "ServiceAccount",
                 "metadata": {"name": "kwatt-controller", "namespace": NAMESPACE}},
                {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "estimator", "namespace": NAMESPACE},
                 "spec": {"ports": [{"port": 5656}]}},
                # The service proxy goes to addresses of pods alone; no controller-manager makes these here.
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "estimator-0", "namespace": NAMESPACE},
                 "spec": {"serviceAccountName": "kwatt-controller",
                          "containers": [{"name": "estimator", "image": "none"}]}},
                {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "estimator", "namespace": NAMESPACE},
                 "subsets": [{"ports": [{"port": self.inside.port}], "addresses": [{
                     "ip": self.address,
                     "targetRef": {"kind": "Pod", "name": "estimator-0", "namespace": NAMESPACE}}]}]},
                {"apiVersion": "v1", "kind": "Service", "metadata": {
                    "name": "published", "namespace": NAMESPACE,
                    "annotations": {"external-dns.alpha.kubernetes.io/hostname": "localhost"}},
                 "spec": {"ports": [{"port": self.outside.port}]}},
                {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                 "metadata": {"name": "serviceexports.multicluster.x-k8s.io", "annotations": {
                     "api-approved.kubernetes.io": "unapproved, of a test"}},
                 "spec": {"group": "multicluster.x-k8s.io", "scope": "Namespaced",
                          "names": {"kind": "ServiceExport", "plural": "serviceexports"},
                          "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {
                              "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}):
            self.member.kubectl("apply", "-f", "-", input=document)
        self.member.kubectl("patch", "pod", "estimator-0", "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p",
                            json.dumps({"status": {"podIP": self.address, "podIPs": [{"ip": self.address}]}}))
        self.member.kubectl("wait", "--for=condition=Established", "--timeout=20s",
                            "crd/serviceexports.multicluster.x-k8s.io")
        self.member.kubectl("apply", "-f", ROOT / "manifests" / "optional" / "site-estimator-rbac.yaml")
        self.token = self.member.token_for("kwatt-controller", NAMESPACE)
        self.host.start()
        policies = ROOT / "test" / "reconcilers" / "karmada_policies.yaml"
        self.bed.kubectl("apply", "-f", policies)
        self.bed.kubectl("wait", "--for=condition=Established", "--timeout=20s", "-f", policies)
        self.write_kubeconfig("member1", self.kubeconfig())
        self.estimator_port = self.host._port()
        self.host.start_controller("--estimator-address", f"127.0.0.1:{self.estimator_port}", "--site-allow", "http://127.0.0.1,http://localhost",
                                   "--cluster-set-domain", "set.test")
        return self

    def stop(self):
        self.host.stop()
        self.member.stop()
        self.inside.stop()
        self.outside.stop()

    @property
    def bed(self):
        return self.host.bed

    @property
    def api(self):
        return self.host.bed.api

    def kubeconfig(self):
        return write_kubeconfig(self.directory / "member.kubeconfig", self.member.url, self.member.ca_file,
                                token=self.token).read_text()

    def write_kubeconfig(self, name, text):
        self.bed.kubectl("apply", "-f", "-", input={
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"kubeconfig": base64.b64encode(text.encode()).decode()}})

    def add_site(self, name, **spec):
        self.api.create({"apiVersion": API, "kind": "Site", "metadata": {"name": name}, "spec": spec})

    def ask(self, name, namespace="default", **spec):
        self.api.create({"apiVersion": API, "kind": "SiteRecommendation",
                         "metadata": {"name": name, "namespace": namespace}, "spec": spec})

    def status(self, name):
        return self.api.get("SiteRecommendation", name, "default").get("status", {})

    def wait_status(self, name, condition, what, seconds=30):
        try:
            wait_until(lambda: condition(self.status(name)), seconds, what, every=0.2)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.status(name), indent=1)}\n"
                                 f"{self.host.controller.log_tail(40)}") from None
        return self.status(name)


def by_secret(name="member1", secret="member1", via="Proxy", service="estimator", port=5656):
    return {"cluster": {"name": name, "access": "KubeconfigSecret", "kubeconfigSecretRef": {"name": secret}},
            "estimator": {**ESTIMATOR, "service": {"namespace": NAMESPACE, "name": service, "port": port,
                                                   "via": via}}}


def condition(status, kind):
    none = {"status": "", "reason": "", "message": ""}
    return next((c for c in status.get("conditions", []) if c["type"] == kind), none)


def message(status, site):
    return next(s for s in status["sites"] if s["name"] == site)["scores"][0]["message"]


ENERGY = {"weights": [{"plugin": "EnergyIncrease"}], "normalize": "Sum", "count": 2,
          "resources": {"cpuMillicores": 500}, "workloads": 5, "interval": "10s"}


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    federation = Federation(tmp_path_factory.mktemp("federation"))
    try:
        yield federation.start()
    finally:
        federation.stop()


@pytest.fixture(scope="module")
def members(federation):
    federation.add_site("near", region="two", capacity={"cpuMillicores": 10**6}, **by_secret())
    federation.add_site("far", region="two", capacity={"cpuMillicores": 10**6}, cluster={"name": "member2"},
                        estimator={**ESTIMATOR, "url": f"http://127.0.0.1:{federation.outside.port}"})
    return federation


def test_the_members_estimators_are_asked_and_policies_written(members):
    members.ask("web", region="two", **ENERGY, propagation={
        "write": ["PropagationPolicy", "OverridePolicy"], "resourceSelectors": WEB})
    # The right to write policies is optional.
    status = members.wait_status("web", lambda s: condition(s, "Propagated")["reason"] == "NotApplied", "the refusal")
    assert "forbidden" in condition(status, "Propagated")["message"]
    members.bed.kubectl("apply", "-f", ROOT / "manifests" / "optional" / "karmada-rbac.yaml")
    status = members.wait_status("web", lambda s: condition(s, "Propagated")["status"] == "True", "the policies")
    assert [(s["name"], s["scores"][0]["raw"]) for s in status["sites"]] == [("near", 20_000), ("far", 60_000)]
    assert message(status, "near") == f"20.000 W more, says the estimator {NAMESPACE}/pc"
    path, asked, headers = members.inside.requests[0]
    assert path == f"/namespaces/{NAMESPACE}/estimators/pc/values/powerconsumption"
    assert asked == {"cpu_milli": 500, "num_workloads": 5}
    assert not [name for name in headers if name.lower() in ("authorization", "x-api-key")]
    # Shares of 100 by the totals: 20 and 60 W, turned around, are 60 and 20.
    assert status["weights"] == [{"site": "near", "cluster": "member1", "weight": 75},
                                 {"site": "far", "cluster": "member2", "weight": 25}]
    policy = members.api.get("PropagationPolicy", "web", "default")
    assert policy["spec"] == {
        "resourceSelectors": [{**WEB[0], "namespace": "default"}],
        "placement": {"clusterAffinity": {"clusterNames": ["member1", "member2"]},
                      "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                                            "weightPreference": {"staticWeightList": [
                                                {"targetCluster": {"clusterNames": ["member1"]}, "weight": 75},
                                                {"targetCluster": {"clusterNames": ["member2"]}, "weight": 25}]}}}}
    assert policy["metadata"]["ownerReferences"][0]["name"] == "web"
    assert {f["manager"] for f in policy["metadata"]["managedFields"]} == {"kwatt-controller"}
    override = members.api.get("OverridePolicy", "web", "default")
    assert override["spec"]["overrideRules"][0] == {
        "targetCluster": {"clusterNames": ["member1"]},
        "overriders": {"annotationsOverrider": [{"operator": "add", "value": {"kwatt.dev/site": "near"}}]}}

    # What the estimators say later is followed.
    members.inside.watts = 100.0
    members.wait_status("web", lambda s: s.get("site") == "far", "the other member to be better", 40)
    wait_until(lambda: members.api.get("PropagationPolicy", "web", "default")["spec"]["placement"]["clusterAffinity"]
               == {"clusterNames": ["member2", "member1"]}, 20, "the policy to follow")
    members.inside.watts = 4.0
    # It goes with the recommendation.
    members.api.delete("SiteRecommendation", "web", "default")
    wait_until(lambda: members.api.find("PropagationPolicy", "web", "default") is None, 60, "its end")


def test_the_real_estimator_of_a_cluster_is_asked(members):
    """The host is a cluster like its members, with kwatt's own estimator."""
    labels = {"waofed.bitmedia.co.jp/fakepcp.basewatts": "100", "waofed.bitmedia.co.jp/fakepcp.wpc": "8"}
    members.bed.api.create(objects.node("worker", cpu="4", labels=labels))
    wait_until(lambda: objects.node_is_ready(members.bed.api.get("Node", "worker")), 30, "the node to be Ready")
    members.bed.kubectl("apply", "-f", "-", input={
        "apiVersion": API, "kind": "Estimator", "metadata": {"namespace": NAMESPACE, "name": "own"},
        "spec": {"defaultNodeConfig": {"nodeMonitor": {"refreshInterval": "1s", "agents": [{"type": "Fake"}]},
                                       "powerConsumptionPredictor": {"type": "Fake"}}}})
    members.add_site("home", region="home", capacity={"cpuMillicores": 10**6}, cluster={"name": "host"},
                     estimator={"namespace": NAMESPACE, "name": "own",
                                "url": f"http://127.0.0.1:{members.estimator_port}"})
    members.ask("home", region="home", **ENERGY)
    # Five workloads of half a core at 8 W a core.
    status = members.wait_status(
        "home", lambda s: s.get("sites") and s["sites"][0]["scores"][0]["raw"] == 20_000, "20 W more", 40)
    assert message(status, "home") == f"20.000 W more, says the estimator {NAMESPACE}/own"
    members.api.delete("SiteRecommendation", "home", "default")
    members.api.delete("Site", "home")


def test_without_being_asked_to_nothing_is_written_and_what_is_others_is_left_alone(members):
    members.ask("silent", region="two", **ENERGY)
    status = members.wait_status("silent", lambda s: s.get("site"), "an answer")
    assert condition(status, "Propagated")["reason"] == "NotAsked" and len(status["weights"]) == 2
    assert members.api.list("PropagationPolicy", "default") == []
    members.api.create({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
                        "metadata": {"name": "theirs", "namespace": "default"}, "spec": {"resourceSelectors": WEB}})
    before = members.api.get("PropagationPolicy", "theirs", "default")
    members.ask("rude", region="two", **ENERGY, propagation={"write": ["PropagationPolicy"], "name": "theirs",
                                                             "resourceSelectors": WEB})
    status = members.wait_status("rude", lambda s: condition(s, "Propagated")["reason"] == "NotApplied",
                                 "the refusal")
    assert "is not of this recommendation" in condition(status, "Propagated")["message"]
    assert members.api.get("PropagationPolicy", "theirs", "default") == before
    for name in ("silent", "rude"):
        members.api.delete("SiteRecommendation", name, "default")
    members.api.delete("PropagationPolicy", "theirs", "default")


BROKEN = [
    ("a member that does not fit", (200, '{"watt_increases":[1,2,3,4,1.7976931348623157e308]}'), None,
     "says that 5 such workloads do not fit"),
    ("not JSON", (200, "<html>"), "its answer is not JSON", None),
    ("too few", (200, '{"watt_increases":[1]}'), "its answer has 1 watt_increases, asked for were 5", None),
    ("less than nothing", (200, '{"watt_increases":[1,2,3,4,-5]}'), "its answer is -5 W, less than nothing", None),
    ("an error", (404, '{"code":"ErrEstimatorNotFound","message":"no pc"}'), "answers HTTP 404", None),
]


@pytest.mark.parametrize("answer, said, excluded", [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_what_an_estimator_should_not_say_is_told(members, answer, said, excluded):
    number = [case[1] for case in BROKEN].index(answer)
    name = f"bad-{number}"
    members.inside.answer = answer
    try:
        # Another number of CPUs, so that no earlier answer is remembered.
        members.ask(name, region="two", **{**ENERGY, "resources": {"cpuMillicores": 600 + number}})
        status = members.wait_status(name, lambda s: s.get("sites"), "an answer")
        if excluded:
            assert status["excluded"][0]["name"] == "near" and excluded in status["excluded"][0]["reason"]
        else:
            assert said in message(status, "near") and "counts as the worst" in message(status, "near")
    finally:
        members.inside.answer = None
        members.api.delete("SiteRecommendation", name, "default")


def test_a_service_is_found_by_its_external_dns_name_or_its_export(members):
    outside = members.outside.port
    members.add_site("dns", region="found", capacity={"cpuMillicores": 10**6},
                     **by_secret(via="ExternalDNS", service="published", port=outside))
    members.add_site("export", region="found", capacity={"cpuMillicores": 10**6},
                     **by_secret(via="ServiceExport", service="published", port=outside))
    members.add_site("nameless", region="found", capacity={"cpuMillicores": 10**6}, **by_secret(via="ExternalDNS"))
    members.ask("found", region="found", **ENERGY)
    status = members.wait_status("found", lambda s: len(s.get("sites", [])) == 3, "an answer")
    assert next(s for s in status["sites"] if s["name"] == "dns")["scores"][0]["raw"] == 60_000
    assert "its cluster answers HTTP 404" in message(status, "export")  # not exported yet
    assert "has no annotation external-dns" in message(status, "nameless")
    members.member.kubectl("apply", "-f", "-", input={
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport",
        "metadata": {"name": "published", "namespace": NAMESPACE}})
    # No DNS here has names of a cluster set; the sentence says which one was looked up.
    members.wait_status("found", lambda s: f"host name published.{NAMESPACE}.svc.set.test" in message(s, "export"),
                        "the export to be seen", 40)
    members.api.delete("SiteRecommendation", "found", "default")
    for name in ("dns", "export", "nameless"):
        members.api.delete("Site", name)


def test_a_kubeconfig_that_reads_our_files_or_is_missing_is_refused(members):
    members.write_kubeconfig("thief", members.kubeconfig().replace(
        f"token: {members.token}", "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"))
    members.add_site("thief", region="secrets", **by_secret(secret="thief"))
    members.add_site("nobody", region="secrets", **by_secret(secret="not-there"))
    members.add_site("foreign", region="secrets",
                     estimator={**ESTIMATOR, "url": "https://estimator.example.org"})
    members.ask("secrets", region="secrets", weights=[{"plugin": "EnergyIncrease"}])
    status = members.wait_status("secrets", lambda s: s.get("notes") and s.get("sitesTotal") == 3, "an answer")
    assert status["notes"][0].startswith("EnergyIncrease is left out: not known of any site")
    members.api.patch("SiteRecommendation", "secrets", {"spec": {"region": ""}}, "default")  # "near" is known
    status = members.wait_status("secrets", lambda s: [x for x in s.get("sites", []) if x.get("scores")], "scores")
    assert "the kubeconfig names a file in tokenFile" in message(status, "thief")
    assert f"Secret {NAMESPACE}/not-there" in message(status, "nobody")
    assert "--site-allow estimator.example.org" in message(status, "foreign")
    members.api.delete("SiteRecommendation", "secrets", "default")
    for name in ("thief", "nobody", "foreign"):
        members.api.delete("Site", name)


def test_a_member_is_reached_through_karmadas_aggregated_proxy(members):
    cert = members.bed.issue_server_cert("fake-karmada")
    proxy = FakeKarmadaProxy(cert, {"member1": (members.member.port, members.member.ca_file, members.token)})
    try:
        proxy.register(members.bed)
        members.bed.kubectl("wait", "--for=condition=Available", "--timeout=60s",
                            "apiservice/v1alpha1.cluster.karmada.io")
        members.add_site("proxied", region="karmada", capacity={"cpuMillicores": 10**6},
                         cluster={"name": "member1", "access": "KarmadaProxy"},
                         estimator={**ESTIMATOR, "service": {"namespace": NAMESPACE, "name": "estimator"}})
        members.ask("karmada", region="karmada", **ENERGY)
        members.bed.kubectl("apply", "-f", ROOT / "manifests" / "optional" / "karmada-rbac.yaml")
        status = members.wait_status("karmada", lambda s: [x for x in s.get("sites", []) if x.get("scores")],
                                     "an answer", 40)
        assert status["sites"][0]["scores"][0]["raw"] == 20_000
        assert {(method, name) for method, name, _ in proxy.passed} == {("POST", "member1")}
    finally:
        members.bed.kubectl("delete", "apiservice", "v1alpha1.cluster.karmada.io", "--ignore-not-found")
        members.api.delete("SiteRecommendation", "karmada", "default")
        members.api.delete("Site", "proxied")
        proxy.stop()
