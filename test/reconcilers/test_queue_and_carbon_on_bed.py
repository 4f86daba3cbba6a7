"""Jobs wait behind the gate for the clean hour and start in it, seen from outside with kubectl: a real API server,
kube-scheduler and kwok nodes, the real kwatt-controller, and a service that publishes carbon intensities ahead, whose
hours are seconds long."""
import csv
import json
import os
import re
import sqlite3
import subprocess
import threading
import time

import pytest
from carbon_day import CarbonService, ScaledDay
from lab.site import program
from queue_room import QUEUE, Room, annotation, scheduled

pytestmark = [pytest.mark.xdist_group("queue"), pytest.mark.long(90)]
HOUR = 10  # seconds
ZONE = "DE"
FRUGAL = {"idleMilliwatts": 100_000, "maxMilliwatts": 150_000}
THIRSTY = {"idleMilliwatts": 100_000, "maxMilliwatts": 400_000}


@pytest.fixture(scope="module")
def service():
    service = CarbonService()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def room(tmp_path_factory, service):
    room = Room(tmp_path_factory.mktemp("carbon"), [service.source("service")])
    try:
        yield room.start()
    finally:
        room.stop()


class Watch:
    """What `kubectl get pods --watch` shows, each line with the time it came."""

    def __init__(self, bed):
        self.seen = []  # (time, pod)
        self._process = subprocess.Popen(
            [str(bed._programs["kubectl"]), "--kubeconfig", str(bed.kubeconfig), "get", "pods",  # noqa: SLF001
             "--watch", "-o", "json"], stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        text, decoder = "", json.JSONDecoder()
        while piece := os.read(self._process.stdout.fileno(), 65536).decode():
            text = (text + piece).lstrip()
            while text:
                try:
                    pod, end = decoder.raw_decode(text)
                except ValueError:
                    break  # the rest is still to come
                self.seen.append((time.time(), pod))
                text = text[end:].lstrip()

    def of(self, job):
        return [(at, pod) for at, pod in list(self.seen) if pod["metadata"]["labels"].get("job-name") == job]

    def first(self, job, condition):
        return next((at for at, pod in self.of(job) if condition(pod)), None)

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._thread.join(timeout=10)


def kubectl_json(room, *words):
    return json.loads(room.ground.bed.kubectl(*words, "-o", "json"))


def apply_policy(room, name, zone, **carbon):
    room.ground.bed.kubectl("apply", "-f", "-", input={
        "apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": name},
        "spec": {"mode": "Enforce", "interval": "1s", "nodeSelector": {"matchLabels": {"queue": name}},
                 "powerOff": {"enabled": False}, "powerOn": {"enabled": False},
                 "placement": {"strategy": "EnergyAware"}, "carbon": {"source": "service", "zone": zone, **carbon}}})


def submit(room, queue, name, **annotations):
    """kubectl apply of a Job of one pod, which runs until it is ended."""
    marks = {f"kwatt.dev/{key.replace('_', '-')}": str(value) for key, value in annotations.items()}
    room.ground.bed.kubectl("apply", "-f", "-", input={
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"labels": {QUEUE: queue}, "annotations": {**marks, "bed.kwatt.dev/run-for": "1h"}},
            "spec": {"restartPolicy": "Never", "schedulingGates": [{"name": QUEUE}], "nodeSelector": {"queue": queue},
                     "containers": [{"name": "work", "image": "example.invalid/work:1",
                                     "resources": {"requests": {"cpu": "1", "memory": "128Mi"}}}]}}}})


def condition(room, policy, kind="CarbonDataAvailable"):
    found = kubectl_json(room, "get", "energypolicy", policy).get("status", {}).get("conditions", [])
    return next((c for c in found if c["type"] == kind), {})


def carbon_says(room, policy, status, reason):
    room.wait(lambda: (condition(room, policy).get("status"), condition(room, policy).get("reason")) ==
              (status, reason), 20, f"CarbonDataAvailable to be {status} {reason}", lambda: condition(room, policy))
    return condition(room, policy)["message"]


def events_of(room, pod):
    found = kubectl_json(room, "get", "events", "--field-selector", f"involvedObject.name={pod}")["items"]
    return {event["reason"]: event["message"] for event in found}


def kwatt(room, *words):
    done = subprocess.run([str(program("kubectl-kwatt")), "--kubeconfig", str(room.ground.bed.kubeconfig), *words],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def directly(room):
    return "--controller", room.ground.ingest_url, "--ca", str(room.ground.bed.ca_file)


def rfc3339(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@pytest.fixture
def solar(room, service):
    """A queue with a frugal and a thirsty node, as the evening begins; its clean hour is some hours ahead."""
    for name, model in (("frugal", FRUGAL), ("thirsty", THIRSTY)):
        room.ground.add_machine(f"solar-{name}", cpu=4, bmc=None, labels={"queue": "solar"}, model=model)
    day = service.days[ZONE] = ScaledDay(HOUR)
    apply_policy(room, "solar", ZONE, maxDelay="10m")
    watch = Watch(room.ground.bed)
    yield day, watch
    watch.stop()
    room.ground.bed.kubectl("delete", "jobs", "--all", "--cascade=foreground", "--timeout=30s")
    room.ground.bed.kubectl("delete", "energypolicy", "solar", "--timeout=30s")


def test_gated_jobs_start_in_the_clean_hour_on_the_node_that_was_chosen(room, solar):
    day, watch = solar
    patient = ("patient-a", "patient-b")
    for job in patient:
        submit(room, "solar", job, expected_duration="2s")
    for job in patient:
        room.waits(job, "WaitsForCarbon")
    waiting = {job["name"]: job for job in json.loads(kwatt(room, "queue", "-o", "json", *directly(room)))["jobs"]}
    for job in patient:
        shown = waiting[room.pod(job)["metadata"]["name"]]
        assert (shown["queue"], shown["starts"], shown["reason"]) == ("solar", False, "WaitsForCarbon")
        assert shown["message"].startswith(f"waits until {rfc3339(day.clean)}: {day.clean_grams} g/kWh instead of ")
    said = carbon_says(room, "solar", "True", "Published")
    assert re.search(rf'g/kWh in zone "{ZONE}" at \S+Z, published until {rfc3339(day.steps[-1][0])}', said), said

    # A restart in the dirty hours releases nobody: not even while the service has not answered yet.
    room.ground.controller.stop(grace=0)  # SIGKILL
    room.ground.controller.start()
    submit(room, "solar", "hurried", expected_duration="2s", max_delay="1s")  # the clean hour is beyond its delay
    # Its second member never comes: only the end of its delay starts it, room or not, clean or not.
    submit(room, "solar", "half", expected_duration="2s", gang_size=2, max_delay=f"{HOUR}s")
    room.waits("half", "MembersMissing")
    room.runs("hurried")
    room.runs("half")
    assert time.time() < day.clean - 1, "the machine is too slow for this test"
    for job in patient:
        room.runs(job, day.clean - time.time() + 20)

    for job in (*patient, "hurried", "half"):
        judge(room, watch, day, job, clean=job in patient)
    assert {annotation(room.pod(job), "queue-decision") for job in patient} == {"Chosen"}
    assert annotation(room.pod("half"), "queue-decision") == "MaxDelay"
    # kube-scheduler alone spreads: it is our preference that brings them together.
    assert {room.pod(job)["spec"]["nodeName"] for job in patient} == {"solar-frugal"}


def judge(room, watch, day, job, clean):
    """When and where the job started, as the API server, the events, the schedule and the history tell it."""
    pod = room.pod(job)
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    decision = annotation(pod, "queue-decision")
    bound = watch.first(job, lambda pod: "nodeName" in pod["spec"])
    begun = pod["status"]["startTime"]
    if clean:
        for at, seen in watch.of(job):
            if at < day.clean - 0.1:
                assert scheduled(seen) in ("", "SchedulingGated") and "nodeName" not in seen["spec"], (at, seen)
                assert seen["status"]["phase"] == "Pending" and seen["spec"]["schedulingGates"] == [{"name": QUEUE}]
        assert day.clean - 0.1 <= bound < day.clean_end
        assert rfc3339(day.clean) <= begun < rfc3339(day.clean_end)
    else:
        assert bound < day.clean - 0.1 and begun < rfc3339(day.clean)
        assert decision in ("Chosen", "MaxDelay")
    assert annotation(pod, "assigned-node") == node

    told = room.wait(lambda: decision in (found := events_of(room, name)) and found, 20, f"the event of {name}")
    assert f"on {node}" in told[decision], told
    if clean:
        assert told["Chosen"] == f"starts, on {node}, at {day.clean_grams} g/kWh"
        assert f"waits until {rfc3339(day.clean)}" in told["WaitsForCarbon"]

    key = f"default/{name}"
    lines = [line for line in csv.DictReader(room.schedule.open()) if line["JobID"] == key]
    assert len(lines) == 1 and (lines[0]["AssignedNode"], lines[0]["Strategy"]) == (node, "EnergyAware"), lines
    if clean:
        assert lines[0]["CIscore"] == f"{day.clean_grams}.0"
        assert rfc3339(day.clean - 1) <= lines[0]["Timestamp"] < rfc3339(day.clean_end)

    def in_history():
        rows = json.loads(kwatt(room, "history", "--policy", "solar", "-o", "json", *directly(room)))["rows"]
        return [row for row in rows if row["message"].startswith(f"{key} ")]

    row, = room.wait(in_history, 20, f"{key} in the history")
    assert (row["action"], row["reason"], row["node"]) == ("Release", decision, node)
    assert row["message"] == f"{key} (EnergyAware): {told[decision]}"
    with sqlite3.connect(f"file:{room.ground.history_file()}?mode=ro", uri=True) as file:
        stored = file.execute("SELECT COUNT(*) FROM decisions WHERE message = ?", [row["message"]]).fetchone()
    assert stored == (1,)


def test_the_policy_says_whether_its_carbon_data_can_be_relied_on(room, service):
    room.ground.add_machine("doubt-0", cpu=4, bmc=None, labels={"queue": "doubt"})
    apply_policy(room, "doubt", "NOWHERE")
    said = carbon_says(room, "doubt", "False", "NoData")
    assert 'zone "NOWHERE"' in said and "service: HTTP 404: no such zone or address" in said, said
    told = kwatt(room, "why", "policy/doubt")
    assert f"CarbonDataAvailable is False (NoData): {said}" in told
    # Without data nothing waits.
    submit(room, "doubt", "careless", expected_duration="2s")
    room.runs("careless")
    assert annotation(room.pod("careless"), "queue-decision") == "Chosen"

    service.days["NOWHERE"] = ScaledDay(600)
    assert "430 g/kWh in zone" in carbon_says(room, "doubt", "True", "Published")
    service.broken = True
    try:
        said = carbon_says(room, "doubt", "True", "Failing")
        assert "service: HTTP 503: the service is in trouble" in said
    finally:
        service.broken = False
    carbon_says(room, "doubt", "True", "Published")
    # Nobody has a source of that name.
    room.ground.bed.kubectl("patch", "energypolicy", "doubt", "--type=merge", "-p",
                            json.dumps({"spec": {"carbon": {"source": "oracle"}}}))
    assert '"oracle"' in carbon_says(room, "doubt", "False", "NoSource")
    assert "(NoSource)" in kwatt(room, "why", "doubt")
    room.ground.bed.kubectl("delete", "job", "careless", "--cascade=foreground", "--timeout=30s")
    room.ground.bed.kubectl("delete", "energypolicy", "doubt", "--timeout=30s")
