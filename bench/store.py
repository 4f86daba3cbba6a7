"""What 5,000 nodes and 50,000 pods cost in kwatt's stores and in client-go's, from the same API server."""
import statistics
import sys

from bed import Bed, bulk

from bench import population
from bench.clientgo import build as clientgo
from bench.figures import BenchError, Figure
from bench.programs import MIB, program, run_json

NODES, PODS = 5_000, 50_000
ROUNDS = 3
RESIDENT_MIB = 100


def measure(scale=1.0):
    """Figures of medians over alternating runs. A scale below 1 is for trying the bench: no targets then."""
    nodes, pods = max(1, round(NODES * scale)), max(1, round(PODS * scale))
    ours, theirs = program("bench_store_load"), clientgo.ensure()
    with Bed(kwok=False, scheduler=False, controller_manager=False) as bed:
        fill(bed, nodes, pods)
        runs = {"kwatt": [], "client-go": [], "stripped": []}
        commands = {"kwatt": [ours, "--kubeconfig", bed.kubeconfig],
                    "client-go": [theirs, "--kubeconfig", bed.kubeconfig],
                    "stripped": [theirs, "--kubeconfig", bed.kubeconfig, "--strip-managed-fields"]}
        for number in range(ROUNDS):
            for name, command in commands.items():
                say(f"round {number + 1} of {ROUNDS}: {name}")
                runs[name].append(checked(run_json(command), nodes, pods))
    return figures(runs, full_size=scale >= 1)


def fill(bed, nodes, pods):
    say(f"creating {nodes:,} nodes and {pods:,} pods")
    for namespace in population.NAMESPACES:
        bed.create_namespace(namespace)
    seconds = bulk.create_all(bed, (population.node(index) for index in range(nodes)))
    seconds += bulk.create_all(bed, (population.pod(index, nodes) for index in range(pods)), statuses=True)
    say(f"created in {seconds:.0f} s; the API server uses {bed.memory()['kube-apiserver'] / MIB:,.0f} MiB")


def checked(result, nodes, pods):
    if (result["nodes"], result["pods"]) != (nodes, pods):
        raise BenchError(f"{result['nodes']} nodes and {result['pods']} pods were loaded, not {nodes} and {pods}")
    return result


def figures(runs, full_size):
    def median(name, key, per=1.0):
        return statistics.median(run[key] for run in runs[name]) / per

    resident = {name: median(name, "resident_bytes", MIB) for name in runs}
    cpu = {name: median(name, "cpu_seconds") for name in runs}
    best_cpu = min(cpu["client-go"], cpu["stripped"])
    yield Figure("store", "resident", resident["kwatt"], "MiB", RESIDENT_MIB if full_size else None,
                 f"peak {median('kwatt', 'peak_bytes', MIB):.0f} MiB; client-go {resident['client-go']:.0f} MiB "
                 f"({resident['client-go'] / resident['kwatt']:.1f} times as much), without managedFields "
                 f"{resident['stripped']:.0f} MiB, peak {median('client-go', 'peak_bytes', MIB):.0f} MiB")
    yield Figure("store", "CPU time", cpu["kwatt"], "s", best_cpu if full_size else None,
                 f"client-go {cpu['client-go']:.2f} s ({cpu['client-go'] / cpu['kwatt']:.1f} times as much), "
                 f"without managedFields {cpu['stripped']:.2f} s")
    yield Figure("store", "ready after", median("kwatt", "wall_seconds"), "s", None,
                 f"client-go {median('client-go', 'wall_seconds'):.1f} s; the API server's work is most of both")


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)
