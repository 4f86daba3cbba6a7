"""A control plane with kwatt-controller and its job queue, for the tests of the queue against real peers."""
import json
import ssl
import urllib.error
import urllib.request

from bed import objects
from bed.process import wait_until
from lab.site import NAMESPACE, Site

QUEUE = "kwatt.dev/queue"


def annotation(pod, key):
    return pod["metadata"].get("annotations", {}).get(f"kwatt.dev/{key}")


def scheduled(pod):
    found = next((c for c in pod.get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"), {})
    return found.get("reason") or found.get("status", "")


class Room:
    """A control plane with kwatt-controller, and one node of 4 CPUs for each queue, so that tests do not meet.
    `sources`: carbon sources beside the CSV file "file", as in the file of --carbon-sources."""

    def __init__(self, directory, sources=()):
        self.ground = Site(directory / "ground", agents=False, redfish=False)
        self.sources, self.intensity = directory / "carbon.json", directory / "intensity.csv"
        self.schedule = directory / "schedule_log.csv"
        self.intensity.write_text("time,zone,gramsPerKWh\n")
        self.sources.write_text(json.dumps(
            {"sources": [{"name": "file", "csv": {"path": str(self.intensity)}}, *sources]}))

    def start(self):
        self.ground.start()
        self.ground.start_controller("--carbon-sources", str(self.sources), "--carbon-interval", "1s",
                                     "--endpoint-allow", "127.0.0.1", "--schedule-log", str(self.schedule))
        return self

    def stop(self):
        self.ground.stop()

    @property
    def api(self):
        return self.ground.bed.api

    def queue(self, name, strategy="FCFS", nodes=1, mode="Enforce", **carbon):
        for i in range(nodes):
            self.ground.add_machine(f"{name}-{i}", cpu=4, bmc=None, labels={"queue": name})
        self.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": name},
                         "spec": {"mode": mode, "nodeSelector": {"matchLabels": {"queue": name}},
                                  "powerOff": {"enabled": False}, "powerOn": {"enabled": False},
                                  "placement": {"strategy": strategy}, "carbon": carbon}})

    def job(self, queue, name, cpu, members=1, **annotations):
        """Pods cannot run elsewhere, whatever kube-scheduler thinks of our preference; they run until ended."""
        marks = {f"kwatt.dev/{key.replace('_', '-')}": str(value) for key, value in annotations.items()}
        marks["bed.kwatt.dev/run-for"] = "1h"
        spec = objects.pod_spec(cpu=str(cpu), node_selector={"queue": queue})
        spec |= {"restartPolicy": "Never", "schedulingGates": [{"name": QUEUE}]}
        self.api.create({"apiVersion": "batch/v1", "kind": "Job",
                         "metadata": {"name": name, "namespace": "default"},
                         "spec": {"parallelism": members, "completions": members, "backoffLimit": 0,
                                  "template": {"metadata": {"labels": {QUEUE: queue}, "annotations": marks},
                                               "spec": spec}}})
        self.wait(lambda: len(self.pods(name)) == members, 20, f"the pods of {name}")

    def pods(self, job):
        return self.api.list("Pod", "default", f"labelSelector=job-name%3D{job}")

    def pod(self, job):
        return self.pods(job)[0]

    def says(self, job, word):
        return all(annotation(pod, "queue-decision") == word for pod in self.pods(job))

    def waits(self, job, word):
        self.wait(lambda: self.says(job, word), 20, f"{job} to say {word}", lambda: self.pods(job))
        for pod in self.pods(job):
            assert scheduled(pod) == "SchedulingGated" and "nodeName" not in pod["spec"], pod

    def runs(self, job, seconds=20):
        """The nodes of its pods, as soon as all of them have begun."""
        members = self.api.get("Job", job, "default")["spec"]["parallelism"]

        def begun():
            pods = self.pods(job)
            return len(pods) == members and all(pod["status"]["phase"] in ("Running", "Succeeded") for pod in pods)

        self.wait(begun, seconds, f"{job} to run", lambda: self.pods(job))
        return {pod["spec"]["nodeName"] for pod in self.pods(job)}

    def end(self, *jobs):
        for job in jobs:
            self.ground.bed.kubectl("delete", "job", job, "--cascade=foreground", "--timeout=30s")

    def wait(self, condition, seconds, what, story=lambda: ""):
        try:
            return wait_until(condition, seconds, what, every=0.1)
        except TimeoutError as error:
            said = json.dumps(story(), indent=1)
            raise AssertionError(f"{error}\n{said}\n{self.ground.controller.log_tail(40)}") from None

    def ask(self, method, path, body=None, token=None, accept="application/json"):
        headers = {"Accept": accept} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.ground.ingest_url + path, data=data, headers=headers, method=method)
        trust = ssl.create_default_context(cafile=str(self.ground.bed.ca_file))
        try:
            with urllib.request.urlopen(request, context=trust, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def token(self, account, namespace=NAMESPACE):
        return self.ground.bed.token_for(account, namespace, audience="kwatt")
