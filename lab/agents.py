"""The real agent of each machine as a process: it starts when the machine has booted and dies with its power."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping

from .log import RoomLog

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
RESTART_SECONDS = 0.5


def _leash(parent: int) -> Callable[[], None]:
    """Runs in the child: it is killed when the lab dies in whatever way."""
    def bind() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the lab died before the line above
    return bind


@dataclass(frozen=True)
class AgentOptions:
    command: str = ""  # split as a shell does, no shell is started; {node} {sys} {proc} {dir} are filled in
    restart: bool = False
    grace_seconds: float = 5.0  # between SIGTERM and SIGKILL when a machine shuts down


class AgentProcess:
    """The agent of one machine. Every call returns at once; poll() does what has fallen due."""

    def __init__(self, options: AgentOptions, node: str, directory: Path, log: RoomLog) -> None:
        self._options = options
        self._node = node
        self._directory = directory
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._kill_at: float | None = None
        self._restart_at: float | None = None
        self._wanted = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Does nothing if it runs, or if no command is configured."""
        if not self._options.command or self._process:
            return
        self._wanted = True
        values: Mapping[str, str] = {"node": self._node, "dir": str(self._directory),
                                     "sys": str(self._directory / "sys"), "proc": str(self._directory / "proc")}
        command = [word.format_map(values) for word in shlex.split(self._options.command)]
        with open(self._directory / "agent.log", "ab") as output:
            try:
                # Its own session: a Ctrl-C in the lab's terminal is the lab's to pass on.
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                                 start_new_session=True, preexec_fn=_leash(os.getpid()))
            except OSError as error:
                self._log.add("agent", self._node, event="failed", message=str(error))
                self._wanted = False
                return
        self._log.add("agent", self._node, event="started", pid=self._process.pid)

    def send(self, number: int) -> bool:
        """A signal to the agent and what it has started; false if it does not run."""
        if not self._process:
            return False
        try:
            # Not reaped before poll() has seen its end, so the number still means this process group.
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        return True

    def shut_down(self, now: float) -> None:
        """SIGTERM, and SIGKILL after the grace period."""
        self._wanted = False
        if self.send(signal.SIGTERM):
            self._kill_at = now + self._options.grace_seconds

    def kill(self) -> None:
        """What loss of power does. Waits for the process, which SIGKILL ends at once."""
        self._wanted = False
        self._restart_at = None
        if self.send(signal.SIGKILL) and self._process:
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                return  # stuck in the kernel; poll() reaps it
            self._ended()

    def poll(self, now: float) -> None:
        if self._process:
            if self._process.poll() is not None:
                self._ended()
                if self._wanted and self._options.restart:
                    self._restart_at = now + RESTART_SECONDS
            elif self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                self.send(signal.SIGKILL)
        elif self._restart_at is not None and now >= self._restart_at:
            self._restart_at = None
            self.start()

    def _ended(self) -> None:
        assert self._process is not None
        self._log.add("agent", self._node, event="ended", pid=self._process.pid, exitCode=self._process.returncode)
        self._process = None
        self._kill_at = None
