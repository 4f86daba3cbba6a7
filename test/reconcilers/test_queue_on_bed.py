"""The job queue against a real API server and kube-scheduler, with the real kwatt-controller and the rights of
manifests/: gated Jobs are released in the order of the strategy, at the clean hour, as gangs, after their delay, by
POST /dispatch; POST /ingest makes Jobs. The carbon source's steps are seconds, so that an hour's wait takes some."""
import json
import time

import pytest
from bed import objects
from queue_room import Room, annotation, scheduled

pytestmark = [pytest.mark.xdist_group("queue"), pytest.mark.long(90)]
DIRTY, CLEAN = 400, 50


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    room = Room(tmp_path_factory.mktemp("queue"))
    try:
        yield room.start()
    finally:
        room.stop()


def test_jobs_pass_the_gate_in_the_order_of_the_strategy(room):
    room.queue("fcfs")
    room.job("fcfs", "order-a", 3)
    assert room.runs("order-a") == {"fcfs-0"}
    released = room.pod("order-a")
    assert annotation(released, "assigned-node") == "fcfs-0" and annotation(released, "queue-decision") == "Chosen"
    room.job("fcfs", "order-b", 3)
    room.waits("order-b", "NoFit")
    room.job("fcfs", "order-c", 1)  # would fit, but it is not its turn
    room.waits("order-c", "BehindOthers")
    # A restart loses nothing: who waited goes on waiting, and is released when there is room.
    room.ground.controller.stop(grace=0)  # SIGKILL
    room.ground.controller.start()
    room.job("fcfs", "order-d", 1)
    room.waits("order-d", "BehindOthers")
    assert scheduled(room.pod("order-b")) == "SchedulingGated"
    room.end("order-a")
    room.runs("order-b")
    room.runs("order-c")
    room.waits("order-d", "NoFit")
    lines = [line.split(",") for line in room.schedule.read_text().splitlines()]
    assert lines[0] == ["JobID", "AssignedNode", "Strategy", "CIscore", "Timestamp"]
    mine = [line for line in lines if line[0].startswith("default/order-")]
    assert [line[0].split("/")[1][:7] for line in mine] == ["order-a", "order-b", "order-c"]
    assert {tuple(line[1:4]) for line in mine} == {("fcfs-0", "FCFS", "")}
    room.end("order-b", "order-c", "order-d")


def test_a_job_waits_for_the_clean_hour(room):
    now = int(time.time())
    clean = now + 12
    rows = [(at, CLEAN if clean <= at < clean + 20 else DIRTY) for at in range(now - 20, now + 120, 2)]
    room.intensity.write_text("time,zone,gramsPerKWh\n" +
                              "".join(f"{at},DE,{grams}\n" for at, grams in rows))
    room.queue("green", strategy="EnergyAware", source="file", zone="DE")
    room.job("green", "patient", 1, expected_duration="2s")
    room.job("green", "hurried", 1, expected_duration="2s", max_delay="0s")
    room.runs("hurried")
    assert time.time() < clean, "the machine is too slow for this test"
    room.waits("patient", "WaitsForCarbon")
    room.runs("patient", clean - time.time() + 20)
    line = next(line for line in room.schedule.read_text().splitlines() if line.startswith("default/patient"))
    assert line.split(",")[3] == f"{CLEAN}.0" and line.split(",")[2] == "EnergyAware"
    begun = room.pod("patient")["status"]["startTime"]
    assert begun >= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clean))
    assert annotation(room.pod("hurried"), "queue-decision") == "MaxDelay"
    room.end("patient", "hurried")


def test_after_its_delay_a_job_passes_the_gate_whatever_room_there_is(room):
    room.queue("late")
    room.job("late", "whale", 8, max_delay="6s")
    room.waits("whale", "NeverFits")
    room.wait(lambda: scheduled(room.pod("whale")) == "Unschedulable", 20, "the gate to be taken off",
              lambda: room.pods("whale"))
    assert annotation(room.pod("whale"), "queue-decision") == "MaxDelay"
    room.end("whale")


def test_a_gang_starts_as_one(room):
    room.queue("gang")
    room.job("gang", "before", 4)
    assert room.runs("before") == {"gang-0"}
    room.job("gang", "mpi", 2, members=3, gang_size=3)
    room.waits("mpi", "NeverFits")  # not even on the empty node: three members of 2 CPUs have 4
    room.ground.add_machine("gang-1", cpu=4, bmc=None, labels={"queue": "gang"})
    room.waits("mpi", "GangIncomplete")  # two would fit
    room.end("before")
    assert room.runs("mpi") == {"gang-0", "gang-1"}
    room.end("mpi")


def test_a_policy_that_only_recommends_releases_nothing_and_dispatch_releases_all(room):
    room.queue("advice", mode="Recommend")
    room.queue("full")
    room.job("advice", "advised", 1)
    room.waits("advised", "RecommendOnly")
    room.job("nobody", "lost", 1)
    room.waits("lost", "NoPolicy")
    room.job("full", "filler", 4)
    room.runs("filler")
    room.job("full", "squeezed", 1)
    room.waits("squeezed", "NoFit")

    operator = room.token("kwatt-queue-operator")
    code, shown = room.ask("GET", "/queue", token=operator)
    assert code == 200 and {job["reason"] for job in json.loads(shown)["jobs"]} >= {"RecommendOnly", "NoPolicy",
                                                                                  "NoFit"}
    assert room.ask("POST", "/dispatch", {})[0] == 401
    assert room.ask("POST", "/dispatch", {}, room.token("kwatt-history-reader"))[0] == 403
    code, table = room.ask("POST", "/dispatch", {}, operator, accept="text/plain")
    assert code == 200 and table.count("Asked") == 3 and table.startswith("JOB "), table
    room.runs("advised")
    for job in ("lost", "squeezed"):  # no node has the label, and no room: kube-scheduler's queue has them
        room.wait(lambda: scheduled(room.pod(job)) == "Unschedulable", 20, f"{job} to be released",
                  lambda: room.pods(job))
    room.end("advised", "lost", "filler", "squeezed")


def test_a_posted_job_becomes_a_job_that_runs(room):
    room.queue("posted")
    room.api.create(objects.service_account("submitter"))
    kubectl = room.ground.bed.kubectl
    kubectl("create", "role", "submitter", "-n", "default", "--verb=create", "--resource=jobs.batch")
    kubectl("create", "rolebinding", "submitter", "-n", "default", "--role=submitter",
            "--serviceaccount=default:submitter")
    token = room.token("submitter", "default")
    job = {"name": "render", "queue": "posted", "image": "example.invalid/render:1", "cpu": "2", "members": 2,
           "expectedDuration": "1h"}
    assert room.ask("POST", "/ingest", job, token) == (201, '{"namespace":"default","name":"render"}')
    room.runs("render")
    assert annotation(room.api.get("Job", "render", "default"), "ingested-for").endswith(":submitter")
    assert all(annotation(pod, "gang-size") == "2" for pod in room.pods("render"))
    code, said = room.ask("POST", "/ingest", job, token)
    assert code == 409 and "there is a Job default/render already" in said
    code, said = room.ask("POST", "/ingest", job | {"cpu": 2, "colour": "red"}, token)
    assert code == 400 and said == ('/cpu: expected a quantity above 0 such as "500m"; '
                                    "/colour: there is no such field in a job\n")
    code, said = room.ask("POST", "/ingest", job | {"namespace": "kube-system"}, token)
    assert code == 403 and "may not create jobs in namespace kube-system" in said
    assert room.ask("POST", "/ingest", job)[0] == 401
    room.end("render")
