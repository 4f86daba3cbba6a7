"""A room in a thread of this process: the way tests use it."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from pathlib import Path
from typing import Any, Callable, Coroutine, TypeVar

from .config import RoomConfig
from .describe import merged_faults
from .room import Room
from .spec import MachineSpec

T = TypeVar("T")
START_SECONDS = 30.0


class RoomThread:
    """A room in a thread of this process, for tests. Every method may be called from any thread."""

    def __init__(self, config: RoomConfig) -> None:
        self._room = Room(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lab-room")

    def __enter__(self) -> RoomThread:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the room answers; raises what kept it from starting."""
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError("the room did not start")
        if self._error:
            self._thread.join()
            raise self._error

    def stop(self) -> None:
        if self._loop and self._stopped and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        async def main() -> None:
            self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
            await self._room.serve(self._ready.set, self._stopped)

        try:
            asyncio.run(main())
        except BaseException as error:  # carried over to the caller's thread
            self._error = error
        finally:
            self._ready.set()

    def call(self, action: Callable[[Room], T]) -> T:
        """Runs action(room) on the room's own thread."""
        async def run() -> T:
            return action(self._room)

        return self._await(run())

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            coroutine.close()
            raise RuntimeError("the room has not been started")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_SECONDS)

    @property
    def control_url(self) -> str:
        return self._room.control_url

    @property
    def redfish_url(self) -> str:
        return self._room.redfish_url

    def directory(self, name: str) -> Path:
        return self._room.dir / name

    def add_machine(self, name: str, **fields: Any) -> dict[str, Any]:
        """Fields as MachineSpec has them (snake_case)."""
        async def add() -> dict[str, Any]:
            return self._room.describe(await self._room.add(MachineSpec(name, **fields)))

        return self._await(add())

    def remove_machine(self, name: str) -> None:
        """Takes it out of the room; its agent is killed. Nothing happens if it is not there."""
        async def remove() -> None:
            if name in self._room.machines:
                await self._room.remove(name)

        self._await(remove())

    def machine(self, name: str) -> dict[str, Any]:
        return self.call(lambda room: room.describe(room.machines[name]))

    def power(self, name: str, reset: str) -> int:
        """The button on the machine's front; 202 begun, 200 nothing to do, 409 in transition."""
        return self.call(lambda room: room._bmc.reset(room.machines[name], reset, "button").status)

    def signal_agent(self, name: str, signal_name: str) -> bool:
        """Sends e.g. "SIGKILL" to the machine's agent; False: none runs."""
        return self.call(lambda room: room.agent(name).send(signal.Signals[signal_name]))

    def set_load(self, name: str, percent: float) -> None:
        self.call(lambda room: room.set_base_load(room.machines[name], percent))

    def set_faults(self, name: str, **faults: Any) -> None:
        """Keys as the HTTP API has them; those not named stay."""
        def change(room: Room) -> None:
            machine = room.machines[name]
            room.change_faults(machine, merged_faults(machine.faults, faults))

        self.call(change)

    def log(self, since: int = 0, machine: str = "", kind: str = "") -> list[dict[str, Any]]:
        return self.call(lambda room: room.log.since(since, machine, kind))

    def listen(self, listener: Callable[[Room, dict[str, Any]], None]) -> None:
        """listener(room, entry) for each log entry from now on, on the room's own thread: while a command is logged,
        whoever sent it waits for the answer, so what the listener sees is what was so at that moment."""
        self.call(lambda room: room.log.listeners.append(lambda entry: listener(room, entry)))

    def wait_for(self, name: str, condition: Callable[[dict[str, Any]], bool], seconds: float = 10.0) -> dict[str, Any]:
        """The first description of the machine that meets the condition; TimeoutError with the last one otherwise."""
        end = time.monotonic() + seconds
        while not condition(description := self.machine(name)):
            if time.monotonic() > end:
                raise TimeoutError(f"not met within {seconds} s: {description}")
            time.sleep(0.01)
        return description

    def wait_state(self, name: str, state: str, seconds: float = 10.0) -> dict[str, Any]:
        return self.wait_for(name, lambda m: m["state"] == state, seconds)
