"""Invariants d, i and j on the wire: what the fault proxy saw of each controller process."""
from e2e.invariants import seconds_of

# What a controller must have listed to the end before it may change anything (j).
CACHES = {"energypolicies", "nodepowers", "nodes", "pods", "poddisruptionbudgets", "persistentvolumeclaims",
          "persistentvolumes", "volumeattachments", "replicasets", "statefulsets"}
OWN_STATUS = {("energypolicies", "status"), ("nodepowers", "status")}


def touches_others(record):
    """Changes something that is not kwatt's own status: a Node, a pod, a policy's finalizers."""
    if not record.counted or (record.plural, record.subresource) in OWN_STATUS:
        return False
    return not (record.plural == "nodepowers" and record.method == "POST")


def takes_effect(record):
    return record.plural == "nodes" or record.subresource == "eviction"


def violations(records, read_only_since=None):
    """`records` from the start of the oldest process on, in order. `read_only_since`: wall time from which on the
    policy only recommends, or is suspended, and the controller has said so."""
    out = []
    leases, listed = {}, {}
    for record in records:
        sender = record.sender
        if record.whole:
            listed.setdefault(sender, set()).add(record.plural)
        if record.plural == "leases" and record.mutating and 200 <= record.status < 300:
            spec = record.body.get("spec", {})
            if spec.get("holderIdentity"):
                leases[sender] = seconds_of(spec["renewTime"]) + spec["leaseDurationSeconds"]
        if not touches_others(record):
            continue
        what = f"{record.method} {record.path} of {sender}"
        if missing := CACHES - listed.get(sender, set()):
            out.append(f"j: {what} before {', '.join(sorted(missing))} were listed to the end")
        if takes_effect(record) and record.time > leases.get(sender, 0):
            late = f"{record.time - leases[sender]:.2f} s after its lease had expired" if sender in leases else \
                "although it never had the lease"
            out.append(f"d: {what} {late}")
        if read_only_since is not None and record.time > read_only_since:
            out.append(f"i: {what}, although its policy changes nothing but status")
    return out
