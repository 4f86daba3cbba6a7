"""The room's control API: power for kwatt's lab driver, and everything an observer or a test wants to see and stir."""

from __future__ import annotations

import math
import signal
from typing import TYPE_CHECKING, Any, Awaitable, Callable

from .bmc import Bmc
from .describe import faults_document, load_document, merged_faults
from .faults import Faults
from .http import Request, Response, json_response
from .machine import RESETS, Machine

if TYPE_CHECKING:
    from .room import Room


class Refused(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def number(data: dict[str, Any], key: str, low: float, high: float) -> float:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) \
            or not low <= value <= high:
        raise Refused(400, f"{key} is a number from {low:g} to {high:g}")
    return float(value)


class ControlApi:
    """Routes requests. Runs on the room's event loop, as does everything that touches a machine."""

    def __init__(self, room: Room, bmc: Bmc) -> None:
        self._room = room
        self._bmc = bmc
        self._machine_routes: dict[str, dict[str, Callable[[Machine, Request], Response | Awaitable[Response]]]] = {
            "": {"GET": self._get_machine, "DELETE": self._delete_machine},
            "/power": {"GET": self._power, "POST": self._power},
            "/cap": {"PUT": self._power},
            "/button": {"POST": self._button},
            "/load": {"GET": self._get_load, "POST": self._set_load, "PUT": self._set_load},
            "/faults": {"GET": self._get_faults, "PUT": self._set_faults, "POST": self._set_faults,
                        "DELETE": self._clear_faults},
            "/agent": {"GET": self._get_agent, "POST": self._signal_agent},
        }

    async def handle(self, request: Request) -> Response:
        try:
            return await self._route(request)
        except Refused as error:
            return json_response(error.status, {"error": str(error)})
        except ValueError as error:
            return json_response(400, {"error": str(error)})

    async def _route(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        path = request.path.rstrip("/")
        if path in ("", "/healthz") and method == "GET":
            return json_response(200, {"name": "kwatt lab", "machines": len(self._room.machines)})
        if path == "/log" and method == "GET":
            return self._get_log(request)
        if path == "/energy" and method == "GET":
            return json_response(200, self._room.energy())
        if path == "/machines":
            if method == "GET":
                return json_response(200, {"items": self._room.describe_all()})
            if method == "POST":
                return json_response(201, await self._room.add_from_json(request.json()))
        parts = path.split("/", 3)
        if len(parts) < 3 or parts[1] != "machines":
            known = path in ("", "/healthz", "/log", "/energy", "/machines")
            raise Refused(405 if known else 404, "not allowed here" if known else f"no resource {path!r}")
        machine = self._room.machines.get(parts[2])
        if machine is None:
            raise Refused(404, f"no machine {parts[2]!r}")
        methods = self._machine_routes.get("/" + parts[3] if len(parts) > 3 else "")
        if methods is None:
            raise Refused(404, f"no resource {path!r}")
        if method not in methods:
            response = json_response(405, {"error": f"{method} is not allowed here"})
            response.headers["Allow"] = ", ".join(methods)
            return response
        result = methods[method](machine, request)
        return result if isinstance(result, Response) else await result

    # --- the power API, subject to BMC faults -------------------------------------------------------------------

    async def _power(self, machine: Machine, request: Request) -> Response:
        def healthy() -> Response:
            try:
                return self._power_command(machine, request)
            except Refused as error:
                return json_response(error.status, {"error": str(error)})
            except ValueError as error:
                return json_response(400, {"error": str(error)})

        def broken(status: int) -> Response:
            sentence = {401: "not authorized", 503: "the BMC is unavailable"}[status]
            return json_response(status, {"error": sentence}, {"Retry-After": "1"} if status == 503 else None)

        return await self._bmc.answer(machine, healthy, broken)

    def _power_command(self, machine: Machine, request: Request) -> Response:
        if request.method == "PUT":
            data = request.json()
            if set(data) != {"watts"}:
                raise Refused(400, 'the body is {"watts": a number or null}')
            low, high = machine.cap_range
            watts = None if data["watts"] is None else number(data, "watts", low, high)
            self._bmc.set_cap(machine, watts, "lab", request)
            return json_response(200, self._power_document(machine))
        if request.method == "POST":
            return self._reset(machine, request, "lab")
        return json_response(200, self._power_document(machine))

    def _reset(self, machine: Machine, request: Request, source: str) -> Response:
        command = request.json().get("reset")
        if command not in RESETS:
            raise Refused(400, f"reset is one of {', '.join(RESETS)}")
        outcome = self._bmc.reset(machine, command, source, request)
        if outcome.status == 409:
            raise Refused(409, outcome.message)
        return json_response(outcome.status, self._power_document(machine))

    def _power_document(self, machine: Machine) -> dict[str, Any]:
        watts = self._bmc.watts(machine)
        full = self._room.describe(machine)
        low, high = machine.cap_range
        return {"name": full["name"], "state": self._bmc.state(machine), "since": full["since"],
                "bootId": full["bootId"], "watts": watts, "capWatts": machine.wall_cap,
                "capRange": {"minWatts": low, "maxWatts": high}}

    # --- for observers and tests: always the truth --------------------------------------------------------------

    def _get_machine(self, machine: Machine, request: Request) -> Response:
        return json_response(200, self._room.describe(machine))

    async def _delete_machine(self, machine: Machine, request: Request) -> Response:
        await self._room.remove(machine.spec.name)
        return Response(204)

    def _button(self, machine: Machine, request: Request) -> Response:
        """The button on the machine's front: as a person would, past the BMC."""
        return self._reset(machine, request, "button")

    def _get_load(self, machine: Machine, request: Request) -> Response:
        return json_response(200, load_document(machine))

    def _set_load(self, machine: Machine, request: Request) -> Response:
        self._room.set_base_load(machine, number(request.json(), "percent", 0, 1000))
        return self._get_load(machine, request)

    def _get_faults(self, machine: Machine, request: Request) -> Response:
        return json_response(200, faults_document(machine.faults))

    def _set_faults(self, machine: Machine, request: Request) -> Response:
        self._room.change_faults(machine, merged_faults(machine.faults, request.json()))
        return self._get_faults(machine, request)

    def _clear_faults(self, machine: Machine, request: Request) -> Response:
        self._room.change_faults(machine, Faults())
        return self._get_faults(machine, request)

    def _get_agent(self, machine: Machine, request: Request) -> Response:
        return json_response(200, {"pid": self._room.agent(machine.spec.name).pid})

    def _signal_agent(self, machine: Machine, request: Request) -> Response:
        """{"signal": "SIGKILL"} to the running agent, or {"start": true} for one that has ended."""
        data, agent = request.json(), self._room.agent(machine.spec.name)
        if data.get("start") is True:
            if machine.state != "On":
                raise Refused(409, "the machine is not on")
            agent.start()
        else:
            name = str(data.get("signal"))
            if name not in signal.Signals.__members__:
                raise Refused(400, "signal is a name such as SIGKILL")
            if not agent.send(signal.Signals[name]):
                raise Refused(409, "no agent is running")
        return self._get_agent(machine, request)

    def _get_log(self, request: Request) -> Response:
        since = request.query.get("since", "0")
        if not since.isdigit():
            raise Refused(400, "since is a sequence number")
        entries = self._room.log.since(int(since), request.query.get("machine", ""), request.query.get("kind", ""))
        return json_response(200, {"dropped": self._room.log.dropped, "entries": entries})
