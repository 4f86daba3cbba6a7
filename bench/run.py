"""./dev bench: measures what kwatt promises and prints each figure beside its target.

    ./dev bench                 everything, about an hour on 2 cores
    ./dev bench planner store   only these

Exit status 1 if a target was missed, 2 if a figure could not be measured.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from bench import agent, demo, estimator, extender, full_build, history, placement, planner, sim, store  # noqa: E402

# In the order of a full run: the quick ones first.
BENCHES = {
    "planner": (planner.measure, "one full planning pass, 1,000 nodes and 30,000 pods"),
    "history": (history.measure, "the history of 5,000 nodes on disk"),
    "placement": (placement.measure, "a choice among 500 and 5,000 nodes; 1,000 batches beside HiGHS"),
    "estimator": (estimator.measure, "the exact power estimate, and cached answers over HTTP"),
    "extender": (extender.measure, "the scheduler extender, 5,000 nodes cached, and a real kube-scheduler"),
    "sim": (sim.measure, "consolidation, GPU packing, min-cost flow, carbon and jobs on real traces"),
    "demo": (demo.measure, "from a decision to a machine that is Off, real control plane"),
    "agent": (agent.measure, "kwatt-agent of a machine with 256 CPUs: CPU time, memory, time to a cap"),
    "store": (store.measure, "5,000 nodes and 50,000 pods in memory, beside client-go's informers"),
    "build": (full_build.measure, "a full build from nothing, without ccache"),
}
# What CMake has to build for each; "build" builds everything itself.
PROGRAMS = {
    "planner": ["bench_planner"],
    "history": ["bench_history"],
    "placement": ["bench_placement", "placement_probe"],
    "estimator": ["bench_estimator"],
    "extender": ["bench_extender", "kwatt-controller"],
    "sim": ["bench_sim_consolidation", "bench_sim_inflation", "bench_sim_flow", "bench_sim_carbon",
            "bench_sim_forecast", "bench_sim_jobs"],
    "demo": ["kwatt-controller", "kwatt-agent"],
    "agent": ["kwatt-controller", "kwatt-agent"],
    "store": ["bench_store_load"],
    "build": [],
}


def main():
    options = parse()
    if options.programs:
        print(*sorted({name for bench in options.names or BENCHES for name in PROGRAMS[bench]}))
        return 0
    found, broken = [], {}
    for name in options.names or BENCHES:
        started = time.monotonic()
        print(f"{name}: {BENCHES[name][1]} …", file=sys.stderr, flush=True)
        try:
            keywords = {"scale": options.scale} if name == "store" else {}
            for figure in BENCHES[name][0](**keywords):
                found.append(figure)
                if options.output == "text":
                    print(figure.line(), flush=True)
        except Exception as error:  # the other figures are still wanted; main() answers 2
            broken[name] = f"{type(error).__name__}: {error}"
            print(f"{name}: NOT MEASURED: {broken[name]}", file=sys.stderr, flush=True)
        print(f"  ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
    missed = [figure for figure in found if not figure.met]
    if options.output == "json":
        print(json.dumps({"figures": [figure.document() for figure in found], "notMeasured": broken}, indent=2))
    else:
        summarize(found, missed, broken)
    return 2 if broken else 1 if missed else 0


def parse():
    parser = argparse.ArgumentParser(
        prog="./dev bench", description="Measures what kwatt promises; prints each figure beside its target.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="names:\n" + "\n".join(f"  {name:<9}{text}" for name, (_, text) in BENCHES.items())
        + "\n\nexit status: 0 all targets met, 1 one was missed, 2 a figure could not be measured")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure; without a name: everything")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")
    parser.add_argument("--scale", type=scale, default=1.0, metavar="FACTOR",
                        help="size of store's cluster, 0.01 to 1; below 1 its targets do not apply")
    parser.add_argument("--programs", action="store_true", help="only print what has to be built for that")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"unknown name '{unknown[0]}'; one of: {', '.join(BENCHES)}")
    return options


def scale(text):
    value = float(text)
    if not 0.01 <= value <= 1:
        raise argparse.ArgumentTypeError("must be from 0.01 to 1")
    return value


def summarize(found, missed, broken):
    judged = [figure for figure in found if figure.target is not None]
    print(f"{len(judged) - len(missed)} of {len(judged)} targets met"
          + "".join(f"\nmissed: {figure.line()}" for figure in missed)
          + "".join(f"\nnot measured: {name}: {text.splitlines()[0]}" for name, text in broken.items()))


if __name__ == "__main__":
    os.environ.setdefault("KWATT_PRESET", "release")  # of this process only: tests import this file
    sys.exit(main())
