"""kubectl-kwatt against a real API server and the real controller, by itself and as a plugin of kubectl."""
import csv
import io
import json
import os
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest
import yaml

from bed import objects
from e2e.case import Case
from lab.site import NAMESPACE, Site, program
from support.forward import serve

pytestmark = [pytest.mark.xdist_group("cli"), pytest.mark.long(90)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("cli"), redfish=False) as site:
        site.start_controller()
        yield site


@pytest.fixture
def case(site, request):
    case = Case(site, request.node.name)
    yield case
    case.clean_up()


class Cli:
    def __init__(self, site, kubeconfig=None):
        self.kubectl = Path(site.bed._programs["kubectl"])  # noqa: SLF001
        self.environment = {"KUBECONFIG": str(kubeconfig or site.bed.kubeconfig), "HOME": str(site.directory),
                            "KUBECACHEDIR": str(site.directory / "kubectl-cache"),
                            "PATH": f"{program('kubectl-kwatt').parent}:{self.kubectl.parent}:{os.environ['PATH']}"}

    def run(self, *words, command="kubectl-kwatt", timeout=60):
        return subprocess.run([command, *words], env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout)

    def __call__(self, *words, **options):
        """What it prints; it must succeed without a word on stderr."""
        done = self.run(*words, **options)
        assert (done.returncode, done.stderr) == (0, ""), f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def complete(self, *words):
        return self("__complete", *words).splitlines()


@pytest.fixture(scope="module")
def cli(site):
    return Cli(site)


def one_off(case):
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 1, 40, "one off")
    off = next(m for m in case.machines if case.power(m).get("powerState") == "Off")
    return off, next(m for m in case.machines if m != off)


def test_why_and_status_tell_what_the_objects_say(case, cli):
    case.add_machines(2)
    case.apply_policy({"powerOff": {"minOffDuration": "0s"}})
    off, on = one_off(case)
    case.wait_reason(on, "MinAwake")
    case.wait_reason(off, "Idle")
    told = cli("why", f"node/{off}")
    assert told.startswith(f"node {off} is off because no workload pod had run on it for 2 s (Idle), for ")
    assert "It was last switched off " in told and "1 of at most 100 power cycles today" in told
    assert re.search(r"^LAST SEEN +TYPE +REASON +ACTION +COUNT +NOTE$", told, re.M) and "PowerOff" in told
    told = cli("why", on)
    assert told.startswith(f"node {on} is on because without it fewer than 1 node (0 per zone) would be awake (MinAwake)")

    as_json = json.loads(cli("why", off, "-o", "json"))
    assert (as_json["kind"], as_json["name"], as_json["state"], as_json["reason"], as_json["policy"]) == (
        "node", off, "Off", case.reason(off), case.name)
    assert yaml.safe_load(cli("why", off, "-o", "yaml"))["reason"] == "Idle"

    told = cli("why", f"policy/{case.name}")
    assert told.startswith(f"policy {case.name} is enforced and has 2 nodes: 1 on, 1 off, 0 changing.")
    assert "1 Idle, 1 MinAwake" in told
    assert cli("why", case.name).startswith(f"policy {case.name} is enforced")

    overview = json.loads(cli("status", "-o", "json"))
    mine = next(line for line in overview["policies"] if line["name"] == case.name)
    assert (mine["mode"], mine["nodes"], mine["on"], mine["off"]) == ("Enforce", 2, 1, 1)
    table = cli("get", "--nodes")
    assert re.search(rf"^{case.name} +Enforce +True +2 +1 +1 ", table, re.M)
    assert re.search(rf"^{off} +Off +0 .* {case.name} +Idle ", table, re.M)


def test_why_of_pods_that_run_and_that_wait(case, cli):
    machine, = case.add_machines(1, cpu=2)
    case.apply_policy({"powerOff": {"minAwake": 0}})
    case.deploy("web", replicas=2, cpu="1500m")
    case.wait_running("web", 1)
    case.wait_reason(machine, "InUse")
    running = next(p["metadata"]["name"] for p in case.pods("web") if p["spec"].get("nodeName"))
    waiting = next(p["metadata"]["name"] for p in case.pods("web") if not p["spec"].get("nodeName"))
    told = cli("why", f"pod/{case.name}/{running}")
    assert told.startswith(f"pod {case.name}/{running} is on node {machine}; node {machine} is on because "
                           "1 workload pod runs on it (InUse)")
    told = cli("why", f"pod/{waiting}", "-n", case.name)
    assert "because it fits on no node that is on" in told and "No machine is off, so kwatt cannot" in told


def test_a_node_is_woken_held_and_released_as_a_plugin_of_kubectl(case, cli):
    case.add_machines(2)
    case.apply_policy()
    off, _ = one_off(case)
    dry = cli("kwatt", "wake", off, "--dry-run", command="kubectl")
    assert "nothing was sent" in dry and "kwatt.dev/override" not in case.node(off)["metadata"]["annotations"]
    assert f"node {off} is woken" in cli("kwatt", "wake", off, command="kubectl")
    case.wait_on(off)
    # Both are awake and one of them is held: what is switched off now is the other one.
    case.wait_reason(off, "Manual", seconds=40)
    assert "(Manual)" in cli("why", off) and "held on until 20" in cli("why", off)
    cli("hold", off, "--until", "2h")
    assert case.node(off)["metadata"]["annotations"]["kwatt.dev/override"].startswith("on,until=20")
    cli("release", off)
    assert "kwatt.dev/override" not in case.node(off)["metadata"]["annotations"]


def test_exclude_and_suspend_take_effect_and_are_undone(case, cli):
    first, _ = case.add_machines(2)
    cli("exclude", first)
    case.apply_policy({"powerOff": {"minAwake": 0, "idleFor": "1h"}})
    case.wait_reason(first, "Excluded")
    assert f'"kubectl kwatt include {first}" lets it take part again' in cli("why", first)
    cli("include", first)
    case.wait_reason(first, "IdleWait")
    assert re.search(r"not before 20\S+ \(in 59 min\)|not before 20\S+ \(in 1 h\)", cli("why", first))
    cli("suspend", case.name)
    case.wait(lambda: case.condition("Enforcing").get("reason") == "Suspended", 20, "the condition")
    assert "is suspended" in cli("why", case.name) and "(suspended)" in cli("status")
    cli("resume", f"policy/{case.name}")
    case.wait(lambda: case.condition("Enforcing").get("reason") == "Enforce", 20, "the condition")


@pytest.fixture(scope="module")
def service(site):
    """The Service kwatt-controller, as if the controller ran in a pod. The API server's proxy goes to addresses of
    pods alone, and loopback may not be one: a pod that nobody runs has this machine's address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            address = probe.getsockname()[0]
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    listener = socket.create_server((address, 0))
    ingest = int(site.ingest_url.rpartition(":")[2])

    threading.Thread(target=serve, daemon=True,
                     args=(listener, lambda: socket.create_connection(("127.0.0.1", ingest)))).start()
    meta = {"name": "kwatt-controller", "namespace": NAMESPACE}
    port = listener.getsockname()[1]
    api = site.bed.api
    api.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta,
                "spec": {"schedulerName": "nobody", "containers": [{"name": "controller", "image": "kwatt"}]}})
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    api.patch("Pod", "kwatt-controller", {"status": status}, NAMESPACE, subresource="status")
    for body in ({"apiVersion": "v1", "kind": "Service", "metadata": meta,
                  "spec": {"ports": [{"name": "ingest", "port": 8443}]}},
                 {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta,
                  "subsets": [{"addresses": [{"ip": address, "targetRef": {"kind": "Pod", **meta}}],
                               "ports": [{"name": "ingest", "port": port}]}]}):
        site.bed.kubectl("apply", "-f", "-", input=body)
    yield
    listener.close()


def test_the_history_as_table_json_csv_and_file_through_the_api_server_and_directly(case, cli, service, tmp_path):
    case.add_machines(2)
    case.apply_policy()
    off, on = one_off(case)
    # MinAwake, or InUse: the pod of `service` has no node, so room is kept for it.
    case.wait(lambda: case.reason(on) in ("MinAwake", "InUse"), 20, "why the other one stays on")
    why = case.reason(on)
    of_off = ("history", f"node/{off}", "--policy", case.name, "--kind", "operations")
    case.wait(lambda: " ended " in cli(*of_off), 30, "the operation to end")
    table = cli(*of_off)
    assert re.search(r"^TIME +NODE +POLICY +OPERATION +PHASE +REASON +MESSAGE$", table, re.M)
    assert re.search(rf"^20\S+Z +{off} +{case.name} +PowerOff +begun +Idle ", table, re.M)
    rows = list(csv.DictReader(io.StringIO(cli(*of_off, "-o", "csv"))))
    assert [row["phase"] for row in rows] == ["begun", "ended"] and {row["node"] for row in rows} == {off}
    case.wait(lambda: any(row["reason"] == why for row in json.loads(cli("history", on, "-o", "json"))["rows"]),
              30, "the decision")
    assert cli("history", off, "--since", "2h", "--until", "1h") == "Nothing is recorded for that time.\n"

    path = Path(cli("history", "--kind", "samples", "--out-dir", str(tmp_path)).strip())
    assert re.fullmatch(r"metrics_\d{8}T\d{6}Z\.csv", path.name)
    assert path.read_text().startswith("time,node,meanMilliwatts,")
    direct = ("--controller", case.site.ingest_url, "--ca", str(case.bed.ca_file))
    assert cli(*of_off, *direct) == table

    jo = Cli(case.site, case.bed.kubeconfig_for("jo"))
    done = jo.run(*of_off)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the Role kwatt-history-user in namespace {NAMESPACE} gives the right to it" in done.stderr
    case.bed.kubectl("create", "rolebinding", "jo-reads-history", "-n", NAMESPACE, "--role=kwatt-history-user",
                     "--user=jo")
    case.wait(lambda: jo.run(*of_off).returncode == 0, 15, "the right to take effect")
    assert jo(*of_off) == table
    done = jo.run("history", "--kind", "samples", "--policy", case.name)
    assert done.returncode == 1 and "samples belong to no policy" in done.stderr


def test_the_queue_is_shown_and_released_by_those_who_may(case, cli, service):
    case.add_machines(1)
    case.apply_policy({"mode": "Recommend", "placement": {"strategy": "FCFS"}})
    job = objects.pod("render", case.name, labels={"kwatt.dev/queue": case.name}, node_selector={"case": case.name})
    job["spec"]["schedulingGates"] = [{"name": "kwatt.dev/queue"}]
    case.bed.kubectl("apply", "-f", "-", input=job)
    line = rf"^{case.name}/render +{case.name} +FCFS +1 +no +RecommendOnly +- +- +EnergyPolicy {case.name} only recomm"
    case.wait(lambda: re.search(line, cli("queue"), re.M), 20, "the job in the queue")
    assert re.search(r"^JOB +QUEUE +STRATEGY +PODS +STARTS +REASON +NODES +G/KWH +WHY$", cli("queue"), re.M)
    shown, = json.loads(cli("queue", "-o", "json"))["jobs"]
    assert (shown["name"], shown["starts"], shown["reason"]) == ("render", False, "RecommendOnly")
    assert json.loads(cli("queue", "-o", "json", "--controller", case.site.ingest_url, "--ca",
                          str(case.bed.ca_file)))["jobs"] == [shown]
    assert cli.complete("queue", "d") == ["dispatch", ":4"]

    jo = Cli(case.site, case.bed.kubeconfig_for("jo"))
    done = jo.run("queue")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"may not see the job queue: the Role kwatt-queue-user in namespace {NAMESPACE} gives" in done.stderr
    case.bed.kubectl("create", "rolebinding", "jo-sees-queue", "-n", NAMESPACE, "--role=kwatt-queue-user", "--user=jo")
    case.wait(lambda: jo.run("queue").returncode == 0, 15, "the right to take effect")
    done = jo.run("queue", "dispatch")
    assert done.returncode == 1 and "the Role kwatt-queue-dispatcher" in done.stderr
    assert "SchedulingGated" in case.bed.kubectl("get", "pod", "render", "-n", case.name)
    case.bed.kubectl("create", "rolebinding", "jo-releases", "-n", NAMESPACE, "--role=kwatt-queue-dispatcher",
                     "--user=jo")
    case.wait(lambda: "Asked" in jo.run("queue", "dispatch").stdout, 15, "the right to take effect")
    case.wait(lambda: case.where(None) == case.machines, 20, "the job to run")
    assert cli("queue") == "No job is in the queue.\n"


def test_completion_knows_verbs_and_names_and_kubectl_finds_it(case, cli):
    machine, = case.add_machines(1)
    case.apply_policy({"mode": "Recommend"})
    assert cli.complete("sus") == ["suspend", ":4"]
    assert cli.complete("suspend", case.name[:-1]) == [case.name, ":4"]
    assert cli.complete("hold", machine[:-1]) == [machine, ":4"]
    assert cli.complete("why", f"node/{machine[:-1]}") == [f"node/{machine}", ":4"]
    asked = cli.run("__complete", "kwatt", "hold", machine[:-1], command="kubectl")
    assert asked.stdout.splitlines()[:1] == [machine], asked.stderr
    script = f'''source <(kubectl-kwatt completion bash)
COMP_WORDS=(kubectl-kwatt hold {machine[:-1]}) COMP_CWORD=2; _kubectl_kwatt; echo "${{COMPREPLY[@]}}"'''
    assert cli("-c", script, command="bash") == machine + "\n"


def test_errors_say_what_was_wrong_and_have_their_status(site, cli, tmp_path):
    def failed(*words, cli=cli):
        done = cli.run(*words)
        assert done.stdout == ""
        return done.returncode, done.stderr

    assert failed("why", "nobody") == (1, "error: there is neither a node nor a policy nobody; a pod is named "
                                          "pod/NAMESPACE/NAME\n")
    assert failed("hold", "nobody") == (1, "error: there is no node nobody\n")
    assert failed("fly")[0] == 2
    assert failed("status", "--context", "elsewhere")[1].startswith('error: no context "elsewhere" in kubeconfig ')
    none = str(tmp_path / "none")
    assert f"kubeconfig: cannot read {none}: No such file or directory" in failed("status", "--kubeconfig", none)[1]
    nowhere = Cli(site, f"{none}:{none}-either")
    assert f"none of the kubeconfig files {none}:{none}-either exists" in failed("status", cli=nowhere)[1]
    stranger = Cli(site, site.bed.kubeconfig_for("jo"))
    code, said = failed("status", cli=stranger)
    assert code == 1 and 'energypolicies.kwatt.dev is forbidden: User "jo" cannot list' in said
    code, said = failed("wake", "nobody", cli=stranger)
    assert code == 1 and "forbidden" in said


def test_a_recording_of_the_cluster_is_replayed_by_simulate(case, cli, tmp_path):
    """What runs, where, and the machines' curves come from the API server; the simulator needs nothing else."""
    first, second = case.add_machines(2, cpu=4)
    case.deploy_on("web", first, replicas=2, cpu="500m")
    recording = tmp_path / "short.jsonl"
    done = cli.run("record", "--interval", "1s", "--for", "3s", "--file", str(recording))
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"[34] samples in {re.escape(str(recording))}\n", done.stderr)
    header, *samples = map(json.loads, recording.read_text().splitlines())
    assert "kwattRecording" in header and len(samples) in (3, 4)
    metrics, schedule = tmp_path / "metrics.csv", tmp_path / "schedule.csv"
    figures = json.loads(cli("simulate", str(recording), "--until", "1h", "-o", "json", "--metrics-csv", str(metrics),
                             "--schedule-csv", str(schedule)))["runs"][0]
    with metrics.open() as stream:
        nodes = {row["node"]: row for row in csv.DictReader(stream) if row["by"] == "node"}
    # Nothing is switched off: an hour at the idle power of the model at least.
    assert {first, second} <= set(nodes)
    assert all(float(nodes[one]["energy_kwh"]) >= 0.1 for one in (first, second))
    assert figures["servicesWaiting"] == 0 and figures["energyKWh"] > 0.2
    with schedule.open() as stream:
        assert [row["AssignedNode"] for row in csv.DictReader(stream)] == [first, first]
    off = json.loads(cli("simulate", str(recording), "--until", "1h", "--idle-off", "1m", "-o", "json"))["runs"][0]
    assert off["energyKWh"] < 0.7 * figures["energyKWh"]


def test_a_recording_that_cannot_be_made_says_why(cli, tmp_path):
    for words, sentence in [(("--interval", "10ms"), "--interval: expected a duration from 1s on"),
                            (("--for", "soon"), '--for: expected a duration from 0s on, got "soon"'),
                            (("--file", "/nonexistent/x.jsonl"), "cannot write /nonexistent/x.jsonl")]:
        done = cli.run("record", *words)
        assert (done.returncode, done.stdout) == (1, "") and sentence in done.stderr, done.stderr
