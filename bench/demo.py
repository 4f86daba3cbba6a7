"""How long after a decision a machine is Off in its status, beyond the machine's own time to shut down."""
import sys
import time

from lab.site import Site

from bench.figures import BenchError, Figure

MACHINES, KEPT = 4, 1
SHUTDOWN_SECONDS = 1
TARGET_SECONDS = 5
PATIENCE_SECONDS = 90
POLICY = {
    "apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": "bench"},
    "spec": {"mode": "Enforce", "interval": "1s",
             "powerOff": {"idleFor": "1s", "minAwake": KEPT, "minAwakePerZone": 0, "minOnDuration": "1s",
                          "minOffDuration": "1s", "maxCyclesPerDay": 100, "wakeTest": "Skip"},
             "disruption": {"budgets": [{"nodes": "100%"}]}}}
MODEL = {"idleMilliwatts": 100_000, "maxMilliwatts": 300_000, "bootSeconds": 2, "bootJoules": 1,
         "shutdownSeconds": SHUTDOWN_SECONDS}


def measure():
    names = [f"machine{number + 1}" for number in range(MACHINES)]
    with Site(agents=False) as site:
        site.add_machines(*({"name": name, "model": MODEL, "shutdown_seconds": SHUTDOWN_SECONDS} for name in names))
        site.start_controller()
        site.bed.api.create(POLICY)
        seconds = observe(site, names)
    beyond = [value - SHUTDOWN_SECONDS for value in seconds]
    yield Figure("demo", "from decision to Off, beyond the shutdown itself", max(beyond), "s", TARGET_SECONDS,
                 f"the slowest of {len(beyond)} machines; the fastest {min(beyond):.1f} s")


def observe(site, names):
    """Seconds from the operation's appearance in the status to Off, of each machine that goes off."""
    decided, off = {}, {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(off) < MACHINES - KEPT:
        site.controller.check()
        if time.monotonic() > deadline:
            states = {name: site.machine_power(name) for name in names}
            raise BenchError(f"only {len(off)} of {MACHINES - KEPT} machines went off within {PATIENCE_SECONDS} s: "
                             f"{states}\n{site.controller.log_tail()}")
        now = time.monotonic()
        for machine in site.bed.api.list("NodePower"):
            name, status = machine["metadata"]["name"], machine.get("status", {})
            if status.get("operation", {}).get("id") and name not in decided:
                decided[name] = now
                print(f"  {name}: decided", file=sys.stderr, flush=True)
            if status.get("powerState") == "Off" and name not in off:
                off[name] = now
                print(f"  {name}: off", file=sys.stderr, flush=True)
        time.sleep(0.05)
    missed = [name for name in off if name not in decided]
    if missed:
        raise BenchError(f"{missed} went off without an operation in their status")
    return [off[name] - decided[name] for name in off]
