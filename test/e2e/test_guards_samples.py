"""Readings that cannot be true are dropped and counted; the same decision is made from readings that can."""
import datetime
import json
import ssl
import time
import urllib.request

LAB_MODEL = {"idleMilliwatts": 122_000, "maxMilliwatts": 406_000}
CAPPING = {"powerOff": {"enabled": False}, "powerOn": {"enabled": False},
           "capping": {"enabled": True, "window": "3s", "abovePercentOfMax": 90}}


def push(case, machine, *milliwatts):
    """As the machine's agent would, one sample for each reading, a few milliseconds apart."""
    moment = datetime.datetime.now(datetime.timezone.utc)
    samples = [{"time": (moment + datetime.timedelta(milliseconds=i)).isoformat(timespec="milliseconds")[:23] + "Z",
                "cpuBusyPermille": 50, "utilizationPermille": 50, "milliwatts": reading, "source": "hwmon",
                "mhz": 1000, "governor": "schedutil"} for i, reading in enumerate(milliwatts)]
    token = (case.site.directory / "room" / machine / "push.token").read_text()
    request = urllib.request.Request(
        f"{case.site.ingest_url}/metrics-ingest", method="POST",
        data=json.dumps({"node": machine, "bootID": "x", "samples": samples}).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    context = ssl.create_default_context(cafile=str(case.bed.ca_file))
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        assert answer.status == 204


def dropped(case, reason):
    with urllib.request.urlopen(f"{case.site.health_url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines
                 if line.startswith("kwatt_samples_dropped_total") and f'reason="{reason}"' in line), 0)


def test_jumps_beyond_the_machine_cap_nothing_and_true_readings_do(case):
    machine, = case.add_machines(1, model=LAB_MODEL)
    case.wait(lambda: case.power(machine).get("report", {}).get("governor"), 20, "a report")
    case.site.room.signal_agent(machine, "SIGSTOP")  # from here on, we are its agent
    before = dropped(case, "above_machine"), dropped(case, "power_range")
    case.apply_policy(CAPPING)

    def capped():
        return "kwatt.dev/power-cap-watts" in case.node(machine)["metadata"].get("annotations", {})

    # Every other reading is far above what the machine can draw, some are what a broken meter says. The mean
    # of all of them would be above the threshold.
    for _ in range(16):
        push(case, machine, 130_000, 1_000_000, 131_000, 4_294_967_295)
        time.sleep(0.5)
    case.wait_reason(machine, "InUse")
    assert not capped()
    assert dropped(case, "above_machine") - before[0] >= 16 and dropped(case, "power_range") - before[1] >= 16
    deadline = time.monotonic() + 30
    while not capped() and time.monotonic() < deadline:
        push(case, machine, 400_000)
        time.sleep(0.5)
    assert capped()
    case.site.room.signal_agent(machine, "SIGCONT")
