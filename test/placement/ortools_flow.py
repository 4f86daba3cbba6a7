"""The optimum of assignment problems by an independent solver: OR-tools' SimpleMinCostFlow, from PyPI.

As a program (run by the interpreter of python()) it reads problems, one JSON line each, as test/placement/flow_probe.cpp
does, and prints {"cost"} for each. instance() needs only the standard library."""
import json
import random
import sys

PACKAGES = ("ortools==ORTOOLS",)


def python():
    from placement import solver_env
    return solver_env.interpreter("ortools-ORTOOLS", PACKAGES)


def instance(seed):
    """Up to 60 jobs on up to 25 nodes of up to 5 units: contended or not, costs alike or not, of either sign, units
    flat or ever dearer, leaving a job out dear or cheap; jobs without an arc and nodes without a unit among them."""
    rng = random.Random(seed)
    jobs, nodes = rng.randint(1, 60), rng.randint(1, 25)
    most_arcs, most_units = rng.randint(1, 20), rng.randint(1, 5)
    low, high = rng.choice([(0, 3), (0, 50), (-100, 100), (0, 10**9)])
    unplaced = rng.choice([10**12, high, max(1, high // 2)])
    step = rng.choice([0, 0, 1, max(1, high // 10)])
    arcs = [[[node, rng.randint(low, high)]
             for node in rng.sample(range(nodes), min(nodes, rng.randint(0, most_arcs)))] for _ in range(jobs)]
    units = []
    for _ in range(nodes):
        price, prices = rng.randint(low, high), []
        for _ in range(rng.randint(0, most_units)):
            prices.append(price)
            price += rng.randint(0, step)
        units.append(prices)
    return {"arcs": arcs, "unplaced": [unplaced] * jobs, "units": units}


def solve(problem):
    from ortools.graph.python import min_cost_flow
    solver = min_cost_flow.SimpleMinCostFlow()
    jobs, nodes = len(problem["arcs"]), len(problem["units"])
    sink = jobs + nodes
    for job, arcs in enumerate(problem["arcs"]):
        solver.set_node_supply(job, 1)
        solver.add_arc_with_capacity_and_unit_cost(job, sink, 1, problem["unplaced"][job])
        for node, cost in arcs:
            solver.add_arc_with_capacity_and_unit_cost(job, jobs + node, 1, cost)
    for node, prices in enumerate(problem["units"]):
        for price in prices:
            solver.add_arc_with_capacity_and_unit_cost(jobs + node, sink, 1, price)
    solver.set_node_supply(sink, -jobs)
    if solver.solve() != solver.OPTIMAL:
        raise RuntimeError("OR-tools found no optimum")
    return solver.optimal_cost()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps({"cost": solve(json.loads(line))}), flush=True)
