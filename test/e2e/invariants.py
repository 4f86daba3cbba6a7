"""The invariants a to f, h and i of docs/explanation/safety.md, as pure checks of what an observer saw.

Every check takes a Sight, which is what the API server and the machine room said at one moment, and
returns (machine, sentence) pairs. None of this shares code with kwatt.
"""
import json
from dataclasses import dataclass, field
from datetime import datetime

TAINTS = ("kwatt.dev/candidate", "kwatt.dev/power-off")
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
ZONE = "topology.kubernetes.io/zone"
CAP = "kwatt.dev/power-cap-watts"
MAX_FREQUENCY = "kwatt.dev/max-frequency-mhz"
# A package limit is made from the draw of the rest of the machine as it was measured: under a lower cap fans, memory
# and supply draw less than they will under the new one. In the lab that is up to 4 % of the wall's watts.
CAP_TOLERANCE = 0.06
SETTLED = 2.0  # seconds after which what people change counts as known to everybody


@dataclass
class Sight:
    time: float                                    # wall clock, when looking began
    policies: dict = field(default_factory=dict)   # by name
    machines: dict = field(default_factory=dict)   # NodePowers by name
    nodes: dict = field(default_factory=dict)
    pods: dict = field(default_factory=dict)       # node → pods
    lease: dict = None                             # the controller's, None if there is none
    states: dict = field(default_factory=dict)     # machine → On, Off, PoweringOn, PoweringOff: the truth
    most_watts: dict = field(default_factory=dict)  # machine → the cap in force, else the most it can draw
    hardware: dict = field(default_factory=dict)   # machine → {"mhz": (low, high), "cap": (low, high)}
    changing: set = field(default_factory=set)     # policies that people changed or deleted while this was looked at


def seconds_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0.0


def is_workload(pod):
    owners = pod["metadata"].get("ownerReferences", [])
    daemon = any(owner.get("controller") and owner["kind"] == "DaemonSet" for owner in owners)
    static = "kubernetes.io/config.mirror" in pod["metadata"].get("annotations", {})
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and not daemon and not static


def operation_of(sight, name):
    return sight.machines.get(name, {}).get("status", {}).get("operation") or {}


def leaving(sight, name):
    return operation_of(sight, name).get("kind") == "PowerOff"


def selected(sight, policy):
    selector = policy["spec"].get("nodeSelector") or {}
    return sorted(name for name, node in sight.nodes.items() if _matches(selector, node["metadata"].get("labels", {})))


def _matches(selector, labels):
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions") or []:
        has, values = one["key"] in labels, one.get("values", [])
        good = {"In": has and labels.get(one["key"]) in values, "NotIn": labels.get(one["key"]) not in values,
                "Exists": has, "DoesNotExist": not has}[one["operator"]]
        if not good:
            return False
    return True


def acts(policy):
    return policy["spec"].get("mode") == "Enforce" and not policy["spec"].get("suspend") \
        and "deletionTimestamp" not in policy["metadata"]


def request_note(node):
    text = node["metadata"].get("annotations", {}).get("kwatt.dev/request")
    return json.loads(text) if text else {}


def is_control_plane(node):
    taints = {taint["key"] for taint in node.get("spec", {}).get("taints", [])}
    return any(key in node["metadata"].get("labels", {}) or key in taints for key in CONTROL_PLANE)


# ---- at the moment of a command ---------------------------------------------------------------------------


def command_violations(entry, sight, operations, identity=None, own_node=""):
    """`entry` is the machine room's record of a command, or of a limit set at the BMC; `operations` the ids ever seen in
    the NodePower; `identity` of the process that sent it, None where only one can have."""
    name, command = entry["machine"], entry.get("command", "limit")
    out = []

    def violated(letter, text):
        out.append((name, f"{letter}: {command} to {name} (operation {entry['operationId']}): {text}"))

    now = operation_of(sight, name).get("id")
    if not entry["operationId"]:
        violated("c", "no operation id went with it")
    elif entry["operationId"] != now and entry["operationId"] not in operations:
        violated("c", "its operation was never committed to the NodePower")
    _check_lease(entry, sight, identity, violated)
    if command in ("On", "limit"):
        return out
    running = [p["metadata"]["name"] for p in sight.pods.get(name, []) if is_workload(p)]
    if running:
        violated("a", f"these pods were on it: {', '.join(running)}")
    node = sight.nodes.get(name, {"metadata": {}})
    if is_control_plane(node):
        violated("f", "it is a control-plane node")
    if own_node and name == own_node:
        violated("f", "the controller runs on it")
    if node["metadata"].get("annotations", {}).get("kwatt.dev/exclude") == "true":
        violated("f", "it is excluded")
    policy = sight.policies.get(operation_of(sight, name).get("policy"))
    if policy is None:
        violated("i", "no policy stands behind it")
        return out
    _check_floor(name, policy, sight, violated)
    known = policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"]
    if command == "GracefulShutdown" and not acts(policy) and known:
        violated("i", f"policy {policy['metadata']['name']} does not act, and the controller had said that it knows")
    return out


def _check_lease(entry, sight, identity, violated):
    spec = (sight.lease or {}).get("spec", {})
    if not spec.get("holderIdentity"):
        return violated("d", "nobody held the controllers' Lease")
    sent = seconds_of(entry["time"])
    expiry = seconds_of(spec.get("renewTime")) + spec.get("leaseDurationSeconds", 0)
    if sent > expiry:
        violated("d", f"the Lease of {spec['holderIdentity']} had expired {sent - expiry:.2f} s before")
    if identity is not None and identity != spec["holderIdentity"]:
        violated("d", f"{identity or 'an unknown process'} sent it, the Lease was of {spec['holderIdentity']}")


def _check_floor(name, policy, sight, violated):
    off = policy["spec"].get("powerOff", {})
    awake = [n for n in selected(sight, policy)
             if n != name and sight.states.get(n) == "On" and not leaving(sight, n)]
    if len(awake) < off.get("minAwake", 1):
        violated("b", f"{len(awake)} awake machines are left, minAwake is {off.get('minAwake', 1)}")
    zone = sight.nodes.get(name, {"metadata": {}})["metadata"].get("labels", {}).get(ZONE)
    in_zone = [n for n in awake if sight.nodes[n]["metadata"].get("labels", {}).get(ZONE) == zone]
    if zone and len(in_zone) < off.get("minAwakePerZone", 1):
        violated("b", f"{len(in_zone)} awake machines are left in zone {zone}, minAwakePerZone is "
                      f"{off.get('minAwakePerZone', 1)}")


# ---- in every sample --------------------------------------------------------------------------------------


def allowed_at_a_time(policy, count):
    """The least of the budgets that always count, for any reason; None: there is none."""
    least = None
    for budget in policy["spec"].get("disruption", {}).get("budgets") or []:
        if budget.get("schedule") or budget.get("reasons"):
            continue
        text = str(budget["nodes"])
        amount = -(-int(text[:-1]) * count // 100) if text.endswith("%") else int(text)
        if budget.get("allow") is False:
            amount = 0
        least = amount if least is None else min(least, amount)
    return least


def budget_violations(sight, since):
    """b: no disruption budget is exceeded. `since`: policy → when its present spec was first seen; only operations
    that were begun under it count."""
    out = []
    for name, policy in sight.policies.items():
        nodes = selected(sight, policy)
        allowed = allowed_at_a_time(policy, len(nodes))
        if allowed is None or not acts(policy) or name in sight.changing:
            continue
        busy = [n for n in nodes if operation_of(sight, n).get("kind") in ("PowerOff", "Migrate")
                and operation_of(sight, n).get("policy") == name
                and seconds_of(operation_of(sight, n).get("startedAt")) > since.get(name, sight.time)]
        if len(busy) > allowed:
            out.append((busy[0], f"b: {', '.join(busy)} are taken out of service at a time by policy {name}, "
                                 f"its budget allows {allowed}"))
    return out


def power_budget(policy):
    capping = policy["spec"].get("capping", {})
    return capping.get("budgetWatts", 0) if acts(policy) and capping.get("enabled") else 0


def draw_bound(sight, names):
    return sum(sight.most_watts.get(name, 0) for name in names)


def watts_violations(sight, kept):
    """b: caps in force and the maxima of uncapped machines stay within budgetWatts, once they were. `kept`: the policies
    (uid, generation) of which that has been seen; it is added to."""
    out = []
    for name, policy in sight.policies.items():
        budget, nodes = power_budget(policy), selected(sight, policy)
        key = (policy["metadata"]["uid"], policy["metadata"]["generation"])
        if not budget or not nodes or name in sight.changing:
            continue
        bound = draw_bound(sight, nodes)
        if bound <= budget * (1 + CAP_TOLERANCE):
            kept.add(key)
        elif key in kept:
            out.append((nodes[0], f"b: caps in force and maxima of policy {name} make {bound:.0f} W, budgetWatts is {budget}: "
                                  + ", ".join(f"{n} {sight.most_watts.get(n, 0):.0f}" for n in nodes)
                        + f" at {sight.time:.3f}"))
    return out


def range_violations(sight):
    """e: what is asked for in our name is within what the hardware can do."""
    out = []
    for name, node in sight.nodes.items():
        ours, hardware = request_note(node).get("keys", []), sight.hardware.get(name)
        for key, what in ((CAP, "cap"), (MAX_FREQUENCY, "mhz")):
            if key not in ours or not hardware or key not in node["metadata"].get("annotations", {}):
                continue
            value, (low, high) = int(node["metadata"]["annotations"][key]), hardware[what]
            if not low <= value <= high:
                out.append((name, f"e: {key} is {value}, the machine can do {low} to {high}"))
    return out


def write_violations(entries, hardware):
    """e: what agents wrote to cpufreq is within the hardware's range. `entries`: the room's sysfs log."""
    out = []
    for entry in entries:
        if not entry["attribute"].endswith("/scaling_max_freq") or entry["machine"] not in hardware:
            continue
        low, high = hardware[entry["machine"]]["mhz"]
        khz = entry["value"].strip()
        if not khz.isdigit() or not low * 1000 <= int(khz) <= high * 1000:
            out.append((entry["machine"], f"e: {entry['attribute']} was written {khz}, the machine can do "
                                          f"{low * 1000} to {high * 1000}"))
    return out


def untouchable_violations(sight, excluded_since, own_node=""):
    """f: nothing is begun on excluded nodes; control-plane nodes and the controller's own are not emptied."""
    out = []
    for name, node in sight.nodes.items():
        operation = operation_of(sight, name)
        if not operation.get("id"):
            continue
        began = seconds_of(operation.get("startedAt"))
        since = excluded_since.get(name)
        if since is not None and began > since + SETTLED and operation.get("kind") not in ("PowerOn", "Release"):
            out.append((name, f"f: operation {operation['kind']} was begun on the excluded node {name}"))
        if operation.get("kind") in ("PowerOff", "Migrate") and (is_control_plane(node) or name == own_node):
            out.append((name, f"f: operation {operation['kind']} was begun on {name}, which stays"))
    return out


def remains_violations(sight, gone):
    """h: of a policy that is gone nothing of ours is left. `gone`: names of policies that were seen once with our
    finalizer and did not exist any more when looking began."""
    out = []
    for name, node in sight.nodes.items():
        memory = sight.machines.get(name, {}).get("status", {}).get("memory") or {}
        if request_note(node).get("policy") in gone:
            out.append((name, f"h: policy {request_note(node)['policy']} is gone, its settings are still on {name}"))
        if memory.get("ownerPolicy") in gone and (memory.get("poweredOffByUs") or memory.get("cordonedByUs")):
            out.append((name, f"h: policy {memory['ownerPolicy']} is gone, but {name} is still switched off or "
                              "cordoned for it"))
    return out
