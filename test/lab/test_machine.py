"""Machines in virtual time: now is passed in, so nothing waits."""

import pytest

from lab.faults import Faults
from lab.machine import Machine
from lab.spec import MachineSpec

BOOT, SHUTDOWN = 60.0, 10.0


def machine(time_scale=1.0, faults=None, **fields):
    m = Machine(MachineSpec("node1", base_load_percent=0, **fields), 0.0, time_scale)
    m.states = [m.state]
    m.on_state = lambda _, old, new: m.states.append(new)
    if faults:
        m.set_faults(Faults(**faults), 0.0)
    return m


def brought_to(state):
    m = machine(initial_state="On" if state in ("On", "PoweringOff") else "Off")
    if state == "PoweringOn":
        m.reset("On", 0)
    if state == "PoweringOff":
        m.reset("GracefulShutdown", 0)
    assert m.state == state
    return m


COMMANDS = [
    # state, command, status, state right after
    ("Off", "On", 202, "PoweringOn"),
    ("Off", "GracefulShutdown", 200, "Off"),
    ("Off", "ForceOff", 200, "Off"),
    ("PoweringOn", "On", 200, "PoweringOn"),
    ("PoweringOn", "GracefulShutdown", 409, "PoweringOn"),
    ("PoweringOn", "ForceOff", 202, "Off"),
    ("On", "On", 200, "On"),
    ("On", "GracefulShutdown", 202, "PoweringOff"),
    ("On", "ForceOff", 202, "Off"),
    ("PoweringOff", "On", 409, "PoweringOff"),
    ("PoweringOff", "GracefulShutdown", 200, "PoweringOff"),
    ("PoweringOff", "ForceOff", 202, "Off"),
]


@pytest.mark.parametrize("state, command, status, after", COMMANDS)
def test_a_command_is_taken_as_the_readme_says(state, command, status, after):
    m = brought_to(state)
    assert m.would(command).status == status
    assert m.reset(command, 0).status == status
    assert m.state == after


def test_an_unknown_command_is_refused():
    with pytest.raises(ValueError, match="PowerCycle"):
        machine().reset("PowerCycle", 0)


def test_boot_and_shutdown_take_their_scaled_time():
    m = machine(time_scale=10)
    m.reset("GracefulShutdown", 0)
    m.advance(0.99)
    assert m.state == "PoweringOff"
    m.advance(1.0)
    assert m.state == "Off"
    m.reset("On", 1.0)
    m.advance(6.99)
    assert m.state == "PoweringOn"
    m.advance(7.0)
    assert m.states == ["On", "PoweringOff", "Off", "PoweringOn", "On"]


def test_each_boot_has_another_boot_id_and_none_while_not_on():
    m = machine()
    first = m.boot_id
    m.reset("ForceOff", 0)
    assert m.boot_id == ""
    m.reset("On", 0)
    assert m.boot_id == ""
    m.advance(BOOT)
    assert m.boot_id and m.boot_id != first and m.boots == 2


def test_energy_is_exact_over_transitions_however_seldom_it_is_asked_for():
    m = machine()
    m.reset("GracefulShutdown", 100)
    m.reset("On", 200)
    m.advance(1000)  # one step over the end of the boot
    on = 122 * (100 + 1000 - 200 - BOOT)
    assert m.joules == pytest.approx({"On": on, "PoweringOff": 182 * SHUTDOWN, "Off": 5 * (100 - SHUTDOWN),
                                      "PoweringOn": 232 * BOOT})
    assert m.total_joules == pytest.approx(sum(m.joules.values()))


def test_a_machine_that_draws_nothing_when_off_has_zero_watts():
    assert machine(initial_state="Off", standby_watts=0).watts == 0


def test_load_comes_from_base_and_pods():
    m = machine(cpus=16)
    m.set_load(10, 0)
    m.set_pod_millicores(4000, 0)
    assert m.demand == pytest.approx(0.35)


def test_settings_and_counters_start_anew_at_a_boot_but_the_bmc_cap_stays():
    m = machine()
    m.settings.policies[0].governor = "powersave"
    m.set_wall_cap(200, 0)
    m.advance(50)
    m.reset("ForceOff", 50)
    m.reset("On", 50)
    m.advance(50 + BOOT)
    assert m.settings.policies[0].governor == "schedutil"
    assert m.counters.up_seconds == 0
    assert m.wall_cap == 200


@pytest.mark.parametrize("watts", [1, 10_000, float("nan"), float("inf")])
def test_a_cap_out_of_range_is_refused_not_clamped(watts):
    m = machine()
    with pytest.raises(ValueError, match="outside"):
        m.set_wall_cap(watts, 0)
    assert m.wall_cap is None


def test_a_wake_fault_keeps_the_machine_from_ever_being_on():
    for fault, state in (("stuck", "PoweringOn"), ("dead", "Off")):
        m = machine(initial_state="Off", faults={"wake": fault})
        assert m.reset("On", 0).status == 202
        m.advance(100 * BOOT)
        assert m.state == state, fault


def test_a_shutdown_fault_needs_a_force_off():
    for fault, state in (("hang", "PoweringOff"), ("ignored", "On")):
        m = machine(faults={"shutdown": fault})
        assert m.reset("GracefulShutdown", 0).status == 202
        m.advance(100 * SHUTDOWN)
        assert m.state == state, fault
        m.reset("ForceOff", 100 * SHUTDOWN)
        assert m.state == "Off", fault


BAD_SPECS = [
    {"name": "Not_A_Node"}, {"driver": "p4-clockmod"}, {"governor": "turbo"}, {"cpus": 0}, {"packages": 5},
    {"min_mhz": 3200}, {"initial_state": "PoweringOn"}, {"boot_seconds": -1}, {"max_energy_range_uj": 5},
    {"driver": "intel_pstate", "governor": "schedutil"},
]


@pytest.mark.parametrize("fields", BAD_SPECS, ids=str)
def test_a_machine_that_cannot_be_is_refused(fields):
    with pytest.raises(ValueError):
        MachineSpec(**{"name": "node1", **fields})
