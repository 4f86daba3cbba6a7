"""KernelSysfs: a machine's /sys mounted with FUSE, where every store is answered as the kernel would
(test/support/kernel/). Tests drive it through its files, as the real thing."""
import errno
import os
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = "devices/system/cpu"
RAPL = "class/powercap"


def program():
    return ROOT / "build" / os.environ.get("KWATT_PRESET", "dev") / "test" / "kwatt-test-sysfs"


def missing():
    """Why it cannot be used here; "" if it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse here: test_agent has the same rules in its suite agent-sysfs, without the real program"
    if not program().exists():
        return f"{program()} was not built: libfuse3-dev was missing when cmake ran"
    return ""


def policy(number, file):
    return f"{CPU}/cpufreq/policy{number}/{file}"


def zone(name, file):
    return f"{RAPL}/{name}/{file}"


class KernelSysfs:
    """KernelSysfs(directory, driver="intel_pstate", psys=1): the options of kwatt-test-sysfs."""

    def __init__(self, directory, **options):
        self.mount = Path(directory) / "kernel"
        self.mount.mkdir(parents=True)
        self.sys, self.proc = self.mount / "sys", self.mount / "proc"
        words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
        self._log = open(Path(directory) / "kernel.log", "wb")
        self._process = subprocess.Popen([program(), *words, self.mount], stdout=self._log, stderr=self._log)
        end = time.monotonic() + 20
        while not (self.sys / CPU / "online").exists():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(Path(self._log.name).read_text() or "the mount does not come")
            time.sleep(0.02)

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
        self._log.close()
        if os.path.ismount(self.mount):
            subprocess.run(["umount", "-l", self.mount], check=True)

    def read(self, path):
        return (self.sys / path).read_text().strip()

    def try_read(self, path):
        """The text, or the name of the errno."""
        try:
            return self.read(path)
        except OSError as error:
            return errno.errorcode[error.errno]

    def write(self, path, value):
        """One store; "" or the name of the errno."""
        try:
            file = os.open(self.sys / path, os.O_WRONLY)
        except OSError as error:
            return errno.errorcode[error.errno]
        try:
            os.write(file, f"{value}\n".encode())
        except OSError as error:
            return errno.errorcode[error.errno]
        finally:
            os.close(file)
        return ""

    def command(self, *words):
        """See machine.hpp."""
        (self.mount / "control").write_text(" ".join(str(word) for word in words))

    def stores(self, containing=""):
        """[(seconds, path, value, errno)] of every store so far, whoever did it."""
        rows = [line.split(" ") for line in (self.mount / "stores").read_text().splitlines()]
        return [(float(row[0]), row[1], row[2], int(row[3])) for row in rows if containing in row[1]]

    def settings(self):
        """Every attribute that can be stored to, except CPUs' online switches, with what it shows."""
        found = {}
        for file in sorted(self.sys.rglob("*")):
            if file.is_symlink() or not file.is_file() or not file.stat().st_mode & 0o200:
                continue
            name = str(file.relative_to(self.sys))
            if not name.endswith("/online"):
                found[name] = self.try_read(name)
        return found
