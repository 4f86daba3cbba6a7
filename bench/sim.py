"""./dev bench sim: what the simulator shows on real traces, each figure beside its baseline. One part after the other; a
part that cannot be measured does not keep the others from it."""
import sys

from bench import sim_carbon, sim_consolidation, sim_flow, sim_forecast, sim_inflation, sim_jobs
from bench.figures import BenchError

PARTS = {"consolidation": sim_consolidation, "inflation": sim_inflation, "flow": sim_flow, "carbon": sim_carbon,
         "forecasts": sim_forecast, "jobs": sim_jobs}


def measure():
    broken = []
    for name, part in PARTS.items():
        print(f"  {name} …", file=sys.stderr, flush=True)
        try:
            yield from part.measure()
        except Exception as error:
            broken.append(f"{name}: {type(error).__name__}: {error}")
    if broken:
        raise BenchError("; ".join(broken))
