"""Random instances of "which nodes take these pods for the least additional power", and their exact optimum.

Run by an interpreter that has highspy (test/placement/highs.py) it reads JSON lines {"instance", "milliwatts" (of our
placement)} and prints JSON lines {"bound", "seconds", "whole"}. All but the solver needs only the standard library.

The instances (what is random, and what was decided):
  nodes     3 to 50, each with the curve of one of the 65 systems of 2021-22 among the published results of
            SPECpower_ssj2008, its logical CPUs, 2, 4 or 8 GiB for each of them, and room for 110 pods.
  start     one of: all nodes off; all on and idle; on with 5 to 60 % of their CPU requested and in use; a mix, in
            which a node is off, idle or loaded with the same chance. Nodes that are off draw 3 to 12 W standby and
            take 60 to 300 s at full power to boot, spread over 10 minutes.
  pods      1 to 12 kinds in up to 600 replicas in all, of 0.1 to 16 CPUs (none larger than the largest free room)
            and 1, 2, 4 or 8 GiB for each CPU, so that they ask for 10 to 85 % of the CPU that is free, or 85 % of
            the free memory if that is less.
The objective is the increase: watts of all nodes after less watts before, with standby and boot as above.
"""
import csv
import json
import random
import sys
import time

GIB = 1 << 30
PODS_PER_NODE = 110


def curves(path):
    """[(logical CPUs, [11 milliwatts])] of the systems of 2021-22 in the file's order."""
    found = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["hw_available"][-4:] in ("2021", "2022") and row["test_method"] == "Single Node":
                loads = ["w_idle"] + [f"w_{percent}" for percent in range(10, 101, 10)]
                found.append((int(row["threads"]), [round(float(row[load]) * 1000) for load in loads]))
    return found


def instance(seed, systems):
    rng = random.Random(seed)
    start = rng.choice(("off", "idle", "loaded", "mixed"))
    over = 600
    nodes = [_node(rng, rng.choice(systems), start, over) for _ in range(rng.randint(3, 50))]
    return {"seed": seed, "start": start, "bootOverSeconds": over, "nodes": nodes, "pods": _pods(rng, nodes)}


def _node(rng, system, start, over):
    threads, milliwatts = system
    state = rng.choice(("off", "idle", "loaded")) if start == "mixed" else start
    load = rng.randint(50, 600) if state == "loaded" else 0
    memory = threads * rng.choice((2, 4, 8)) * GIB
    boot = rng.randint(60, 300)
    return {"milliwatts": milliwatts, "millicores": threads * 1000, "memory": memory, "pods": PODS_PER_NODE,
            "awake": state != "off", "loadPermille": load, "requestedMillicores": threads * load,
            "requestedMemory": memory * load // 1000, "standbyMilliwatts": rng.randint(3, 12) * 1000,
            "bootMillijoules": milliwatts[10] * boot}


def _pods(rng, nodes):
    free = [n["millicores"] - n["requestedMillicores"] for n in nodes]
    memory = sum(n["memory"] - n["requestedMemory"] for n in nodes)
    share = rng.uniform(0.10, 0.85)
    kinds = []
    for _ in range(rng.randint(1, 12)):
        most = min(16000, max(free) // 2)
        cpu = min(most, int(100 * (160 ** rng.random())) // 50 * 50)
        kinds.append({"millicores": cpu, "memory": cpu * rng.choice((1, 2, 4, 8)) * GIB // 1000, "replicas": 0})
    wanted, asked, asked_memory = share * sum(free), 0, 0
    for _ in range(600):
        kind = rng.choice(kinds)
        if asked + kind["millicores"] > wanted or asked_memory + kind["memory"] > 0.85 * memory:
            break
        asked += kind["millicores"]
        asked_memory += kind["memory"]
        kind["replicas"] += 1
    kinds = [kind for kind in kinds if kind["replicas"]]
    return kinds or [{"millicores": 100, "memory": GIB // 10, "replicas": 1}]


def watts_at(node, millicores):
    """Milliwatts of the curve, exact in floating point."""
    tenths = min(millicores, node["millicores"]) * 10 / node["millicores"]
    below = min(int(tenths), 9)
    points = node["milliwatts"]
    return points[below] + (points[below + 1] - points[below]) * (tenths - below)


def wake_cost(node, over):
    if node["awake"]:
        return 0.0
    return node["milliwatts"][0] - node["standbyMilliwatts"] + node["bootMillijoules"] / over


def used_before(node):
    return node["millicores"] * node["loadPermille"] / 1000 if node["awake"] else 0.0


def cost(problem, counts):
    """The increase of a placement, in milliwatts, or a sentence why it is none. counts[pod kind][node]."""
    total = 0.0
    for kind, row in zip(problem["pods"], counts):
        if sum(row) != kind["replicas"] or min(row) < 0:
            return f"{sum(row)} of {kind['replicas']} replicas of {kind} are placed"
    for i, node in enumerate(problem["nodes"]):
        number = sum(row[i] for row in counts)
        cpu = sum(row[i] * kind["millicores"] for row, kind in zip(counts, problem["pods"]))
        memory = sum(row[i] * kind["memory"] for row, kind in zip(counts, problem["pods"]))
        if number == 0:
            continue
        if number > node["pods"] or cpu > node["millicores"] - node["requestedMillicores"] \
                or memory > node["memory"] - node["requestedMemory"]:
            return f"node {i} holds more than fits: {number} pods, {cpu} millicores, {memory} bytes"
        before = used_before(node)
        total += watts_at(node, before + cpu) - watts_at(node, before) + wake_cost(node, problem["bootOverSeconds"])
    return total


def solve(problem, ours, seconds):
    """What HiGHS proves of the least increase: {"bound", "seconds", "whole"}, in milliwatts; no placement is below.

    First with replicas that may be divided among nodes, which is quick and seldom more than 0.2 % below the
    optimum; only if `ours` (milliwatts) is more than 1 % above that, with whole ones ("whole")."""
    import highspy  # only here: the tests run without it

    started = time.monotonic()
    bound, whole = _bound(highspy, problem, seconds, False), False
    if ours > bound * 1.01:
        bound, whole = max(bound, _bound(highspy, problem, seconds, True)), True
    return {"bound": bound, "seconds": time.monotonic() - started, "whole": whole}


def _bound(highspy, problem, seconds, whole):
    """Replicas x[kind, node]; load of a node = its CPUs, on the curve's ten pieces, of which stretches that are convex
    share a binary; a binary for a node that must be woken."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("time_limit", float(seconds))
    model.setOptionValue("mip_rel_gap", 3e-3)
    nodes, pods, over = problem["nodes"], problem["pods"], problem["bootOverSeconds"]
    kind = model.addIntegral if whole else model.addVariable
    x = [[kind(lb=0, ub=min(pod["replicas"], node["pods"])) for node in nodes] for pod in pods]
    for pod, row in zip(pods, x):
        model.addConstr(sum(row[1:], row[0] + 0.0) == pod["replicas"])
    objective = 0.0
    for i, node in enumerate(nodes):
        objective += _node_rows(model, node, [row[i] for row in x], pods, over)
    model.setObjective(objective, highspy.ObjSense.kMinimize)
    model.run()
    return model.getInfo().mip_dual_bound * 1000


def _pieces(node):
    """Where the curve bends, from the present load on: [(cores above it, watts above it)], collinear points merged."""
    before = used_before(node)
    loads = [before] + [load for load in (node["millicores"] * i / 10 for i in range(11)) if load > before + 1e-9]
    base = watts_at(node, before)
    return [((load - before) / 1000, (watts_at(node, load) - base) / 1000) for load in loads]


def _node_rows(model, node, x, pods, over):
    """The rows of one node; its part of the objective in watts."""
    points = _pieces(node)
    spare = (node["millicores"] - node["requestedMillicores"]) / 1000
    memory = (node["memory"] - node["requestedMemory"]) / GIB
    cpus = sum((v * (k["millicores"] / 1000) for v, k in zip(x, pods)), 0.0)
    on = model.addBinary() if not node["awake"] else None
    limit = 1.0 if on is None else on
    model.addConstr(cpus <= spare * limit)
    model.addConstr(sum((v * (k["memory"] / GIB) for v, k in zip(x, pods)), 0.0) <= memory * limit)
    model.addConstr(sum((v * 1.0 for v in x), 0.0) <= node["pods"] * limit)
    if on is not None:  # tightens the relaxation: no replica without the node
        for v, kind in zip(x, pods):
            fits = int(min(node["pods"], kind["replicas"], spare * 1000 // kind["millicores"],
                           memory * GIB // max(1, kind["memory"])))
            model.addConstr(v <= fits * on)
    watts, load, picks = 0.0, 0.0, 0.0
    # Each piece is its own little line: a binary chooses it, its load runs along it. Convex runs share one.
    for run in _convex_runs(points):
        pick = model.addBinary()
        picks += pick
        load += pick * run[0][0]
        watts += pick * run[0][1]
        for (l0, w0), (l1, w1) in zip(run, run[1:]):
            part = model.addVariable(lb=0, ub=l1 - l0)
            model.addConstr(part <= (l1 - l0) * pick)
            load += part
            watts += part * ((w1 - w0) / (l1 - l0))
    model.addConstr(picks == limit)
    model.addConstr(load == cpus)
    if on is not None:
        watts += on * (wake_cost(node, over) / 1000)
    return watts


def _convex_runs(points):
    """The curve cut into stretches on which the slope never falls."""
    runs, slope = [[points[0]]], float("-inf")
    for a, b in zip(points, points[1:]):
        new = (b[1] - a[1]) / (b[0] - a[0])
        if new < slope - 1e-12:
            runs.append([a])
        slope = new
        runs[-1].append(b)
    return runs


def main():
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(solve(job["instance"], job["milliwatts"], float(sys.argv[1]))), flush=True)


if __name__ == "__main__":
    main()
