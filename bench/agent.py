"""Resident memory of the agent of one large machine, as it samples, pushes and reports."""
import time

from lab.site import Site

from bench.figures import BenchError, Figure
from bench.programs import MIB, memory_of

CPUS = 64
SECONDS = 20
TARGET_MIB = 15


def measure():
    with Site() as site:
        site.start_controller()
        site.add_machine("machine1", cpu=CPUS)
        site.wait(lambda: site.machine_power("machine1").get("report", {}).get("bootID"), 30, "the agent's report")
        pid = agent_pid(site)
        time.sleep(SECONDS)
        if agent_pid(site) != pid:
            raise BenchError("the agent was restarted while it was watched")
        resident, peak, private = memory_of(pid), memory_of(pid, "VmHWM"), memory_of(pid, "RssAnon")
    yield Figure("agent", "resident", resident / MIB, "MiB", TARGET_MIB,
                 f"peak {peak / MIB:.1f} MiB, of its own {private / MIB:.1f} MiB; {CPUS} CPUs, after {SECONDS} s")


def agent_pid(site):
    return site.room.machine("machine1")["agentPid"]
