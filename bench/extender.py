"""What asking kwatt costs kube-scheduler: the answers themselves with a C++ caller, each process on a core of its
own, and pods per second of a real kube-scheduler with the extender and without it."""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

from bed import bulk, objects
from bed.components import Timers
from bed.process import PortReservation, wait_until
from lab.site import Site

from bench.figures import BenchError, Figure
from bench.programs import program, run_json

NODES = 5_000
NAMES_MS = {500: 1.0, 5_000: 3.0}
PAIRS_PER_SECOND = 4_000
WHOLE_NODES, NODE_BYTES, WHOLE_MS = 1_000, 10_240, 15.0
KWOK_NODES, PODS, ROUNDS = 1_000, 1_000, 3
SHARE_PERCENT = 85


def measure():
    with served() as port:
        for names, target in NAMES_MS.items():
            yield names_figure(port, names, target)
        result = ask(port, "--names", 100, "--rounds", 8_000, "--connections", 2)
        yield Figure("extender", "call pairs with 100 names, on one core", result["pairs_per_second"], "/s",
                     PAIRS_PER_SECOND, f"p99 of a pair {result['pair_p99_ms']:.2f} ms with 2 callers at once; "
                     f"with 500 names {ask(port, '--rounds', 3000, '--connections', 2)['pairs_per_second']:,.0f} /s",
                     at_least=True)
        result = ask(port, "--names", WHOLE_NODES, "--node-bytes", NODE_BYTES, "--rounds", 200)
        yield Figure("extender", "filter of 1,000 whole nodes of 10 KB, p99", result["filter_p99_ms"], "ms", WHOLE_MS,
                     f"p50 {result['filter_p50_ms']:.1f} ms, with prioritize p99 {result['pair_p99_ms']:.1f} ms; "
                     f"{result['request_bytes'] / 1e6:.1f} MB each way")
    yield throughput()


@contextlib.contextmanager
def served():
    """A server on the first core; callers get the second one."""
    process = subprocess.Popen([*pinned(0), str(program("bench_extender")), "serve", "--nodes", str(NODES)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield json.loads(process.stdout.readline())["port"]
    finally:
        process.stdin.close()
        process.wait(10)


def pinned(core):
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[core % len(cores)])]


def ask(port, *arguments):
    return run_json([*pinned(1), program("bench_extender"), "ask", "--port", port, "--nodes", NODES, *arguments])


def names_figure(port, names, target):
    # The best of three: what else the machine does is not what is measured.
    runs = [ask(port, "--names", names, "--rounds", 2_000 if names < 1_000 else 500) for _ in range(3)]
    best = min(runs, key=lambda run: run["pair_p99_ms"])
    return Figure("extender", f"filter + prioritize of {names:,} names, p99", best["pair_p99_ms"], "ms", target,
                  f"p50 {best['pair_p50_ms']:.2f} ms; p99 of all runs "
                  + ", ".join(f"{run['pair_p99_ms']:.2f}" for run in runs))


# ---- a real kube-scheduler

def throughput():
    """Alternating rounds, so that both see the same machine."""
    port = PortReservation()
    extender = {"urlPrefix": f"http://127.0.0.1:{port.port}/scheduler", "filterVerb": "filter",
                "prioritizeVerb": "prioritize", "weight": 100_000, "nodeCacheCapable": True, "ignorable": True}
    # Kubernetes' own defaults: the bed's short ones are 500 renewals of Leases a second for 1,000 nodes.
    timers = Timers(node_monitor_grace="50s", node_lease_seconds=40)
    with Site(agents=False, redfish=False, timers=timers) as site:
        say(f"creating {KWOK_NODES:,} nodes")
        bulk.create_all(site.bed, (objects.node(f"node-{i:04}", cpu="64", memory="256Gi") for i in range(KWOK_NODES)))
        wait_until(lambda: sum(objects.node_is_ready(n) for n in site.bed.api.list("Node")) == KWOK_NODES, 180,
                   "all nodes to be Ready")
        controller = site.start_controller("--extender-address", f"127.0.0.1:{port.port}", "--log-level", "info")
        wait_until(lambda: "caches filled" in controller.log_tail(50), 60, "the controller's caches")
        for name, extenders in (("asking", [extender]), ("alone", [])):
            site.bed.start_scheduler(name, {"percentageOfNodesToScore": 100, "extenders": extenders})
        time.sleep(3)
        rates = {"asking": [], "alone": []}
        for number in range(ROUNDS):
            for name in rates if number % 2 == 0 else reversed(rates):
                rates[name].append(pods_per_second(site, name, number))
                say(f"round {number + 1}: {name} {rates[name][-1]:.0f} pods/s")
        log = (site.directory / "controller.log").read_text()
        if "ranked" not in log:
            raise BenchError("the extender was not asked")
    port.release()
    asking, alone = (statistics.median(rates[name]) for name in ("asking", "alone"))
    return Figure("extender", "pods/s of a real kube-scheduler with it, 1,000 nodes", 100 * asking / alone,
                  "% of without", SHARE_PERCENT, f"{asking:.0f} and {alone:.0f} pods/s, medians of {ROUNDS} rounds",
                  at_least=True)


def pods_per_second(site, scheduler, number):
    """Pods are created while their scheduler is stopped, so that creating them is not what is measured."""
    process = site.bed.process(scheduler)
    namespace = f"{scheduler}-{number}"
    site.bed.create_namespace(namespace)
    process.stop(grace=5)
    bulk.create_all(site.bed, (objects.pod(f"pod-{i:04}", namespace, cpu="500m", scheduler=scheduler)
                               for i in range(PODS)))
    process.start()

    def bound():
        return sum(bool(pod["spec"].get("nodeName")) for pod in site.bed.api.list("Pod", namespace))

    wait_until(lambda: bound() > 0, 60, "the first pod to be bound", every=0.02)
    started, first = time.monotonic(), bound()
    wait_until(lambda: bound() == PODS, 180, "all pods to be bound", every=0.1)
    rate = (PODS - first) / (time.monotonic() - started)
    site.bed.kubectl("delete", "namespace", namespace, "--wait=false")
    wait_until(lambda: not site.bed.api.list("Pod", namespace), 120, "the pods to be gone", every=0.5)
    return rate


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)
