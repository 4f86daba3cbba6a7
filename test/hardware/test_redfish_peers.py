"""kwatt's Redfish driver against services that do not share its code: sushy-tools, and the lab's BMCs."""
import shutil
import subprocess
import time

import pytest


from bed.process import wait_until
from lab import RedfishOptions, RoomConfig, RoomThread
from lab.site import program
from sushy import Sushy

LAB_USER = "admin:s3cret"


class Probe:
    """Runs power_probe for one machine; the answer, or ProbeError with code and text."""

    def __init__(self, directory, address, credentials, ca):
        self.address, self.ca = address, ca
        self.credentials = directory / "credentials"
        self.credentials.write_text(credentials + "\n")

    def __call__(self, *command, check=True):
        done = subprocess.run([program("power_probe", "test"), "--credentials", self.credentials, "--ca", self.ca, "--timeout", "5s",
                               "--id", "op-1", self.address, *command], capture_output=True, text=True, timeout=30)
        assert self.credentials.read_text().split(":")[1].strip() not in done.stdout + done.stderr
        if done.returncode == 0:
            return done.stdout.strip()
        if check:
            raise AssertionError(f"{command}: {done.stderr}")
        return done.stderr.strip()

    def wait_state(self, state, seconds=20):
        wait_until(lambda: self("state") == state, seconds, f"state {state}", every=0.2)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("no openssl program to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                    "-days", "2", "-subj", "/CN=bmc", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def sushy(tmp_path_factory, certificate):
    emulator = Sushy(tmp_path_factory.mktemp("sushy"), *certificate)
    yield emulator
    emulator.stop()


@pytest.fixture
def sushy_probe(sushy, certificate, tmp_path):
    return Probe(tmp_path, sushy.system_url, f"{sushy.USER}:{sushy.PASSWORD}", certificate[0])


@pytest.fixture(scope="module")
def sushy_with_power(tmp_path_factory, certificate):
    """sushy-tools with two systems, and with our own model of power beside it."""
    emulator = Sushy(tmp_path_factory.mktemp("sushy-power"), *certificate, power=True, systems=2)
    yield emulator
    emulator.stop()


@pytest.fixture
def room(tmp_path, certificate):
    (tmp_path / "auth").write_text(LAB_USER + "\n")
    with RoomThread(RoomConfig(dir=str(tmp_path / "room"), tick_seconds=0.02,
                               redfish=RedfishOptions(str(certificate[0]), str(certificate[1]),
                                                      str(tmp_path / "auth")))) as room:
        room.add_machine("node1", boot_seconds=0.5, shutdown_seconds=0.3)
        yield room


@pytest.fixture
def lab_probe(room, certificate, tmp_path):
    address = "redfish+" + room.redfish_url + "/redfish/v1/Systems/node1"
    return Probe(tmp_path, address, LAB_USER, certificate[0])


def test_sushy_a_machine_goes_off_softly_and_on_again(sushy_probe):
    sushy_probe.wait_state("On")
    assert sushy_probe("shutdown") == "ok"
    sushy_probe.wait_state("Off")
    assert sushy_probe("on") == "ok"
    sushy_probe.wait_state("On")
    assert sushy_probe("off") == "ok"
    sushy_probe.wait_state("Off")
    assert sushy_probe("off") == "ok"  # repeating does no harm
    assert sushy_probe("on") == "ok"
    sushy_probe.wait_state("On")


def test_sushy_has_no_power_telemetry(sushy_probe):
    assert sushy_probe("watts") == "none"
    assert sushy_probe("limit", "200", check=False).startswith("unsupported")


def test_sushy_the_only_system_need_not_be_named(sushy, certificate, tmp_path):
    for path in ("", "/redfish/v1", "/redfish/v1/Systems/"):
        address = f"redfish+https://127.0.0.1:{sushy.port}{path}"
        assert Probe(tmp_path, address, f"{sushy.USER}:{sushy.PASSWORD}", certificate[0])("state") == "On"


def test_sushy_one_of_several_systems_must_be_named(sushy_with_power, certificate, tmp_path):
    emulator = sushy_with_power
    address = f"redfish+https://127.0.0.1:{emulator.port}"
    answer = Probe(tmp_path, address, f"{emulator.USER}:{emulator.PASSWORD}", certificate[0])("state", check=False)
    assert answer.startswith("invalid_argument") and "2 systems" in answer
    assert f"/redfish/v1/Systems/{emulator.uuid}" in answer


def test_sushy_with_our_power_a_limit_is_set_read_back_and_lifted(sushy_with_power, certificate, tmp_path):
    emulator = sushy_with_power
    probe = Probe(tmp_path, emulator.system_url, f"{emulator.USER}:{emulator.PASSWORD}", certificate[0])
    assert probe("watts") == "300000 mW"
    assert probe("limit") == "none of none to 500000 mW"
    assert probe("limit", "250") == "ok"
    assert probe("limit") == "250000 mW of none to 500000 mW"
    assert probe("watts") == "250000 mW"
    refused = probe("limit", "20", check=False)
    assert refused.startswith("out_of_range") and "20 is not within 100 to 500" in refused
    assert probe("limit", "none") == "ok"
    assert probe("limit") == "none of none to 500000 mW"


def test_sushy_a_wrong_password_is_unauthorized(sushy, certificate, tmp_path):
    probe = Probe(tmp_path, sushy.system_url, "admin:wrong-one", certificate[0])
    assert probe("state", check=False).startswith("unauthorized")


def test_sushy_an_unknown_system_is_not_found(sushy, certificate, tmp_path):
    address = f"redfish+https://127.0.0.1:{sushy.port}/redfish/v1/Systems/no-such-system"
    assert Probe(tmp_path, address, f"{sushy.USER}:{sushy.PASSWORD}", certificate[0])(
        "state", check=False).startswith("not_found")


def test_sushy_a_certificate_nobody_vouches_for_is_refused(sushy, tmp_path):
    (tmp_path / "other.pem").write_text(subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2",
         "-subj", "/CN=other", "-keyout", tmp_path / "other.key"], check=True, capture_output=True, text=True).stdout)
    probe = Probe(tmp_path, sushy.system_url, f"{sushy.USER}:{sushy.PASSWORD}", tmp_path / "other.pem")
    assert probe("state", check=False).startswith("forbidden")


def test_sushy_plain_http_to_a_tls_port_fails_in_time(sushy, certificate, tmp_path):
    address = sushy.system_url.replace("redfish+https", "redfish+http")
    started = time.monotonic()
    answer = Probe(tmp_path, address, "a:bcd", certificate[0])("state", check=False)
    assert answer.split(":")[0] in ("protocol", "unavailable", "timeout") and time.monotonic() - started < 15


def test_lab_power_cycle_watts_and_limit(lab_probe, room):
    assert lab_probe("state") == "On"
    milliwatts = int(lab_probe("watts").split()[0])
    assert 10_000 < milliwatts < 1_000_000
    cap = room.machine("node1")["capRange"]
    limit = (cap["minWatts"] + cap["maxWatts"]) // 2
    assert lab_probe("limit", str(limit)) == "ok"
    assert lab_probe("limit") == f"{limit}000 mW of {cap['minWatts']}000 mW to {cap['maxWatts']}000 mW"
    refused = lab_probe("limit", "1", check=False)
    assert refused.startswith("out_of_range") and "supported range" in refused
    assert lab_probe("limit", "none") == "ok"
    assert lab_probe("limit").startswith("none of ")
    assert lab_probe("shutdown") == "ok"
    lab_probe.wait_state("Off")
    assert lab_probe("on") == "ok"
    lab_probe.wait_state("On")
    commands = room.log(machine="node1", kind="command")
    assert [entry["command"] for entry in commands] == ["GracefulShutdown", "On"]
    assert {entry["operationId"] for entry in commands} == {"op-1"}


@pytest.mark.parametrize("fault, code", [("unavailable", "unavailable"), ("unauthorized", "unauthorized"),
                                         ("html", "protocol"), ("truncated", ("protocol", "unavailable")),
                                         ("drop", "unavailable"), ("slow", "timeout"),
                                         ("redirect", "protocol"), ("huge", "protocol")])
def test_lab_a_broken_bmc_is_told_apart(lab_probe, room, fault, code):
    room.set_faults("node1", bmc=fault, bmcDelaySeconds=30)
    started = time.monotonic()
    assert lab_probe("state", check=False).startswith(code)
    assert time.monotonic() - started < 15


def test_lab_sessions_are_used_and_given_back(lab_probe, room):
    for _ in range(3):
        assert lab_probe("state") == "On"
    assert room.call(lambda r: r.redfish_service.session_count) == 0


def test_lab_a_lying_meter_is_not_believed(lab_probe, room):
    room.set_faults("node1", meter="max")
    assert lab_probe("watts", check=False).startswith("protocol")
    assert lab_probe("state") == "On"
    room.set_faults("node1", meter="absent")
    assert lab_probe("watts") == "none"
    assert lab_probe("limit").startswith("none of ")
