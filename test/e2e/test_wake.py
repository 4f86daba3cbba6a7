"""Machines that do not wake, and wake tests that people ask for."""


def test_a_machine_that_never_wakes_is_given_up_and_another_one_is_woken(case):
    case.add_machines(3, cpu=4)
    # Either may be woken at once, so it is the first by name.
    case.apply_policy({"powerOn": {"bootTimeout": "8s"}, "powerOff": {"minOffDuration": "0s"}})
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 2, 60, "two to be off")
    dead, other = sorted(m for m in case.machines if case.power(m).get("powerState") == "Off")
    case.site.room.set_faults(dead, wake="dead")
    case.deploy("web", replicas=2, cpu="3")
    case.wait_state(dead, "WakeFailed", seconds=30)
    memory = case.power(dead)["memory"]
    assert memory["failureCount"] == 1 and memory["nextAttempt"] and not memory.get("wakeVerifiedAt")
    case.wait_running("web", 2, seconds=60)
    case.wait_on(other)
    assert dead not in case.where("web")
    case.wait(lambda: "WakeFailed" in case.bed.kubectl("get", "events", "-n", "default", "--field-selector",
                                                       f"involvedObject.name={dead}"), 10, "the event WakeFailed")
    # In quarantine: nothing more is sent to it while its backoff lasts, although it is still ours.
    commands = case.commands(dead)
    case.deploy("more", replicas=1, cpu="3")
    case.wait_reason(dead, "WakeFailed")
    case.stays(lambda: case.commands(dead) == commands, 4, "the failed machine is left alone")
    # Somebody repairs it and presses the button: back into service, but not trusted to wake.
    case.site.room.set_faults(dead, wake="ok")
    case.site.room.power(dead, "On")
    case.wait_on(dead)
    case.wait_running("more", 1)
    assert not case.power(dead)["memory"].get("wakeVerifiedAt")


def test_a_wake_test_is_made_when_somebody_asks_for_it(case):
    first, second = case.add_machines(2)
    case.apply_policy({"powerOff": {"wakeTest": "Manual"}})
    for machine in case.machines:
        case.wait_reason(machine, "WakeNotVerified")
    assert not case.commands(first) and not case.commands(second)
    case.bed.kubectl("annotate", "nodepower", first, "kwatt.dev/wake-test=requested")
    case.wait(lambda: case.commands(first) == ["GracefulShutdown", "On"], 60, "the machine to go off and on")
    case.wait(lambda: case.power(first)["memory"].get("wakeVerifiedAt"), 40, "the result in the status")
    case.wait(lambda: "kwatt.dev/wake-test" not in (case.bed.api.get("NodePower", first)["metadata"].get("annotations")
                                                    or {}), 10, "the annotation to be gone")
    case.wait(lambda: "wake test passed" in case.bed.kubectl("get", "events", "-n", "default", "--field-selector",
                                                             f"involvedObject.name={first}"), 10, "the event")
    assert not case.commands(second)
    # From now on it is switched off like any other, once it has been on for minOnDuration; the other one never.
    case.wait_off(first, seconds=60)
    assert case.commands(first) == ["GracefulShutdown", "On", "GracefulShutdown"] and not case.commands(second)
