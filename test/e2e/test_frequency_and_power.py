"""DVFS and capping: from the decision to the files in the machine's sysfs and back."""

DVFS = {"powerOff": {"enabled": False}, "powerOn": {"enabled": False},
        "dvfs": {"enabled": True, "window": "3s", "lowUtilizationPercent": 30, "highUtilizationPercent": 60}}
CAPPING = {"powerOff": {"enabled": False}, "powerOn": {"enabled": False},
           "capping": {"enabled": True, "window": "3s", "abovePercentOfMax": 90, "capPercentOfMax": 80,
                       "releasePercentOfMax": 70}}
# The curve of the lab's machines: what the policy's percentages are of.
LAB_MODEL = {"idleMilliwatts": 122_000, "maxMilliwatts": 406_000}


def test_dvfs_goes_down_with_the_load_and_up_again(case):
    machine, = case.add_machines(1)
    case.site.room.set_load(machine, 5)
    case.apply_policy(DVFS)
    case.wait(lambda: case.site.governor(machine) == "powersave", 40, "powersave in sysfs")
    case.wait(lambda: case.node(machine)["metadata"]["labels"].get("kwatt.dev/frequency") == "low", 20, "the label")
    annotations = case.node(machine)["metadata"]["annotations"]
    assert annotations["kwatt.dev/governor"] == "powersave"
    report = case.power(machine)["report"]
    assert report["governor"] == "powersave" and report["converged"] is True
    case.site.room.set_load(machine, 90)
    case.wait(lambda: case.site.governor(machine) == "performance", 40, "performance in sysfs")
    case.wait(lambda: case.node(machine)["metadata"]["labels"].get("kwatt.dev/frequency") == "normal", 20, "the label")


def test_a_governor_by_hand_is_applied_reported_and_restored_without_any_policy(case):
    machine, = case.add_machines(1)
    original = case.site.governor(machine)
    case.bed.kubectl("annotate", "node", machine, "kwatt.dev/governor=powersave")
    case.wait(lambda: case.site.governor(machine) == "powersave", 20, "powersave in sysfs")
    case.wait(lambda: case.power(machine).get("report", {}).get("governor") == "powersave", 20, "the report")
    assert case.power(machine)["report"]["original"]["governor"] == original
    case.bed.kubectl("annotate", "node", machine, "kwatt.dev/governor-")
    case.wait(lambda: case.site.governor(machine) == original, 20, "the original governor")


def test_an_unknown_governor_is_refused_with_what_there_is(case):
    machine, = case.add_machines(1)
    before = case.site.governor(machine)
    case.bed.kubectl("annotate", "node", machine, "kwatt.dev/governor=warp")
    case.wait(lambda: case.power(machine).get("report", {}).get("errors"), 20, "the error in the report")
    report = case.power(machine)["report"]
    assert "warp" in report["errors"][0] and "performance" in report["errors"][0]
    assert not report.get("converged")
    assert case.site.governor(machine) == before


def test_a_machine_above_the_threshold_is_capped_and_released(case):
    machine, = case.add_machines(1, model=LAB_MODEL)
    case.site.room.set_load(machine, 100)
    case.apply_policy(CAPPING)
    wanted = 406 * 80 // 100
    case.wait(lambda: case.power(machine).get("report", {}).get("requestedCapWatts") == wanted, 40, f"cap {wanted} W")
    case.site.room.wait_for(machine, lambda m: m["watts"] <= wanted * 1.03, 20)
    case.wait(lambda: case.node(machine)["metadata"]["labels"].get("kwatt.dev/capped") == "true", 20, "the label")
    case.site.room.set_load(machine, 5)
    case.wait(lambda: case.power(machine)["report"].get("requestedCapWatts", 0) == 0, 40, "the cap to be released")
    assert "kwatt.dev/power-cap-watts" not in case.node(machine)["metadata"]["annotations"]


def test_capping_migrates_first(case):
    hot, cool = case.add_machines(2, model=LAB_MODEL)
    case.deploy_on("load", hot, replicas=4, cpu="1500m", pod_annotations={"lab.kwatt.dev/cpu": "2000"})
    case.apply_policy(CAPPING | {"capping": CAPPING["capping"] | {"migration": {"enabled": True, "maxPods": 2}}})
    case.wait(lambda: cool in case.where("load"), 60, "a pod to move away")
    case.wait_running("load", 4)
    assert not case.power(hot)["report"].get("requestedCapWatts")


def test_a_silent_agent_means_that_nothing_is_claimed(case):
    machine, = case.add_machines(1)
    case.wait(lambda: case.power(machine).get("report", {}).get("governor"), 20, "the first report")
    before = case.power(machine)["report"]["governor"]
    case.site.room.signal_agent(machine, "SIGSTOP")
    case.bed.kubectl("annotate", "node", machine, "kwatt.dev/governor=powersave", "kwatt.dev/power-cap-watts=300")
    case.stays(lambda: case.power(machine)["report"]["governor"] == before, 5, "no claim")
    assert not case.power(machine)["report"].get("effectiveCapWatts")
    assert "kwatt.dev/capped" not in case.node(machine)["metadata"]["labels"]
    case.site.room.signal_agent(machine, "SIGCONT")
    case.wait(lambda: case.power(machine)["report"]["governor"] == "powersave", 20, "the agent to catch up")


def test_kill_of_an_agent_that_capped_its_machine_keeps_the_true_original(case):
    machine, = case.add_machines(1)
    limit = "class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
    original = case.site.sysfs(machine, limit)
    case.bed.kubectl("annotate", "node", machine, "kwatt.dev/power-cap-watts=300")
    case.wait(lambda: case.site.sysfs(machine, limit) != original, 20, "the cap in sysfs")
    case.wait(lambda: case.power(machine)["report"].get("effectiveCapWatts"), 20, "the report")
    case.site.room.signal_agent(machine, "SIGKILL")
    case.wait(lambda: case.site.room.machine(machine)["agentPid"], 20, "the agent to be back")
    case.stays(lambda: case.site.sysfs(machine, limit) != original, 3, "the cap")
    case.bed.kubectl("annotate", "node", machine, "kwatt.dev/power-cap-watts-")
    case.wait(lambda: case.site.sysfs(machine, limit) == original, 20, "the original limit")
