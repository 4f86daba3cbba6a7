"""Guards over single nodes and over pods. Every machine here is idle, or easily emptied, and held by one
guard; one machine without any goes at once, and each of the others as soon as its guard is lifted: so it
was the guard that held it."""
import datetime

from bed import objects

MIGRATE = {"powerOff": {"minAwake": 0, "idleFor": "1s"},
           "migration": {"enabled": True, "strategy": "FewestPods", "maxNodes": 50, "minSavingScore": 1, "utilizationBelowPercent": 80,
                         "drainTimeout": "20s", "evictionRetry": "1s"}}
EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def now(**offset):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**offset)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def remember(case, machine, **memory):
    """What NodePower remembers of the past, as if it had been so."""
    case.bed.api.patch("NodePower", machine, {"status": {"memory": memory}}, subresource="status")


def kubectl(case, *arguments):
    case.bed.kubectl(*arguments)


def node_guards(case):
    """name → (reason, how the machine is made, what puts the guard on, what lifts it)."""
    def annotate(key, value=None):
        pair = f"{key}-" if value is None else f"{key}={value}"
        return lambda m: kubectl(case, "annotate", "node", m, pair, "--overwrite")

    def label(key, value=None):
        pair = f"{key}-" if value is None else f"{key}={value}"
        return lambda m: kubectl(case, "label", "node", m, pair, "--overwrite")

    def annotated(reason, key, value="true"):
        return reason, {"annotations": {key: value}}, None, annotate(key)

    def nothing(_):
        pass

    model = {"idleMilliwatts": 100_000, "maxMilliwatts": 300_000, "bootSeconds": 2, "shutdownSeconds": 1}
    day = now()[:10]
    return {
        "excluded": annotated("Excluded", "kwatt.dev/exclude"),
        "control plane": ("ControlPlane", {"labels": {"node-role.kubernetes.io/control-plane": ""}}, None,
                          label("node-role.kubernetes.io/control-plane")),
        "held on": ("Manual", {"annotations": {"kwatt.dev/override": "on,until=2099-01-01T00:00:00Z"}}, None,
                    annotate("kwatt.dev/override", "on,until=2020-01-01T00:00:00Z")),
        "held by nonsense": annotated("Manual", "kwatt.dev/override", "please"),
        "vetoed": annotated("DoNotDisrupt", "karpenter.sh/do-not-disrupt"),
        "scale-down disabled": annotated("ForeignOwner", "cluster-autoscaler.kubernetes.io/scale-down-disabled"),
        "being deleted by cluster-autoscaler": (
            "ForeignOwner", {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}, None,
            lambda m: kubectl(case, "taint", "node", m, "ToBeDeletedByClusterAutoscaler-")),
        "Karpenter's": ("ForeignOwner", {"labels": {"karpenter.sh/nodepool": "spot"}}, None,
                        annotate("kwatt.dev/released-by", "karpenter")),
        "Cluster API's": ("ForeignOwner", {"annotations": {"cluster.x-k8s.io/machine": "m-1"}}, None,
                          annotate("kwatt.dev/released-by", "cluster-api")),
        "cordoned": ("ForeignOwner", {}, lambda m: kubectl(case, "cordon", m),
                     lambda m: kubectl(case, "uncordon", m)),
        "woken a moment ago": ("CoolDown", {}, lambda m: remember(case, m, coolDownUntil=now(minutes=10)),
                               lambda m: remember(case, m, coolDownUntil=now(minutes=-1))),
        "on for a short time": ("MinOnTime", {}, lambda m: remember(case, m, lastOn=now()),
                                lambda m: remember(case, m, lastOn=now(minutes=-20))),
        "switched often": ("CycleLimit", {}, lambda m: remember(case, m, cyclesToday=100, cyclesDay=day),
                           lambda m: remember(case, m, cyclesToday=1, cyclesDay=day)),
        "dear to boot": ("NotWorthIt", {"model": {**model, "bootJoules": 100_000_000}}, None,
                         lambda m: case.bed.api.patch("NodePower", m, {"spec": {"model": {"bootJoules": 1}}})),
        "without any": (None, {}, nothing, nothing),
    }


def rows(case):
    """The table of `kubectl get npw` as people see it: by name, column by column."""
    lines = case.bed.kubectl("get", "npw").splitlines()
    header, *body = lines
    starts = [header.index(word) for word in header.split()]
    ends = [*starts[1:], None]
    cells = [[line[a:b].strip() for a, b in zip(starts, ends)] for line in body]
    return {row[0]: dict(zip(header.split(), row)) for row in cells}


def test_each_guard_of_a_node_holds_it_until_it_is_lifted(case):
    guards = node_guards(case)
    *machines, apart = case.add_each(*(fields for _, fields, _, _ in guards.values()), {"labels": {"apart": "yes"}})
    names = dict(zip(guards, machines))
    for machine in case.machines:
        case.bed.wait_node_ready(machine)
        # Its agent has reported: the NodePower and its status are there.
        case.wait(lambda m=machine: case.power(m).get("report", {}).get("governor"), 40, f"a report of {machine}")
    for guard, (_, _, put_on, _) in guards.items():
        if put_on:
            put_on(names[guard])
    case.apply_policy({"powerOff": {"minAwake": 0, "minOnDuration": "10m"},
                       "nodeSelector": {"matchExpressions": [{"key": "apart", "operator": "DoesNotExist"}]}})
    held = [guard for guard in guards if guards[guard][0]]
    for guard in held:
        case.wait_reason(names[guard], guards[guard][0])
    case.wait_off(names["without any"])
    case.wait_reason(apart, "NotSelected")
    for guard in held:
        assert case.site.room.machine(names[guard])["state"] == "On", guard
        assert case.commands(names[guard]) == [], guard
        assert case.reason(names[guard]) == guards[guard][0], guard
    # Nobody has to guess: every row has a decision and a reason, and the odd value is told by an event.
    table = rows(case)
    for machine in case.machines:
        assert table[machine]["REASON"] and table[machine]["DECISION"] in ("Keep", "On", "Off"), table[machine]
    odd = names["held by nonsense"]
    assert "is not understood" in case.power(odd)["decision"]["message"]
    case.wait(lambda: "is not understood" in case.bed.kubectl(
        "get", "events", "-n", "default", "--field-selector", f"involvedObject.name={odd}"), 20, "an event")
    for guard in held:
        guards[guard][3](names[guard])
    for guard in held:
        case.wait_off(names[guard], seconds=60)
    assert case.commands(apart) == []


def near(machine):
    """Rather on this machine, but able to leave it."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [machine]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}}


def test_each_guard_of_a_pod_keeps_its_node_until_it_is_lifted(case):
    guards = {"bare": "PodNotMovable", "disk": "LocalStorage", "system": "PodNotMovable", "evict": "DoNotDisrupt",
              "karpenter": "DoNotDisrupt", "ours": "DoNotDisrupt", "descheduler": "DoNotDisrupt",
              "budget": "PDBBlocked", "few": "PodNotMovable", "free": None}
    sink, *guarded = case.add_each({"cpu": 32, "memory": "64Gi"}, *(
        {"cpu": 4, "labels": {"group": "few" if guard == "few" else "many"}} for guard in guards))
    machines = dict(zip(guards, guarded))
    system = f"{case.name}-system"
    vetoes = {"evict": (EVICT, "false"), "karpenter": ("karpenter.sh/do-not-disrupt", "true"),
              "ours": ("kwatt.dev/do-not-disrupt", "true"),
              "descheduler": ("descheduler.alpha.kubernetes.io/prefer-no-eviction", "true")}
    for machine in case.machines:
        case.bed.wait_node_ready(machine)

    def pod_of(guard):
        namespace, app = ("kube-system", system) if guard == "system" else (case.name, guard)
        found = [p for p in case.bed.api.list("Pod", namespace) if p["metadata"].get("labels", {}).get("app") == app
                 and objects.pod_is_running(p)]
        return found[0] if found else None

    def annotate(guard, pair):
        pod = pod_of(guard)
        case.bed.kubectl("annotate", "pod", "-n", pod["metadata"]["namespace"], pod["metadata"]["name"], pair,
                         "--overwrite")

    try:
        for guard, machine in machines.items():
            spec = {"cpu": "1", "affinity": near(machine), "node_selector": {"case": case.name}}
            if guard == "bare":
                body = objects.pod(guard, namespace=case.name, **spec)
            elif guard == "system":
                body = objects.deployment(system, namespace="kube-system", **spec)
            else:
                extra = {"pod_annotations": dict([vetoes[guard]])} if guard in vetoes else {}
                if guard == "disk":
                    extra["volumes"] = [{"name": "scratch", "emptyDir": {}}]
                body = objects.deployment(guard, namespace=case.name, **spec, **extra)
            case.bed.kubectl("apply", "-f", "-", input=body)
        case.bed.kubectl("apply", "-f", "-", input=objects.disruption_budget(
            "budget", {"app": "budget"}, min_available=1, namespace=case.name))
        for guard, machine in machines.items():
            case.wait(lambda g=guard: pod_of(g), 40, f"the pod {guard} to run")
            assert pod_of(guard)["spec"]["nodeName"] == machine
        case.apply_policy(MIGRATE | {"nodeSelector": {"matchLabels": {"group": "many"}}})
        case.apply_policy(MIGRATE | {"nodeSelector": {"matchLabels": {"group": "few"}},
                                     "disruption": {"minReplicas": 2}}, name=f"{case.name}-few")
        held = [guard for guard in guards if guards[guard]]
        for guard in held:
            case.wait_reason(machines[guard], guards[guard])
        case.wait_off(machines["free"])
        case.wait(lambda: pod_of("free"), 20, "the free pod's replacement")
        for guard in held:
            assert pod_of(guard)["spec"]["nodeName"] == machines[guard], guard
            assert case.commands(machines[guard]) == [], guard
        annotate("bare", f"{EVICT}=true")
        annotate("disk", f"{EVICT}=true")
        for guard, (key, _) in vetoes.items():
            annotate(guard, f"{key}-")
        case.bed.kubectl("apply", "-f", "-", input=objects.disruption_budget(
            system, {"app": system}, max_unavailable=1, namespace="kube-system"))
        case.bed.kubectl("delete", "pdb", "budget", "-n", case.name)
        case.bed.kubectl("scale", "deployment", "few", "-n", case.name, "--replicas=2")
        for guard in held:
            case.wait_off(machines[guard], seconds=60)
        assert case.commands(sink) == []
    finally:
        case.bed.kubectl("delete", "deployment,pdb", system, "-n", "kube-system", "--ignore-not-found",
                         "--wait=false")
