"""What the history costs at 5,000 nodes: bench_history writes two hours of it."""
import tempfile
from pathlib import Path

from bench.figures import BenchError, Figure
from bench.programs import program, run_json

NODES, MINUTES = 5_000, 120
CPU_PERCENT = 1


def measure():
    with tempfile.TemporaryDirectory() as folder:
        return figures(run_json([program("bench_history"), "--file", Path(folder) / "history.db",
                                 "--nodes", NODES, "--minutes", MINUTES]))


def figures(result):
    if result["rows"] != 2 * NODES * MINUTES:
        raise BenchError(f"{result['rows']} rows were written, not {2 * NODES * MINUTES}")
    rate = result["rows"] / result["wall_seconds"]
    return [Figure("history", "CPU share at 5,000 nodes", result["cpu_seconds_per_minute"] / 60 * 100, "%", CPU_PERCENT,
                   f"{rate:,.0f} rows/s when it writes as fast as it can, "
                   f"{result['file_bytes'] / (1 << 20):.0f} MiB for {MINUTES} minutes")]
