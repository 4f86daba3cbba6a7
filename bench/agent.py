"""What the agent of a large machine costs, as it samples, pushes and reports, and how soon a cap is in force."""
import contextlib
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from bed import objects
from bed.process import Process
from lab.site import NAMESPACE, Site

from bench import sysfs_tree
from bench.figures import BenchError, Figure
from bench.programs import MIB, memory_of, program

CPUS = 256
SECONDS = 60
CAPS = 5
TARGET_MIB = 15
TARGET_PERCENT = 0.5  # of one core
TARGET_CAP_SECONDS = 1.0
NODE = "machine1"
LIMIT = "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"


def measure():
    with tempfile.TemporaryDirectory(prefix="kwatt-bench-") as folder, Site(agents=False, redfish=False) as site:
        machine = Path(folder)
        sysfs_tree.build(machine, CPUS)
        site.start_controller()
        with passing_time(machine / "proc/stat"):
            agent = start_agent(site, machine)
            try:
                site.wait(lambda: site.machine_power(NODE).get("report", {}).get("watts"), 60, "the agent's report")
                yield from cost(agent)
                yield cap_latency(site, machine)
            finally:
                agent.stop(grace=5)


@contextlib.contextmanager
def passing_time(stat):
    """CPU time must pass, or there is no utilization to sample. Rewritten in place: a reader never sees half of it."""
    end, text = threading.Event(), stat.read_text()

    def tick():
        idle = sysfs_tree.IDLE
        while not end.wait(0.5):
            idle += 50 * CPUS
            with open(stat, "r+b") as file:
                os.pwrite(file.fileno(), text.replace(str(sysfs_tree.IDLE), str(idle), 1).encode(), 0)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def start_agent(site, machine):
    """With the options that it has in a cluster: everything that matters here is the default."""
    site.bed.api.create(objects.node(NODE, cpu=str(CPUS)))
    site.bed.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower", "metadata": {"name": NODE},
                         "spec": {}})
    token = site.bed.token_for("kwatt-agent", NAMESPACE, bound_node=NODE, seconds=3600)
    shutil.copy(site.bed.kubeconfig_for_token(token), machine / "agent.kubeconfig")
    (machine / "push.token").write_text(
        site.bed.token_for("kwatt-agent", NAMESPACE, audience="kwatt", bound_node=NODE, seconds=3600))
    agent = Process("agent", [str(word) for word in (
        program("kwatt-agent"), "--node-name", NODE, "--kubeconfig", machine / "agent.kubeconfig",
        "--sysfs-root", machine / "sys", "--proc-root", machine / "proc", "--controller-url", site.ingest_url,
        "--controller-ca-file", site.bed.ca_file, "--controller-token-file", machine / "push.token")],
        machine / "agent.log")
    agent.start()
    return agent


def cpu_seconds(pid):
    """Time on a CPU so far, in user and kernel mode."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def cost(agent):
    pid = agent.pid
    before, started = cpu_seconds(pid), time.monotonic()
    time.sleep(SECONDS)
    agent.check()
    percent = (cpu_seconds(pid) - before) / (time.monotonic() - started) * 100
    yield Figure("agent", "CPU", percent, "% of one core", TARGET_PERCENT,
                 f"{CPUS} CPUs of {CPUS} frequency domains, sampled every second for {SECONDS} s")
    resident, peak, private = memory_of(pid), memory_of(pid, "VmHWM"), memory_of(pid, "RssAnon")
    yield Figure("agent", "resident", resident / MIB, "MiB", TARGET_MIB,
                 f"peak {peak / MIB:.1f} MiB, of its own {private / MIB:.1f} MiB; {CPUS} CPUs")


def cap_latency(site, machine):
    """From before the request to the API server until the limit is in the file; the slowest of a few."""
    limit = machine / LIMIT
    site.wait(lambda: site.machine_power(NODE).get("report", {}).get("capMaxWatts"), 30, "the range of caps")
    took = []
    for number in range(CAPS):
        before = limit.read_text()
        started = time.monotonic()
        cap = {"kwatt.dev/power-cap-watts": str(300 + 10 * number)}
        site.bed.api.patch("Node", NODE, {"metadata": {"annotations": cap}})
        while limit.read_text() in (before, ""):
            if time.monotonic() - started > 30:
                raise BenchError("a cap did not get into force within 30 s")
            time.sleep(0.002)
        took.append(time.monotonic() - started)
        time.sleep(1.7)  # not in step with the agent's own seconds
    return Figure("agent", "cap in force after", max(took), "s", TARGET_CAP_SECONDS,
                  f"the slowest of {CAPS}, from before the annotation is written on a real API server; "
                  f"{sum(took) / len(took):.2f} s on average")
