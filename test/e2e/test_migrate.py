"""Emptying nodes: FewestPods, BestSaving, and what forbids it."""
from bed import objects

MIGRATE = {"migration": {"enabled": True, "strategy": "FewestPods", "maxNodes": 1, "minSavingScore": 1,
                         "drainTimeout": "20s", "evictionRetry": "1s"},
           "powerOff": {"idleFor": "1s"}}


def spread_over_three(case):
    """Three machines with 3, 2 and 1 pods."""
    machines = case.add_machines(3, cpu=8)
    for count, machine in zip((3, 2, 1), machines):
        case.deploy_on(f"app{count}", machine, replicas=count, cpu="1")
    return machines


def test_fewest_pods_empties_the_node_with_the_fewest_and_switches_it_off(case):
    first, second, third = spread_over_three(case)
    case.apply_policy(MIGRATE)
    case.wait_off(third)
    case.wait_running("app1", 1)
    assert third not in case.where()
    case.wait(lambda: any(m["fromNode"] == third and m.get("boundNode") in (first, second)
                          for m in case.status().get("migrations", [])), 20, "the migration with its bound node")
    migration = next(m for m in case.status()["migrations"] if m["fromNode"] == third)
    assert migration["podName"].startswith("app1-") and migration["namespace"] == case.name
    assert migration["nodeName"] in (first, second)
    assert third in case.status().get("powerOff", []) or case.status()["nodes"]["off"] >= 1


def test_fewest_pods_goes_on_until_nothing_more_fits(case):
    spread_over_three(case)
    case.apply_policy(MIGRATE)
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 2, 80, "two off")
    assert len(case.where()) == 6 and len(set(case.where())) == 1


def test_best_saving_empties_where_it_pays_most(case):
    thrifty = case.add_machines(1, cpu=8, model={"idleMilliwatts": 50_000, "maxMilliwatts": 300_000,
                                                 "bootSeconds": 2, "bootJoules": 1, "shutdownSeconds": 1})[0]
    wasteful = case.add_machines(1, cpu=8, model={"idleMilliwatts": 250_000, "maxMilliwatts": 400_000,
                                                  "bootSeconds": 2, "bootJoules": 1, "shutdownSeconds": 1})[0]
    case.deploy_on("web", thrifty, replicas=1, cpu="1")
    case.deploy_on("api", wasteful, replicas=1, cpu="1")
    case.apply_policy(MIGRATE | {"migration": MIGRATE["migration"] | {"strategy": "BestSaving"}})
    case.wait_off(wasteful)
    case.wait_running("api", 1)
    assert case.where() == [thrifty, thrifty]


def test_a_disruption_budget_blocks_a_drain_and_is_named(case):
    first, second = case.add_machines(2, cpu=8)
    case.deploy_on("big", first, replicas=3, cpu="1")
    case.deploy_on("guarded", second, replicas=1, cpu="1")
    case.bed.kubectl("apply", "-f", "-", input=objects.disruption_budget(
        "guarded", {"app": "guarded"}, min_available=1, namespace=case.name))
    case.apply_policy(MIGRATE)
    case.wait(lambda: case.reason(second) == "PDBBlocked" and "guarded" in case.power(second)["decision"]["message"], 20,
              "PDBBlocked, and by which budget")
    case.stays(lambda: second in case.where("guarded"), 4, "the guarded pod")
    assert case.site.room.machine(second)["state"] == "On"


def test_a_bare_pod_keeps_its_node(case):
    first, second = case.add_machines(2, cpu=8)
    case.deploy_on("big", first, replicas=3, cpu="1")
    case.bed.kubectl("apply", "-f", "-", input=objects.pod("alone", namespace=case.name, node_name=second, cpu="1"))
    case.apply_policy(MIGRATE)
    case.wait_reason(second, "PodNotMovable")
    case.stays(lambda: second in case.where("alone"), 4, "the bare pod")


def test_a_drain_that_takes_too_long_is_undone_and_names_the_pod(case):
    first, second = case.add_machines(2, cpu=8)
    case.deploy_on("big", first, replicas=3, cpu="1")
    case.bed.kubectl("cordon", first)
    slow = objects.deployment("slow", replicas=2, namespace=case.name, cpu="1",
                              node_selector={"case": case.name}) | {"kind": "ReplicaSet"}
    case.bed.kubectl("apply", "-f", "-", input=slow)
    case.wait_running("slow", 2)
    case.bed.kubectl("uncordon", first)
    # The first of the two may go. The second may not before a replacement is ready, and none will be:
    # replacements ask for a node that is not there.
    case.bed.kubectl("patch", "replicaset", "slow", "-n", case.name, "-p",
                     '{"spec":{"template":{"spec":{"nodeSelector":{"case":"nowhere"}}}}}')
    case.bed.kubectl("apply", "-f", "-", input=objects.disruption_budget(
        "slow", {"app": "slow"}, min_available=1, namespace=case.name))
    case.wait(lambda: case.bed.kubectl_json("get", "pdb", "slow", "-n", case.name)["status"].get(
        "disruptionsAllowed") == 1, 20, "one disruption to be allowed")
    case.apply_policy(MIGRATE | {"migration": MIGRATE["migration"] | {"drainTimeout": "5s"}})
    case.wait(lambda: case.power(second).get("operation", {}).get("kind") == "PowerOff", 20, "the drain to begin")
    case.wait(lambda: "DrainTimeout" in case.bed.kubectl(
        "get", "events", "-n", "default", "--field-selector", f"involvedObject.name={second}"), 30, "the timeout")
    case.wait(lambda: not case.node(second)["spec"].get("unschedulable"), 20, "the node to be in service again")
    assert case.commands(second) == []
    left = case.where("slow")
    assert left == [second]
    events = case.bed.kubectl("get", "events", "-n", "default", "--field-selector", f"involvedObject.name={second}")
    assert any(pod["metadata"]["name"] in events for pod in case.pods("slow"))


def test_dvfs_migration_relieves_a_hot_node(case):
    hot, cool = case.add_machines(2, cpu=8)
    case.deploy_on("load", hot, replicas=4, cpu="1500m", pod_annotations={"lab.kwatt.dev/cpu": "1900"})
    case.apply_policy({"powerOff": {"enabled": False}, "powerOn": {"enabled": False},
                       "dvfs": {"enabled": True, "window": "3s", "idleNodes": 1,
                                "migration": {"enabled": True, "abovePercent": 80, "untilPercent": 60, "maxPods": 5}}})
    case.wait(lambda: cool in case.where("load"), 60, "a pod to move to the cool machine")
    case.wait_running("load", 4)
    assert hot in case.where("load")
    case.wait(lambda: any(m["fromNode"] == hot for m in case.status().get("migrations", [])), 20, "the migration")
