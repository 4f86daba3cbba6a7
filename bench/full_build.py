"""A full build from nothing: fresh directory, no ccache, two jobs."""
import os
import shutil
import subprocess
import tempfile
import time

from bench.figures import BenchError, Figure
from bench.programs import ROOT

TARGET_SECONDS = 6 * 60
JOBS = 2
SLOWEST = 5
PATIENCE_SECONDS = 3600


def measure():
    (ROOT / "build").mkdir(exist_ok=True)
    directory = tempfile.mkdtemp(prefix="from-nothing-", dir=ROOT / "build")
    env = dict(os.environ, CCACHE_DISABLE="1")
    try:
        started, cpu_before = time.monotonic(), children_cpu()
        run(["cmake", "--preset", "dev", "-B", directory], env)
        run(["cmake", "--build", directory, "--parallel", str(JOBS)], env)
        seconds, cpu = time.monotonic() - started, children_cpu() - cpu_before
        slowest = slowest_steps(f"{directory}/.ninja_log")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    yield Figure("build", f"from nothing with {JOBS} jobs", seconds, "s", TARGET_SECONDS,
                 f"CPU {cpu:.0f} s; slowest: " + ", ".join(f"{name} {spent:.0f} s" for name, spent in slowest))


def run(command, env):
    answer = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=PATIENCE_SECONDS)
    if answer.returncode != 0:
        raise BenchError(f"{' '.join(command)} failed ({answer.returncode}):\n{answer.stdout[-3000:]}")


def children_cpu():
    times = os.times()
    return times.children_user + times.children_system


def slowest_steps(log):
    """(output, seconds) of the longest steps in a .ninja_log: start, end (ms), mtime, output, hash by tabs."""
    steps = {}
    with open(log) as lines:
        for line in lines:
            fields = line.split("\t")
            if len(fields) >= 4:
                steps[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    ordered = sorted(steps.items(), key=lambda step: -step[1])[:SLOWEST]
    return [(short(name), seconds) for name, seconds in ordered]


def short(output):
    """agent/CMakeFiles/kwatt_agent.dir/agent.cpp.o → agent/agent.cpp"""
    parts = output.removesuffix(".o").split("/")
    if "CMakeFiles" in parts:
        at = parts.index("CMakeFiles")
        parts = parts[:at] + parts[at + 2:]
    return "/".join(parts)
