"""Min-cost flow: our solver at 10,000 jobs × 5,000 nodes, 20 arcs a job, beside LEMON's network simplex on the same
instances. That the optimum is OR-tools', too, is test/placement/test_flow.py.

The target belongs to the kind of instance on which LEMON takes 30 to 43 ms: nodes with room to choose from. The others,
where jobs fight for the same nodes, are harder for both; they are printed for comparison."""
from bench.figures import BenchError, Figure
from bench.programs import program, run_json

LABELS = {"tight": "a unit for each job, random costs", "loose": "two units for each job, random costs",
          "related": "two units, dot products", "convex": "two units, dot products, convex nodes"}


def measure():
    figures = []
    for row in run_json([program("bench_sim_flow")]):
        if not row["equal"]:
            raise BenchError(f"min-cost flow, {row['case']}: the cost is not LEMON's")
        figures.append(Figure("sim", f"min-cost flow, 10,000 jobs on 5,000 nodes, {LABELS[row['case']]}: CPU time",
                              row["milliseconds"], "ms", 40 if row["case"] == "loose" else None,
                              f"worst of 7 {row['worst']:.1f} ms, LEMON {row['lemon']:.0f} ms"))
    return figures
