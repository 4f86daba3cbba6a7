"""One child process that cannot outlive its parent, and the ports such children listen on."""
import errno
import fcntl
import os
import queue
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

# Below the kernel's range for outgoing connections, so that no client's socket takes a reserved port.
PORT_RANGE = range(15000, 30000)


class _Spawner:
    """Starts all children from one thread that lives as long as this process.

    PR_SET_PDEATHSIG fires when the *thread* that forked ends, so a child must not be started by a
    test's worker thread. setpriv(1) sets the signal and then becomes the program: the pid stays.
    """

    def __init__(self):
        self._jobs = queue.Queue()
        threading.Thread(target=self._run, name="bed-spawner", daemon=True).start()

    def _run(self):
        while True:
            make, answer = self._jobs.get()
            try:
                answer.put((make(), None))
            except Exception as error:  # handed to the caller, which raises it
                answer.put((None, error))

    def popen(self, command, **options):
        answer = queue.Queue()
        wrapped = ["setpriv", "--pdeathsig", "KILL", "--", *command]
        self._jobs.put((lambda: subprocess.Popen(wrapped, start_new_session=True, **options), answer))
        process, error = answer.get()
        if error:
            raise error
        return process


_spawner = None
_spawner_lock = threading.Lock()


def spawn(command, **options):
    """subprocess.Popen, but in an own session and killed by the kernel when this process ends."""
    global _spawner
    with _spawner_lock:
        if _spawner is None:
            _spawner = _Spawner()
    return _spawner.popen([str(part) for part in command], **options)


class Process:
    """A named program with a log file that can be started again after a stop."""

    def __init__(self, name, command, log_path, env=None):
        self.name, self.command, self.log_path, self.env = name, command, Path(log_path), env
        self._popen = None

    @property
    def pid(self):
        return self._popen.pid if self.running() else None

    def running(self):
        return self._popen is not None and self._popen.poll() is None

    def ended(self):
        """By itself, that is, not by stop()."""
        return self._popen is not None and self._popen.poll() is not None

    def start(self):
        if self.running():
            raise RuntimeError(f"{self.name} runs already (pid {self.pid})")
        with open(self.log_path, "ab") as log:
            self._popen = spawn(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                env=self.env, cwd=self.log_path.parent)

    def stop(self, grace=10.0):
        """SIGTERM, then SIGKILL after `grace` seconds; grace 0 kills at once. Waits for the end."""
        if self._popen is None:
            return
        if self.running():
            self.signal(signal.SIGCONT)  # a paused process would not see SIGTERM
            self.signal(signal.SIGTERM if grace > 0 else signal.SIGKILL)
            try:
                self._popen.wait(timeout=grace or 10)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait(timeout=10)
        self._popen = None

    def signal(self, number):
        if self.running():
            self._popen.send_signal(number)

    def check(self):
        """Raises with the end of the log if the program has ended by itself."""
        if self.ended():
            raise RuntimeError(f"{self.name} ended with status {self._popen.returncode}; the end of "
                               f"{self.log_path}:\n{self.log_tail()}")

    def log_tail(self, lines=15):
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def resident_bytes(self):
        """Resident memory now, 0 if it does not run."""
        if not self.running():
            return 0
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


class PortReservation:
    """A free TCP port on 127.0.0.1, reserved among all beds on the machine by a locked file."""

    def __init__(self):
        self.port, self._file = self._reserve()

    def release(self):
        if self._file:
            self._file.close()
            self._file = None

    @staticmethod
    def _reserve():
        directory = Path(tempfile.gettempdir()) / f"kwatt-ports-{os.getuid()}"
        directory.mkdir(exist_ok=True)
        for port in random.sample(PORT_RANGE, 500):
            lock = open(directory / str(port), "w")  # noqa: SIM115 - held until release()
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if port_is_free(port):
                    return port, lock
            except BlockingIOError:
                pass
            lock.close()
        raise RuntimeError(f"no free port among 500 tried in {PORT_RANGE}")


def port_is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def wait_until(condition, seconds, what, every=0.05):
    """Polls until `condition()` is true and returns its value; TimeoutError names what was awaited."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(every)
