"""What the Redfish service and the lab's own power API have in common: the machine's BMC, with its faults and its log."""

from __future__ import annotations

import asyncio
from typing import Callable

from .faults import metered, reported_state
from .http import Request, Response
from .log import RoomLog
from .machine import Machine, Outcome

HUGE_BYTES = 1_000_000_000
METADATA = "http://169.254.169.254/latest/meta-data/"  # where a redirect must never lead a client
LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Login</title></head><body><form>Password</form></body></html>"


class Bmc:
    def __init__(self, log: RoomLog, now: Callable[[], float]) -> None:
        self._log = log
        self._now = now

    async def answer(self, machine: Machine, healthy: Callable[[], Response],
                     broken: Callable[[int], Response]) -> Response:
        """healthy(), or what the machine's fault makes of it; broken(401 or 503) words the refusals of an API."""
        faults = machine.faults
        if faults.bmc == "ok":
            return healthy()
        machine.spend_bmc_fault()
        if faults.bmc == "unavailable":
            return broken(503)
        if faults.bmc == "unauthorized":
            return broken(401)
        if faults.bmc == "html":
            return Response(200, LOGIN_PAGE, "text/html")
        if faults.bmc == "redirect":
            return Response(307, headers={"Location": METADATA})
        if faults.bmc == "huge":
            return Response(200, b"{" + b" " * 4096, claim_bytes=HUGE_BYTES)
        if faults.bmc == "drop":
            return Response(200, send_bytes=0)
        if faults.bmc == "slow":
            await asyncio.sleep(faults.bmc_delay_seconds)
        response = healthy()
        if faults.bmc == "truncated":
            # The command is carried out; only the answer is lost halfway.
            response.send_bytes = 40 + len(response.body) // 2
        return response

    @staticmethod
    def state(machine: Machine) -> str:
        return reported_state(machine.faults, machine.state)

    def watts(self, machine: Machine) -> float | None:
        machine.advance(self._now())
        return metered(machine.faults, machine.watts)

    def reset(self, machine: Machine, command: str, source: str, request: Request | None = None) -> Outcome:
        machine.advance(self._now())
        # Logged before it is carried out, so that the state change it causes comes after it.
        self._log.add("command", machine.spec.name, command=command, source=source, operationId=operation_id(request),
                      stateBefore=machine.state, status=machine.would(command).status,
                      peerPort=request.peer_port if request else 0)
        return machine.reset(command, self._now())

    def set_cap(self, machine: Machine, watts: float | None, source: str, request: Request | None = None) -> None:
        """ValueError if the watts are out of the machine's range."""
        machine.set_wall_cap(watts, self._now())
        self._log.add("cap", machine.spec.name, watts=watts, source=source, operationId=operation_id(request),
                      peerPort=request.peer_port if request else 0)


def operation_id(request: Request | None) -> str:
    return request.headers.get("kwatt-operation-id", "") if request else ""
