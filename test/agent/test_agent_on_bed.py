"""The real kwatt-agent against a real API server and the lab's simulated machines, driven by kubectl alone."""
import json
import os
import subprocess
import time
import urllib.request
from datetime import datetime, timezone

import pytest
from agent_machine import AgentMachine
from bed.process import PortReservation
from lab.site import NAMESPACE, program

pytestmark = [pytest.mark.xdist_group("agent"), pytest.mark.long(120)]
POLICY0 = "devices/system/cpu/cpufreq/policy0"
LIMIT0 = "class/powercap/intel-rapl:0/constraint_0_power_limit_uw"


class Machine(AgentMachine):
    """A machine of the lab."""

    def __init__(self, site, **fields):
        super().__init__(site, "agent")
        fields.setdefault("bmc", "lab")
        site.add_machine(self.name, cpu=4, wait=False, **fields)
        directory = site.directory / "room" / self.name
        self.prepare(directory, directory / "sys", directory / "proc")

    def sysfs(self, attribute):
        return self.site.sysfs(self.name, attribute)

    @property
    def governor(self):
        return self.sysfs(f"{POLICY0}/scaling_governor")


@pytest.fixture
def make_machine(site):
    machines = []

    def make(**fields):
        machines.append(Machine(site, **fields))
        return machines[-1]

    yield make
    for machine in machines:
        machine.clean_up()


@pytest.fixture
def machine(make_machine):
    return make_machine()


def test_an_annotation_by_hand_is_applied_reported_and_its_removal_restores(machine):
    original = machine.governor
    machine.start_agent()
    machine.wait_report("the first report", governor=original, converged=True)
    first = machine.report()
    assert first["availableGovernors"] and first["hardwareMaxMHz"] == 3200 and first["agentVersion"]
    machine.annotate(governor="powersave", request=json.dumps({"id": "r-1", "time": "2026-01-01T00:00:00Z",
                                                               "policy": "p", "keys": ["governor"]}))
    machine.wait_report("powersave to be reported", governor="powersave", appliedRequest="r-1", converged=True)
    assert machine.governor == "powersave"
    assert machine.report()["original"]["governor"] == original
    machine.annotate(governor=None, request=None)
    machine.wait_report("the original to be reported", governor=original, appliedRequest="")
    assert machine.governor == original


def test_frequency_and_cap_are_applied_and_restored(machine):
    frequency, limit = machine.sysfs(f"{POLICY0}/scaling_max_freq"), machine.sysfs(LIMIT0)
    machine.start_agent()
    machine.wait(lambda: machine.report().get("capMinWatts"), "the range of caps")
    cap = (machine.report()["capMinWatts"] + machine.report()["capMaxWatts"]) // 2
    machine.annotate(max_frequency_mhz=1600, power_cap_watts=cap)
    machine.wait_report("cap and frequency", maxMHz=1600, requestedCapWatts=cap, effectiveCapWatts=cap,
                        converged=True)
    assert machine.sysfs(f"{POLICY0}/scaling_max_freq") == "1600000"
    assert int(machine.sysfs(LIMIT0)) < int(limit)
    machine.annotate(max_frequency_mhz=None, power_cap_watts=None)
    machine.wait(lambda: machine.sysfs(LIMIT0) == limit and
                 machine.sysfs(f"{POLICY0}/scaling_max_freq") == frequency, "the originals")
    machine.wait_report("no cap", requestedCapWatts=0, effectiveCapWatts=0, converged=True)


def test_a_preference_is_applied_on_drivers_that_have_it(make_machine):
    machine = make_machine(driver="intel_pstate")
    machine.start_agent()
    original = machine.sysfs(f"{POLICY0}/energy_performance_preference")
    machine.annotate(epp="power")
    machine.wait(lambda: machine.sysfs(f"{POLICY0}/energy_performance_preference") == "power", "the preference")
    machine.annotate(epp=None)
    machine.wait(lambda: machine.sysfs(f"{POLICY0}/energy_performance_preference") == original, "the original")


def test_what_the_hardware_cannot_do_is_refused_with_a_sentence(machine):
    limit, frequency = machine.sysfs(LIMIT0), machine.sysfs(f"{POLICY0}/scaling_max_freq")
    machine.start_agent()
    machine.wait_report("the first report", converged=True)
    machine.annotate(governor="turbo", max_frequency_mhz=9000, power_cap_watts=1)
    machine.wait(lambda: len(machine.report().get("errors", [])) == 3, "three refusals")
    errors = " ".join(machine.report()["errors"])
    assert "governor turbo is not offered" in errors and "800 to 3200 MHz" in errors and "power cap 1 W" in errors
    assert not machine.report().get("converged")
    assert machine.sysfs(LIMIT0) == limit and machine.sysfs(f"{POLICY0}/scaling_max_freq") == frequency


def test_a_kill_in_the_middle_does_not_lose_the_true_original(machine):
    governor, limit = machine.governor, machine.sysfs(LIMIT0)
    machine.start_agent()
    machine.wait(lambda: machine.report().get("capMinWatts"), "the range of caps")
    cap = (machine.report()["capMinWatts"] + machine.report()["capMaxWatts"]) // 2
    machine.annotate(governor="powersave", power_cap_watts=cap)
    machine.wait_report("cap and governor", effectiveCapWatts=cap, governor="powersave", converged=True)
    stored = machine.report()["original"]
    machine.agent.stop(grace=0)  # SIGKILL
    assert machine.governor == "powersave"
    machine.start_agent()
    machine.wait(lambda: "starting" in machine.agent.log_tail(1000), "the second life")
    time.sleep(1)
    assert machine.governor == "powersave" and int(machine.sysfs(LIMIT0)) < int(limit)
    machine.annotate(governor=None, power_cap_watts=None)
    machine.wait(lambda: machine.governor == governor and machine.sysfs(LIMIT0) == limit, "the true original")
    machine.wait_report("the end", governor=governor, converged=True)
    assert machine.report()["original"]["governor"] == stored["governor"]
    assert machine.report()["original"]["capWatts"] == stored["capWatts"]


def test_annotations_removed_while_the_agent_was_dead_are_restored_at_its_start(machine):
    governor = machine.governor
    machine.start_agent()
    machine.annotate(governor="powersave")
    machine.wait_report("powersave", governor="powersave", converged=True)
    machine.agent.stop(grace=0)
    machine.annotate(governor=None)
    machine.start_agent()
    machine.wait(lambda: machine.governor == governor, "the original")


def test_what_people_set_while_nothing_is_asked_stays(machine):
    machine.start_agent()
    machine.wait_report("the first report", converged=True)
    (machine.sys / POLICY0 / "scaling_governor").write_text("conservative\n")
    time.sleep(3)
    assert machine.governor == "conservative"
    machine.annotate(governor="powersave")
    machine.wait(lambda: machine.governor == "powersave", "powersave")
    machine.annotate(governor=None)
    machine.wait(lambda: machine.governor == "conservative", "what people had set")


def test_drift_is_corrected(machine):
    machine.start_agent()
    machine.annotate(governor="powersave")
    machine.wait_report("powersave", governor="powersave", converged=True)
    (machine.sys / POLICY0 / "scaling_governor").write_text("performance\n")
    machine.wait(lambda: machine.governor == "powersave", "powersave again")


def test_sigterm_restores_and_ends_in_order(machine):
    governor, limit = machine.governor, machine.sysfs(LIMIT0)
    machine.start_agent()
    machine.wait(lambda: machine.report().get("capMinWatts"), "the range of caps")
    machine.annotate(governor="powersave", power_cap_watts=machine.report()["capMinWatts"] + 20)
    machine.wait_report("cap and governor", governor="powersave", converged=True)
    assert machine.terminate() == 0, machine.agent.log_tail()
    assert machine.governor == governor and machine.sysfs(LIMIT0) == limit
    assert machine.report()["governor"] == governor


def test_without_a_sign_of_life_the_originals_come_back_and_with_it_they_go_again(machine):
    governor = machine.governor
    machine.start_agent("--restore-after", "3s")
    machine.annotate(governor="powersave")
    machine.wait_report("powersave", governor="powersave", converged=True)
    time.sleep(4)
    assert machine.governor == "powersave"  # pushes are answered
    machine.ingest.alive = False
    machine.wait(lambda: machine.governor == governor, "the original")
    machine.wait(lambda: any("no sign of life" in e for e in machine.report().get("errors", [])), "the reason")
    assert not machine.report().get("converged")
    machine.ingest.alive = True
    machine.wait(lambda: machine.governor == "powersave", "powersave again")


def test_a_lease_that_is_renewed_is_a_sign_of_life_too(machine):
    def renew_time():
        return {"spec": {"renewTime": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}

    api = machine.bed.api
    api.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "kwatt-controller", "namespace": NAMESPACE},
                "spec": {"holderIdentity": "test", "leaseDurationSeconds": 15, **renew_time()["spec"]}})
    try:
        machine.ingest.alive = False
        machine.start_agent("--restore-after", "6s")
        machine.annotate(governor="powersave")
        machine.wait(lambda: machine.governor == "powersave", "powersave")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            api.patch("Lease", "kwatt-controller", renew_time(), NAMESPACE)
            time.sleep(0.3)
            assert machine.governor == "powersave", machine.agent.log_tail()
        machine.wait(lambda: machine.governor != "powersave", "the original, once nobody renews", seconds=30)
    finally:
        api.delete("Lease", "kwatt-controller", NAMESPACE)


def test_a_cap_that_belongs_to_a_budget_outlives_controller_and_agent(machine):
    machine.start_agent("--restore-after", "2s")
    machine.wait(lambda: machine.report().get("capMinWatts"), "the range of caps")
    limit = machine.sysfs(LIMIT0)
    machine.annotate(governor="powersave", power_cap_watts=machine.report()["capMinWatts"] + 20,
                     request=json.dumps({"id": "r-2", "keepCap": True}))
    machine.wait_report("cap and governor", governor="powersave", converged=True)
    machine.ingest.alive = False
    machine.wait(lambda: machine.governor != "powersave", "the original governor")
    assert int(machine.sysfs(LIMIT0)) < int(limit)
    machine.agent.stop(grace=5)
    assert int(machine.sysfs(LIMIT0)) < int(limit)
    machine.annotate(governor=None, power_cap_watts=None, request=None)
    machine.start_agent()
    machine.wait(lambda: machine.sysfs(LIMIT0) == limit, "the original limit, once nobody asks for a cap")


def test_nothing_is_written_before_there_is_a_nodepower_to_keep_the_original(make_machine):
    machine = make_machine(bmc=None)
    original = machine.governor
    machine.start_agent()
    machine.annotate(governor="powersave")
    machine.wait(lambda: "no NodePower" in machine.agent.log_tail(1000), "the complaint")
    time.sleep(1)
    assert machine.governor == original
    machine.bed.kubectl("apply", "-f", "-", input={"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower",
                                                   "metadata": {"name": machine.name}, "spec": {}})
    machine.wait(lambda: machine.governor == "powersave", "powersave", seconds=25)
    machine.wait(lambda: machine.report().get("original", {}).get("governor") == original, "the original")


def test_samples_are_pushed_with_the_token_which_is_read_again(machine):
    machine.site.room.set_load(machine.name, 50)
    machine.start_agent()
    machine.wait(lambda: len(machine.ingest.samples()) >= 8, "samples")
    sample = machine.ingest.samples()[-1]
    assert sample["source"] == "hwmon" and 10_000 < sample["milliwatts"] < 1_000_000
    assert 300 < sample["cpuBusyPermille"] <= 1000 and sample["mhz"] > 0
    assert machine.ingest.tokens[-1] == "Bearer push-token-1"
    assert machine.ingest.batches[-1]["node"] == machine.name
    (machine.folder / "push.token").write_text("push-token-2\n")
    machine.wait(lambda: machine.ingest.tokens[-1] == "Bearer push-token-2", "the new token")


def test_samples_that_could_not_be_pushed_follow_later(machine):
    machine.ingest.alive = False
    machine.start_agent()
    machine.wait_report("the first report", converged=True)
    time.sleep(2)
    machine.ingest.alive = True
    machine.wait(lambda: machine.ingest.batches, "the push")
    assert len(machine.ingest.batches[0]["samples"]) >= 6


def test_readings_alone_do_not_write_to_the_api_server(machine):
    machine.start_agent()
    machine.wait_report("the first report", converged=True)
    version = machine.bed.api.get("NodePower", machine.name)["metadata"]["resourceVersion"]
    machine.site.room.set_load(machine.name, 80)
    time.sleep(4)
    assert machine.bed.api.get("NodePower", machine.name)["metadata"]["resourceVersion"] == version


def test_a_locked_limit_is_not_reported_as_applied(machine):
    machine.site.room.set_faults(machine.name, capLocked=True)
    machine.start_agent()
    machine.wait(lambda: machine.report().get("capMinWatts"), "the range of caps")
    cap = machine.report()["capMinWatts"] + 20
    machine.annotate(power_cap_watts=cap)
    machine.wait(lambda: machine.report().get("requestedCapWatts") == cap and
                 machine.report().get("effectiveCapWatts") != cap and not machine.report().get("converged"),
                 "requested but not effective")


def test_an_api_server_that_goes_away_leaves_the_settings_alone(machine):
    machine.start_agent()
    machine.annotate(governor="powersave")
    machine.wait_report("powersave", governor="powersave", converged=True)
    machine.bed.stop_apiserver()
    time.sleep(2)
    assert machine.governor == "powersave" and machine.agent.running()
    machine.bed.start_apiserver()
    machine.annotate(governor="performance")
    machine.wait(lambda: machine.governor == "performance", "performance after the restart", seconds=40)


def test_health_metrics_and_a_push_on_demand(machine):
    reservation = PortReservation()
    base = f"http://127.0.0.1:{reservation.port}"

    def get(path):
        with urllib.request.urlopen(base + path, timeout=5) as reply:
            return reply.read().decode()

    try:
        machine.start_agent("--health-address", f"127.0.0.1:{reservation.port}", push_interval="10m")
        machine.wait_report("the first report", converged=True)
        assert get("/healthz") == "ok\n"
        assert "kwatt_agent_report_writes_total" in get("/metrics")
        assert "kwatt_agent_power_watts" in get("/metrics")
        get("/forward-metrics")
        machine.wait(lambda: machine.ingest.samples(), "the push that was asked for")
    finally:
        reservation.release()


def test_the_agent_is_small(machine):
    if b"__asan_init" in program("kwatt-agent").read_bytes():
        pytest.skip("memory of a program under AddressSanitizer says nothing")
    machine.start_agent()
    machine.annotate(governor="powersave")
    machine.wait_report("powersave", governor="powersave", converged=True)
    time.sleep(3)
    resident = machine.agent.resident_bytes() / 2**20
    print(f"\nkwatt-agent: {resident:.1f} MiB resident ({os.environ.get('KWATT_PRESET', 'dev')})")
    assert resident < 40  # of a debug build; the figure of the release build is in ./dev bench


def test_a_wrong_command_line_is_explained():
    done = subprocess.run([program("kwatt-agent"), "--node-name", "x", "--restore-after", "5"], capture_output=True,
                          text=True, timeout=30)
    assert done.returncode == 2 and "not a duration such as 10m" in done.stdout + done.stderr
