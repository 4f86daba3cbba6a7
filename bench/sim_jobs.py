"""The job simulator: CPU time and memory of 1.8 million jobs on 2,500 machines over 48 hours."""
from bench.figures import BenchError, Figure
from bench.programs import program, run_json

JOBS, MACHINES = 1_800_000, 2_500


def measure():
    row = run_json([program("bench_sim_jobs")])
    if row["jobs"] != JOBS or row["machines"] != MACHINES:
        raise BenchError(f"{row['jobs']} jobs on {row['machines']} machines were simulated")
    if row["completed"] + row["rejected"] != JOBS:
        raise BenchError(f"{JOBS - row['completed'] - row['rejected']} jobs did not end")
    note = (f"{row['strategy']}, {row['hours']:.0f} h simulated, {100 * row['utilization']:.0f} % of the CPU that was on in "
            f"use, {row['powerCycles']:,} power cycles")
    return [Figure("sim", f"{JOBS:,} jobs on {MACHINES:,} machines over 48 h, CPU time", row["seconds"], "s", 60, note),
            Figure("sim", "the same, memory at its peak", row["mebibytes"], "MiB", 1024),
            Figure("sim", "jobs simulated a second", JOBS / row["seconds"], "")]
