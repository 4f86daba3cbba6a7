"""kwatt's IPMI driver against OpenIPMI's simulator, through Debian's ipmitool."""
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ipmi_sim import IpmiSim
from bed.process import wait_until
from lab.site import program


class Probe:
    def __init__(self, directory, address, credentials):
        self.address, self.credentials = address, directory / f"credentials-{time.monotonic_ns()}"
        self.credentials.write_text(credentials + "\n")

    def command(self, *command, timeout="20s", options=()):
        return [str(part) for part in (program("power_probe", "test"), "--credentials", self.credentials, "--timeout", timeout,
                                       *options, self.address, *command)]

    def __call__(self, *command, check=True, **how):
        done = subprocess.run(self.command(*command, **how), capture_output=True, text=True, timeout=60)
        assert self.credentials.read_text().split(":")[1].strip() not in done.stdout + done.stderr
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.stderr}")
        return (done.stdout if done.returncode == 0 else done.stderr).strip()


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    simulator = IpmiSim(tmp_path_factory.mktemp("ipmi"))
    yield simulator
    simulator.stop()


@pytest.fixture
def probe(sim, tmp_path):
    return Probe(tmp_path, sim.address, f"{sim.USER}:{sim.PASSWORD}")


def test_a_machine_goes_off_softly_and_by_force_and_on_again(sim, probe):
    before = len(sim.asked())
    assert probe("state") == "On"
    assert probe("shutdown") == "ok"
    assert probe("state") == "Off" and sim.power() == "0"
    assert probe("on") == "ok"
    assert probe("on") == "ok"  # repeating does no harm
    assert probe("state") == "On"
    assert probe("off") == "ok"
    assert probe("state") == "Off"
    assert probe("on") == "ok"
    assert sim.asked()[before:] == ["set shutdown 1", "set power 1", "set power 1", "set power 0", "set power 1"]


def test_the_dcmi_reading_is_the_machines_draw(sim, probe):
    sim.set_watts("draw", 245)
    assert probe("watts") == "245000 mW"
    sim.set_watts("draw", 65535)
    assert probe("watts", check=False).startswith("protocol: the power meter says 65535 W")


def test_a_limit_is_set_activated_and_given_up(sim, probe):
    assert probe("limit", "220") == "ok"
    assert sim.limit() == (220, True)
    assert probe("limit") == "220000 mW of none to none"
    assert "Power Limit Active" in sim.ipmitool("dcmi", "power", "get_limit").stdout  # others see the same
    assert probe("limit", "10", check=False).startswith("out_of_range")
    assert sim.limit() == (220, True)
    assert probe("limit", "none") == "ok"
    assert sim.limit() == (220, False)
    assert probe("limit") == "none of none to none"
    assert probe("limit", "none") == "ok"


def test_without_dcmi_the_power_sensors_are_read(tmp_path):
    sim = IpmiSim(tmp_path, dcmi=False, sensors=("PSU1 Power In", "PSU2 Power In", "CPU Power"))
    try:
        for name, watts in (("PSU1 Power In", 100), ("PSU2 Power In", 90), ("CPU Power", 60)):
            sim.set_watts(name, watts)
        probe = Probe(tmp_path, sim.address, f"{sim.USER}:{sim.PASSWORD}")
        assert probe("watts") == "190000 mW"
        assert probe("limit", "200", check=False).startswith("unsupported")
        assert probe("limit", check=False).startswith("unsupported")
    finally:
        sim.stop()


@pytest.mark.parametrize("credentials", ["admin:wrong-password", "nobody:" + IpmiSim.PASSWORD],
                         ids=["password", "user"])
def test_wrong_credentials_are_told_apart_from_silence(sim, tmp_path, credentials):
    answer = Probe(tmp_path, sim.address, credentials)("state", check=False)
    assert answer.startswith("unauthorized: ipmitool chassis power status: the management controller refuses")


def test_a_controller_that_is_not_there_is_unavailable_in_time(tmp_path):
    started = time.monotonic()
    answer = Probe(tmp_path, "ipmi://127.0.0.1:9", "admin:some-password")("state", check=False)
    assert answer.split(":")[0] in ("unavailable", "timeout"), answer
    assert time.monotonic() - started < 40


def test_a_controller_that_hangs_is_given_up_and_ipmitool_is_gone(sim, tmp_path):
    probe = Probe(tmp_path, sim.address, f"{sim.USER}:{sim.PASSWORD}")
    sim.process.signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        answer = probe("state", check=False, timeout="2s")
        assert answer.startswith("timeout: ipmitool chassis power status"), answer
        assert time.monotonic() - started < 6
    finally:
        sim.process.signal(signal.SIGCONT)
    assert not [line for line in command_lines() if str(sim.port) in line and "ipmitool" in line]


def test_the_password_is_in_no_command_line(sim, tmp_path):
    probe = Probe(tmp_path, sim.address, f"{sim.USER}:{sim.PASSWORD}")
    sim.process.signal(signal.SIGSTOP)  # so that ipmitool waits while we look
    running = subprocess.Popen(probe.command("state"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def ours():
            return [line for line in command_lines() if "ipmitool" in line and str(sim.port) in line]
        wait_until(ours, 10, "ipmitool to run", every=0.01)
        assert all(" -E " in line and " -C 3 " in line and sim.PASSWORD not in line for line in ours())
        assert not [line for line in command_lines() if sim.PASSWORD in line]
        # The name was resolved by us: ipmitool gets the number that was checked.
        assert all(" -H 127.0.0.1 " in line for line in ours())
    finally:
        sim.process.signal(signal.SIGCONT)
        running.wait(timeout=60)


def test_an_address_outside_the_allow_list_is_never_spoken_to(sim, probe):
    assert probe("state", options=("--allow", "127.0.0.1")) == "On"
    answer = probe("state", check=False, options=("--allow", "10.0.0.7"))
    assert answer.startswith("forbidden: the address 127.0.0.1 of 127.0.0.1 is not allowed")


def command_lines():
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has ended meanwhile
    return lines
