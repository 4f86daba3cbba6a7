"""ipmi_sim (OpenIPMI's IPMI simulator, which we did not write): one management controller on loopback.

Its power goes through a script that keeps the state in a file and a log of what was asked; sensors follow files.
DCMI, which it lacks, comes from ipmi_sim_dcmi.c.
"""
import os
import secrets
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

from bed.process import PortReservation, Process, wait_until

CHASSIS = """#!/bin/sh
# ipmi_sim calls: 0x20 get power | 0x20 set power 0|1 | 0x20 set shutdown 1
echo "$2 $3 $4" >> {folder}/asked
case "$2 $3" in
  "get power") echo "power:$(cat {folder}/power)" ;;
  "set power") echo "$4" > {folder}/power ;;
  "set shutdown") [ -e {folder}/hangs ] || echo 0 > {folder}/power ;;
esac
"""
LAN = """name "kwatt"
set_working_mc 0x20
  startlan 1
    addr {host} {port}
    priv_limit admin
    allowed_auths_admin md5
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{folder}/chassis 0x20"
  user 2 true "{user}" "{password}" admin 10 md5
  user 3 true "watcher" "{password}" user 10 md5
"""
BMC = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
sel_enable 0x20 1000 0x0a
"""
SENSOR = """sensor_add 0x20 0 {number} {kind} 0x01 poll 100 file "{file}" div={step}
sensor_set_event_support 0x20 0 {number} enable scanning none {zeros} {zeros} {zeros} {zeros}
main_sdr_add 0x20 {record}
"""


OTHER_UNITS, TEMPERATURE = 0x0b, 0x01  # sensor types (IPMI 2.0, table 42-3)
WATTS, CELSIUS = 6, 1                  # units (table 43-15)


def sensor_record(number, name, kind, unit, step):
    """A full sensor record (IPMI 2.0, 43.1), `step` units per step of the raw byte."""
    body = bytes([0x20, 0, number, 0x07, number, 0x67, 0x68, kind, 0x01, *[0] * 6, 0, unit, 0, 0, step, *[0] * 9, 0xff,
                  *[0] * 12, 0xc0 | len(name)]) + name.encode()
    return bytes([0, 0, 0x51, 0x01, len(body)]) + body


def dcmi_module(directory):
    module = directory / "dcmi.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", module, HERE / "ipmi_sim_dcmi.c"], check=True)
    return module


class IpmiSim:
    """A machine that is on. `sensors`, `temperatures`: names of power and temperature sensors; `dcmi`: whether it has
    power readings and limits; `standard_port`: it listens on 623, on an address of its own of this machine's loopback,
    for clients that know no other port."""

    USER, PASSWORD = "admin", "pw-" + secrets.token_hex(6)

    def __init__(self, directory, dcmi=True, sensors=(), temperatures=(), standard_port=False):
        self.directory, self._port = directory, PortReservation()
        self.host = ".".join(["127", *(str(1 + secrets.randbelow(250)) for _ in range(3))]) if standard_port else "127.0.0.1"
        self.port = 623 if standard_port else self._port.port
        (directory / "chassis").write_text(CHASSIS.format(folder=directory))
        (directory / "chassis").chmod(0o755)
        (directory / "power").write_text("1\n")
        lan = LAN.format(host=self.host, port=self.port, folder=directory, user=self.USER, password=self.PASSWORD)
        if dcmi:
            self.set_watts("draw", 182)
            lan += f'loadlib "{dcmi_module(directory)}" "{directory / "draw"}"\n'
        emulation = BMC
        kinds = [(name, OTHER_UNITS, WATTS, 2) for name in sensors] + [
            (name, TEMPERATURE, CELSIUS, 1) for name in temperatures]
        for number, (name, kind, unit, step) in enumerate(kinds, 1):
            self.set(name, 0)
            record = " ".join(f"0x{byte:02x}" for byte in sensor_record(number, name, kind, unit, step))
            emulation += SENSOR.format(number=number, kind=kind, step=step, file=self._file(name), zeros="0" * 15,
                                       record=record)
        (directory / "lan.conf").write_text(lan)
        (directory / "bmc.emu").write_text(emulation + "mc_enable 0x20\n")
        (directory / "state").mkdir()
        self.process = Process("ipmi_sim", ["ipmi_sim", "-c", directory / "lan.conf", "-f", directory / "bmc.emu",
                                            "-s", directory / "state", "-n"], directory / "ipmi_sim.log")
        self.process.start()
        wait_until(self._answers, 20, "ipmi_sim to answer", every=0.1)

    @property
    def address(self):
        return f"ipmi://{self.host}:{self.port}"

    def _file(self, name):
        return self.directory / name.replace(" ", "-")

    def set_watts(self, name, watts):
        """The draw ("draw", for DCMI) or the reading of a sensor, in even watts."""
        self.set(name, watts)
        time.sleep(0.3)  # sensors are polled

    def set(self, name, value):
        """What a sensor reads, in its unit, a moment later."""
        self._file(name).write_text(f"{value}\n")

    def limit(self):
        """(watts, active), or None if none was ever set."""
        path = self.directory / "draw.limit"
        if not path.exists():
            return None
        watts, active = path.read_text().split()
        return int(watts), active == "1"

    def power(self):
        return (self.directory / "power").read_text().strip()

    def asked(self):
        """What it was told to do, without the questions."""
        path = self.directory / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.strip() for line in lines if line.startswith("set")]

    def ipmitool(self, *words):
        """ipmitool by hand: what others see."""
        return subprocess.run(["ipmitool", "-I", "lanplus", "-C", "3", "-H", self.host, "-p", str(self.port), "-U",
                               self.USER, "-E", "-N", "1", "-R", "2", *words], capture_output=True, text=True,
                              timeout=30, env={**os.environ, "IPMI_PASSWORD": self.PASSWORD})

    def _answers(self):
        self.process.check()
        return self.ipmitool("chassis", "power", "status").returncode == 0

    def stop(self):
        self.process.signal(signal.SIGCONT)
        self.process.stop(grace=0)
        self._port.release()
