"""The real kwatt-agent on a mounted /sys that answers as the kernel does, with a real API server."""
import json
import subprocess
import threading
import time

import pytest
from agent_machine import AgentMachine
from bed import objects
from kernel_sysfs import CPU, KernelSysfs, missing, policy, zone

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing() or "-"), pytest.mark.xdist_group("agent")]
LIMIT0 = zone("intel-rapl:0", "constraint_0_power_limit_uw")
GOVERNOR0 = policy(0, "scaling_governor")


class Machine(AgentMachine):
    """A Node that is no machine of the lab, with a mounted /sys."""

    def __init__(self, site, folder, **options):
        super().__init__(site, "sysfs")
        self.kernel = KernelSysfs(folder, **options)
        self.bed.api.create(objects.node(self.name, cpu="4"))
        self.bed.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower",
                             "metadata": {"name": self.name}, "spec": {}})
        self.prepare(folder, self.kernel.sys, self.kernel.proc)

    def errors(self):
        return "\n".join(self.report().get("errors", []))

    def clean_up(self):
        try:
            super().clean_up()
        finally:
            self.kernel.stop()


@pytest.fixture
def make_machine(site, tmp_path):
    machines = []

    def make(**options):
        folder = tmp_path / str(len(machines))
        folder.mkdir()
        machines.append(Machine(site, folder, **options))
        return machines[-1]

    yield make
    for machine in machines:
        machine.clean_up()


# What becomes of 1500 MHz: acpi-cpufreq has steps.
DRIVERS = {"acpi-cpufreq": 1400, "intel_pstate": 1500, "intel_cpufreq": 1500, "amd-pstate": 1500,
           "amd-pstate-epp": 1500}


@pytest.mark.parametrize("driver", DRIVERS)
def test_all_settings_reach_the_kernel_by_one_store_each_and_all_come_back(make_machine, driver):
    machine = make_machine(driver=driver, packages=2, mmio=1, uncore=1)
    kernel, before = machine.kernel, machine.kernel.settings()
    machine.start_agent()
    machine.wait_report("the first report", converged=True)
    wish = {"governor": "powersave", "max_frequency_mhz": 1500, "power_cap_watts": 200, "max_uncore_mhz": 1650}
    if policy(0, "energy_performance_preference") in before:
        wish["epp"] = "power"
    machine.annotate(**wish)
    machine.wait_report("all of it", governor="powersave", maxMHz=DRIVERS[driver], requestedCapWatts=200,
                        effectiveCapWatts=200, maxUncoreMHz=1600, converged=True)
    stores = kernel.stores()
    assert all(error == 0 for _, _, _, error in stores), stores
    assert len({path for _, path, _, _ in stores}) == len(stores), stores
    assert not [path for _, path, _, _ in stores if "mmio" in path]
    if "epp" in wish:
        assert kernel.read(policy(3, "energy_performance_preference")) == "power"
    time.sleep(2.5)
    assert len(kernel.stores()) == len(stores)
    machine.annotate(**{key: None for key in wish})
    machine.wait(lambda: kernel.settings() == before, "every setting as it was")


def test_sigterm_and_the_command_restore_give_everything_back(make_machine):
    machine = make_machine(driver="intel_pstate", packages=2)
    before = machine.kernel.settings()

    def hold():
        machine.start_agent()
        machine.annotate(governor="performance", max_frequency_mhz=2000, power_cap_watts=180,
                         request=json.dumps({"id": "r-1", "keepCap": True}))
        machine.wait_report("all of it", governor="performance", maxMHz=2000, effectiveCapWatts=180, converged=True)

    hold()
    assert machine.terminate() == 0, machine.agent.log_tail()
    left = {path for path, value in machine.kernel.settings().items() if value != before[path]}
    assert left and all("constraint_0_power_limit_uw" in path for path in left), left  # the cap outlives the agent
    hold()
    machine.agent.stop(grace=0)  # SIGKILL: everything is still set
    done = subprocess.run(machine.command("restore"), capture_output=True, text=True, timeout=40)
    assert done.returncode == 0 and "settings restored" in done.stdout + done.stderr, done.stdout + done.stderr
    assert machine.kernel.settings() == before  # for uninstalling: caps of a budget too
    assert "held" not in machine.report()["original"]["exact"]
    done = subprocess.run(machine.command("restore"), capture_output=True, text=True, timeout=40)
    assert done.returncode == 0 and "nothing is held" in done.stdout + done.stderr


def test_somebody_who_sets_it_back_all_the_time_is_reported_and_not_fought(make_machine):
    machine = make_machine()
    machine.start_agent()
    machine.annotate(governor="powersave")
    machine.wait_report("powersave", governor="powersave", converged=True)
    end = threading.Event()

    def somebody():
        while not end.wait(0.05):
            machine.kernel.write(GOVERNOR0, "performance")

    before = len(machine.kernel.stores("policy0/scaling_governor"))
    thread = threading.Thread(target=somebody)
    thread.start()
    try:
        time.sleep(10)
        stores = [value for _, _, value, _ in machine.kernel.stores("policy0/scaling_governor")[before:]]
        assert 1 <= stores.count("powersave") <= 8, stores.count("powersave")
        machine.wait(lambda: "does not stay as it was set" in machine.errors(), "the report of it")
        assert not machine.report().get("converged")
    finally:
        end.set()
        thread.join()
    machine.wait_report("powersave again", seconds=40, governor="powersave", converged=True)


def test_cpus_come_and_go_while_the_agent_runs(make_machine):
    machine = make_machine(cpus=8, cpus_per_policy=2, packages=2)
    kernel = machine.kernel
    before = kernel.settings()
    machine.start_agent()
    machine.annotate(governor="powersave", power_cap_watts=150)
    machine.wait_report("all of it", governor="powersave", effectiveCapWatts=150, converged=True)
    for cpu in (4, 5, 6, 7):  # a whole package: its zone goes too
        assert kernel.write(f"{CPU}/cpu{cpu}/online", "0") == ""
    machine.wait(lambda: kernel.read(LIMIT0) == "150000000", "the cap on the package that is left")
    kernel.command("unplug", 7)
    machine.annotate(governor=None, power_cap_watts=None)
    machine.wait(lambda: kernel.read(GOVERNOR0) == before[GOVERNOR0], "the governor of those that are here")
    machine.wait(lambda: "owed/" in machine.report()["original"]["exact"], "the others' due")
    kernel.command("plug", 7)
    for cpu in (4, 5, 6):
        assert kernel.write(f"{CPU}/cpu{cpu}/online", "1") == ""
    machine.wait(lambda: kernel.settings() == before, "every setting as it was")
    assert machine.report().get("errors", []) == []


def test_a_locked_bios_is_named_and_the_effective_cap_is_the_true_one(make_machine):
    machine = make_machine()
    machine.kernel.command("lock-rapl", 1)
    machine.start_agent()
    machine.annotate(power_cap_watts=100)
    machine.wait(lambda: "the firmware has locked the power limit of package-0" in machine.errors(), "the sentence")
    report = machine.report()
    assert (report["requestedCapWatts"], report["effectiveCapWatts"]) == (100, 165) and not report.get("converged")
    assert {error for _, _, _, error in machine.kernel.stores("constraint_0")} == {61}  # ENODATA


def test_samples_are_of_the_whole_machine_across_a_wrap_and_say_how_hot_it_is(make_machine):
    machine = make_machine(packages=2, psys=1, mmio=1)
    machine.kernel.command("temperature", 1, 71500)
    wrap = int(machine.kernel.read(zone("intel-rapl:2", "max_energy_range_uj")))
    machine.kernel.command("energy", "intel-rapl:2", wrap - 165_000_000 * 4)
    machine.start_agent()
    machine.wait(lambda: len(machine.ingest.samples()) >= 32, "samples")
    samples = machine.ingest.samples()[2:]
    assert {sample["source"] for sample in samples} == {"rapl-psys"}
    # A quarter of a second is measured inexactly on a busy machine; packages on top would be 285 W.
    drawn = [sample["milliwatts"] for sample in samples]
    assert all(100_000 < each < 230_000 for each in drawn) and 150_000 < sum(drawn) / len(drawn) < 180_000, drawn
    assert {sample["milliCelsius"] for sample in samples} == {71_500}


def test_a_file_that_may_not_be_written_is_a_sentence_and_not_an_end(make_machine):
    machine = make_machine()
    for number in range(4):
        machine.kernel.command("refuse", policy(number, "scaling_governor"), 13)
    machine.kernel.command("hide", policy(2, "scaling_min_freq"))
    machine.start_agent()
    machine.annotate(governor="powersave", max_frequency_mhz=1600)
    machine.wait(lambda: "Permission denied" in machine.errors() and "policy2 is left out" in machine.errors(),
                 "both sentences")
    assert machine.kernel.read(policy(0, "scaling_max_freq")) == "1600000"
    assert not machine.report().get("converged")
