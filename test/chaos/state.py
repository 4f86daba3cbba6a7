"""What a site looks like, without what differs from run to run: ids, times, watts."""
import json

from bed.objects import condition, pod_is_running

OURS = "kwatt.dev/"
CAP = "kwatt.dev/power-cap-watts"


def capture(yard, blur=()):
    """The state of everything that kwatt acts on, as plain data that can be compared. `blur` names what differs from
    run to run: "watts" of caps, "decisions" (the last of them), "cycles" of power, "places" of pods."""
    api = yard.api
    policy = api.find("EnergyPolicy", yard.POLICY)
    pods = {}
    for pod in api.list("Pod", yard.NAMESPACE):
        where = pod["spec"].get("nodeName", "") if pod_is_running(pod) else "not running"
        if "places" in blur and where != "not running":
            where = "somewhere"
        app = pods.setdefault(pod["metadata"]["labels"]["app"], {})
        app[where] = app.get(where, 0) + 1
    machines = {name: _machine(yard, name) for name in yard.MACHINES}
    for machine in machines.values():
        if "decisions" in blur or not policy:  # without a policy: how the last one gave the machine back
            del machine["decision"]
        if "watts" in blur and CAP in machine["annotations"]:
            machine["annotations"][CAP] = "some"
        if "cycles" in blur:
            machine["memory"].pop()
    return {**machines, "pods": pods, "policy": _policy(policy) if policy else None}


def _machine(yard, name):
    lab, node = yard.site.room.machine(name), yard.api.get("Node", name)
    status = yard.api.get("NodePower", name).get("status", {})
    memory, decision = status.get("memory", {}), status.get("decision", {})
    meta, spec = node["metadata"], node["spec"]
    suspended = condition(node, "Suspended")
    return {
        "machine": lab["state"],
        "governors": sorted({p["governor"] for p in lab["policies"]}),
        "maxMHz": sorted({p["maxMHz"] for p in lab["policies"]}),
        "capped": lab["capWatts"] is not None or any(p["limitWatts"] < yard.peak[name] for p in lab["packages"]),
        "powerState": status.get("powerState"),
        "operation": status.get("operation", {}).get("kind", ""),
        "decision": [decision.get("desired", ""), decision.get("reason", ""), decision.get("policy", "")],
        "memory": [bool(memory.get("poweredOffByUs")), bool(memory.get("cordonedByUs")),
                   memory.get("ownerPolicy", ""), memory.get("cyclesToday", 0)],
        "cordoned": spec.get("unschedulable", False),
        "taints": sorted(f"{t['key']}:{t['effect']}" for t in spec.get("taints", []) if t["key"].startswith(OURS)),
        "annotations": {key: _annotation(key, value) for key, value in sorted(meta.get("annotations", {}).items())
                        if key.startswith(OURS)},
        "labels": {key: value for key, value in sorted(meta.get("labels", {}).items()) if key.startswith(OURS)},
        "suspended": bool(suspended and suspended["status"] == "True"),
    }


def _annotation(key, value):
    if key != "kwatt.dev/request":
        return value
    note = json.loads(value)
    return {name: sorted(part) if isinstance(part, list) else part for name, part in note.items()
            if name not in ("id", "time")}


def _policy(policy):
    status = policy.get("status", {})
    return {
        "mode": policy["spec"].get("mode"), "suspend": policy["spec"].get("suspend", False),
        "deleting": "deletionTimestamp" in policy["metadata"],
        "finalizers": policy["metadata"].get("finalizers", []),
        "seen": status.get("observedGeneration") == policy["metadata"]["generation"],
        "conditions": {c["type"]: [c["status"], c["reason"]] for c in status.get("conditions", [])},
        "nodes": status.get("nodes", {}),
    }


def difference(wanted, found, path=""):
    """Sentences; empty if they are the same."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        out = []
        for key in sorted({*wanted, *found}, key=str):
            out += difference(wanted.get(key), found.get(key), f"{path}.{key}" if path else str(key))
        return out
    return [] if wanted == found else [f"{path} is {json.dumps(found)}, should be {json.dumps(wanted)}"]
