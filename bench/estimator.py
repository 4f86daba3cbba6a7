"""The estimator: the exact estimate over 5,000 machines, and cached answers over HTTP."""
import os
import shutil
import subprocess

from bench.figures import BenchError, Figure
from bench.programs import program, run_json

NODES, WORKLOADS = 5_000, 100
EXACT_MS = 20
RATE, P99_MS = 10_000, 1
CLIENTS, SECONDS = 4, 5


def measure():
    binary = program("bench_estimator")
    exact = run_json([binary, "exact", "--nodes", NODES, "--workloads", WORKLOADS])
    return [exact_figure(exact), *served(binary)]


def exact_figure(result):
    return Figure("estimator", f"exact, {NODES:,} machines x {WORKLOADS} workloads", result["median_seconds"] * 1000,
                  "ms", EXACT_MS, f"worst of 25: {result['worst_seconds'] * 1000:.1f} ms; no two machines alike")


def served(binary):
    pin, other = pinned(0), pinned(1)
    server = subprocess.Popen([*pin, binary, "serve", "--nodes", str(NODES)], stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip()
        if not port:
            raise BenchError("the server did not start")
        result = run_json([*other, binary, "load", "--port", port, "--clients", CLIENTS, "--seconds", SECONDS])
    finally:
        server.terminate()
        server.wait(timeout=10)
    return figures(result, bool(pin))


def pinned(core):
    """taskset to one core, where there are two and the tool is there."""
    if shutil.which("taskset") and len(os.sched_getaffinity(0)) > 1:
        return ["taskset", "-c", str(sorted(os.sched_getaffinity(0))[core])]
    return []


def figures(result, alone):
    if result["wrong"]:
        raise BenchError(f"{result['wrong']} of {result['requests']} answers were wrong")
    where = "server on one core" if alone else "server and clients share the core"
    # Figures must not be above their target: so the time of one request, whose inverse is the rate.
    return [Figure("estimator", "time per cached request", 1e6 / result["per_second"], "us", 1e6 / RATE,
                   f"{result['per_second']:,.0f} requests/s with {result['clients']} clients (target >= {RATE:,}), "
                   + where),
            Figure("estimator", "cached p99", result["p99_ms"], "ms", P99_MS,
                   f"p50 {result['p50_ms']:.3f} ms, worst {result['worst_ms']:.2f} ms")]
