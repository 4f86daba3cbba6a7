"""A Redfish service (DSP0266, DSP0268) for the room's machines, or for one of them on its own port.

Authentication is basic or by session. Power and its limit are there twice, as in services of today: the newer
EnvironmentMetrics with PowerLimitWatts, and the deprecated Power with PowerControl; both are the same limit.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from typing import Any, Callable, Mapping
from urllib.parse import quote

from .bmc import Bmc
from .http import Request, Response
from .machine import RESETS, Machine

REGISTRY = "Base.1.16.0"
SESSIONS = "/redfish/v1/SessionService/Sessions"
MOST_SESSIONS = 64  # the oldest ends when one more is opened
# id: (HTTP status, message with {0}…, severity, resolution), as the Base registry words them in short.
MESSAGES = {
    "ResourceMissingAtURI": (404, "The resource at the URI '{0}' was not found.", "Critical",
                             "Place a valid resource at the URI or correct the URI and resubmit the request."),
    "OperationNotAllowed": (405, "The HTTP method is not allowed on this resource.", "Critical", "None."),
    "NoValidSession": (401, "There is no valid session established with the implementation.", "Critical",
                       "Establish a session before attempting any operations."),
    "MalformedJSON": (400, "The request body submitted was malformed JSON.", "Critical",
                      "Ensure that the request body is valid JSON and resubmit the request."),
    "ActionParameterMissing": (400, "The action {0} requires the parameter {1} to be present.", "Critical",
                               "Supply the action with the required parameter."),
    "ActionParameterValueNotInList": (400, "The value '{0}' for the parameter {1} in the action {2} is not in the "
                                      "list.", "Warning", "Choose a value from the enumeration list."),
    "PropertyValueNotInList": (400, "The value '{0}' for the property {1} is not in the list of acceptable values.",
                               "Warning", "Choose a value from the enumeration list."),
    "PropertyUnknown": (400, "The property {0} is not in the list of valid properties for the resource.", "Warning",
                        "Remove the unknown property from the request body."),
    "PropertyValueTypeError": (400, "The value '{0}' for the property {1} is not a type that the property accepts.",
                               "Warning", "Correct the value for the property in the request body."),
    "PropertyValueOutOfRange": (400, "The value '{0}' for the property {1} is not in the supported range.", "Warning",
                                "Correct the value for the property in the request body."),
    "PreconditionFailed": (412, "The ETag supplied did not match the ETag required to change this resource.",
                           "Critical", "Try the operation again using the appropriate ETag."),
    "ResourceInUse": (409, "The change failed because the resource is in use or in transition.", "Warning",
                      "Remove the condition and resubmit the request if the operation failed."),
    "ServiceTemporarilyUnavailable": (503, "The service is temporarily unavailable. Retry in {0} seconds.", "Critical",
                                      "Wait for the indicated retry duration and retry the operation."),
}


def error(message_id: str, *arguments: str) -> Response:
    status, text, severity, resolution = MESSAGES[message_id]
    info = {
        "@odata.type": "#Message.v1_1_2.Message",
        "MessageId": f"{REGISTRY}.{message_id}",
        "Message": text.format(*arguments),
        "MessageArgs": list(arguments),
        "MessageSeverity": severity,
        "Resolution": resolution,
    }
    body = {"error": {"code": f"{REGISTRY}.{message_id}", "message": info["Message"], "@Message.ExtendedInfo": [info]}}
    return _answer(status, body)


def _answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(status, json.dumps(body).encode(), headers={"OData-Version": "4.0", **(headers or {})})


def _resource(body: dict[str, Any], etag_of: Any) -> Response:
    """A GET's answer. The ETag covers what a client can change or act on; readings alone do not alter it."""
    digest = hashlib.sha256(json.dumps(etag_of, sort_keys=True).encode()).hexdigest()[:16]
    etag = f'W/"{digest}"'
    return _answer(200, {**body, "@odata.etag": etag}, {"ETag": etag, "Cache-Control": "no-cache"})


def _matches(header: str, etag: str) -> bool:
    return header.strip() == "*" or etag in (part.strip() for part in header.split(","))


def _collection(path: str, kind: str, title: str, members: list[str]) -> dict[str, Any]:
    return {"@odata.id": path, "@odata.type": f"#{kind}.{kind}", "Name": title,
            "Members": [{"@odata.id": m} for m in members], "Members@odata.count": len(members)}


class RedfishService:
    """machines() is asked at each request, so a room may grow; credentials is "user:password"."""

    def __init__(self, machines: Callable[[], Mapping[str, Machine]], bmc: Bmc, credentials: str) -> None:
        self._machines = machines
        self._bmc = bmc
        self._authorization = b"Basic " + base64.b64encode(credentials.encode())
        self._login = credentials.split(":", 1)
        self._sessions: dict[str, str] = {}  # id: token
        self._session_count = 0

    def _authorized(self, request: Request) -> bool:
        token = request.headers.get("x-auth-token", "").encode()
        if token:
            return any([hmac.compare_digest(token, known.encode()) for known in self._sessions.values()])
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), self._authorization)

    def end_sessions(self) -> None:
        """As after a restart of the BMC."""
        self._sessions.clear()

    @property
    def session_count(self) -> int:
        """Sessions that are open now."""
        return len(self._sessions)

    async def handle(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        if path == "/redfish":
            return _answer(200, {"v1": "/redfish/v1/"})
        if path == "/redfish/v1":
            return self._read_only(request, self._root())
        if path == SESSIONS and request.method == "POST":
            return self._open_session(request)
        if not self._authorized(request):
            response = error("NoValidSession")
            response.headers["WWW-Authenticate"] = 'Basic realm="lab"'
            return response
        if path.startswith("/redfish/v1/SessionService"):
            return self._session_service(request, path)
        if path == "/redfish/v1/Systems":
            return self._read_only(request, self._list("Systems", "ComputerSystemCollection", "Computer systems"))
        if path == "/redfish/v1/Chassis":
            return self._read_only(request, self._list("Chassis", "ChassisCollection", "Chassis"))
        found = re.fullmatch(r"/redfish/v1/(Systems|Chassis)/([^/]+)(/.*)?", path)
        machine = self._machines().get(found.group(2)) if found else None
        if not found or machine is None:
            return error("ResourceMissingAtURI", path)
        return await self._bmc.answer(machine, lambda: self._machine(request, machine, found.group(1),
                                                                     found.group(3) or ""), self._broken)

    @staticmethod
    def _broken(status: int) -> Response:
        if status == 503:
            response = error("ServiceTemporarilyUnavailable", "1")
            response.headers["Retry-After"] = "1"
            return response
        response = error("NoValidSession")
        response.headers["WWW-Authenticate"] = 'Basic realm="lab"'
        return response

    def _machine(self, request: Request, machine: Machine, kind: str, rest: str) -> Response:
        if (kind, rest) == ("Systems", ""):
            return self._read_only(request, self._system(machine))
        if (kind, rest) == ("Chassis", ""):
            return self._read_only(request, self._chassis(machine))
        if (kind, rest) == ("Chassis", "/Power"):
            if request.method == "PATCH":
                return self._patch_power(request, machine)
            return self._read_only(request, self._power(machine), "GET, HEAD, PATCH")
        if (kind, rest) == ("Chassis", "/EnvironmentMetrics"):
            if request.method == "PATCH":
                return self._patch_environment(request, machine)
            return self._read_only(request, self._environment(machine), "GET, HEAD, PATCH")
        if (kind, rest) == ("Systems", "/Actions/ComputerSystem.Reset"):
            if request.method != "POST":
                return self._not_allowed("POST")
            return self._reset(request, machine)
        return error("ResourceMissingAtURI", request.path)

    # --- reading ------------------------------------------------------------------------------------------------

    @staticmethod
    def _not_allowed(allow: str) -> Response:
        response = error("OperationNotAllowed")
        response.headers["Allow"] = allow
        return response

    def _read_only(self, request: Request, response: Response, allow: str = "GET, HEAD") -> Response:
        if request.method not in ("GET", "HEAD"):
            return self._not_allowed(allow)
        response.headers["Allow"] = allow
        etag = response.headers["ETag"]
        if _matches(request.headers.get("if-none-match", ""), etag):
            return Response(304, headers={"ETag": etag, "OData-Version": "4.0"})
        return response

    @staticmethod
    def _root() -> Response:
        body = {
            "@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService",
            "Name": "Simulated machine room", "RedfishVersion": "1.15.0", "Vendor": "kwatt lab",
            "Systems": {"@odata.id": "/redfish/v1/Systems"}, "Chassis": {"@odata.id": "/redfish/v1/Chassis"},
            "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
            "Links": {"Sessions": {"@odata.id": SESSIONS}},
        }
        return _resource(body, body)

    def _list(self, what: str, kind: str, title: str) -> Response:
        members = [f"/redfish/v1/{what}/{quote(name)}" for name in sorted(self._machines())]
        body = _collection(f"/redfish/v1/{what}", kind, title, members)
        return _resource(body, body)

    def _system(self, machine: Machine) -> Response:
        name, spec = machine.spec.name, machine.spec
        path = f"/redfish/v1/Systems/{name}"
        state = self._bmc.state(machine)
        body = {
            "@odata.id": path, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Id": name, "Name": name,
            "SystemType": "Physical", "HostName": name, "PowerState": state,
            "Status": {"State": "Enabled" if state == "On" else "Disabled", "Health": "OK"},
            "ProcessorSummary": {"Count": spec.packages, "CoreCount": spec.cpus},
            "MemorySummary": {"TotalSystemMemoryGiB": spec.memory_mib / 1024},
            "Links": {"Chassis": [{"@odata.id": f"/redfish/v1/Chassis/{name}"}]},
            "Actions": {"#ComputerSystem.Reset": {"target": f"{path}/Actions/ComputerSystem.Reset",
                                                  "ResetType@Redfish.AllowableValues": list(RESETS)}},
        }
        return _resource(body, body)

    def _chassis(self, machine: Machine) -> Response:
        name = machine.spec.name
        path = f"/redfish/v1/Chassis/{name}"
        body = {
            "@odata.id": path, "@odata.type": "#Chassis.v1_23_0.Chassis", "Id": name, "Name": name,
            "ChassisType": "RackMount", "PowerState": self._bmc.state(machine),
            "Power": {"@odata.id": f"{path}/Power"},
            "EnvironmentMetrics": {"@odata.id": f"{path}/EnvironmentMetrics"},
            "Links": {"ComputerSystems": [{"@odata.id": f"/redfish/v1/Systems/{name}"}]},
        }
        return _resource(body, body)

    def _power(self, machine: Machine) -> Response:
        path = f"/redfish/v1/Chassis/{machine.spec.name}/Power"
        control = {
            "@odata.id": f"{path}#/PowerControl/0", "MemberId": "0", "Name": "System power control",
            "PhysicalContext": "Chassis", "PowerConsumedWatts": self._bmc.watts(machine),
            "PowerCapacityWatts": machine.cap_range[1],
            "PowerLimit": {"LimitInWatts": machine.wall_cap, "LimitException": "NoAction"},
        }
        body = {"@odata.id": path, "@odata.type": "#Power.v1_7_1.Power", "Id": "Power", "Name": "Power",
                "PowerControl": [control], "PowerControl@odata.count": 1}
        return _resource(body, machine.wall_cap)

    def _environment(self, machine: Machine) -> Response:
        path = f"/redfish/v1/Chassis/{machine.spec.name}/EnvironmentMetrics"
        low, high = machine.cap_range
        limit = {"SetPoint": machine.wall_cap, "ControlMode": "Disabled" if machine.wall_cap is None else "Automatic",
                 "AllowableMin": low, "AllowableMax": high}
        body = {"@odata.id": path, "@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics",
                "Id": "EnvironmentMetrics", "Name": "Environment metrics",
                "PowerWatts": {"Reading": self._bmc.watts(machine)}, "PowerLimitWatts": limit}
        return _resource(body, machine.wall_cap)

    # --- sessions -----------------------------------------------------------------------------------------------

    def _open_session(self, request: Request) -> Response:
        try:
            data = request.json()
        except ValueError:
            return error("MalformedJSON")
        user, password = str(data.get("UserName", "")), str(data.get("Password", ""))
        known = [hmac.compare_digest(given.encode(), right.encode())
                 for given, right in zip((user, password), self._login)]
        if not all(known):
            return error("NoValidSession")
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._session_count += 1
        name, token = str(self._session_count), secrets.token_urlsafe(24)
        self._sessions[name] = token
        return _answer(201, self._session(name), {"X-Auth-Token": token, "Location": f"{SESSIONS}/{name}"})

    def _session(self, name: str) -> dict[str, Any]:
        return {"@odata.id": f"{SESSIONS}/{name}", "@odata.type": "#Session.v1_6_0.Session", "Id": name,
                "Name": "Session", "UserName": self._login[0]}

    def _session_service(self, request: Request, path: str) -> Response:
        if path == "/redfish/v1/SessionService":
            body = {"@odata.id": path, "@odata.type": "#SessionService.v1_1_8.SessionService", "Id": "SessionService",
                    "Name": "Sessions", "ServiceEnabled": True, "Sessions": {"@odata.id": SESSIONS}}
            return self._read_only(request, _resource(body, body))
        if path == SESSIONS:
            body = _collection(SESSIONS, "SessionCollection", "Sessions",
                               [f"{SESSIONS}/{name}" for name in self._sessions])
            return self._read_only(request, _resource(body, body), "GET, HEAD, POST")
        name = path.removeprefix(SESSIONS + "/")
        if name not in self._sessions:
            return error("ResourceMissingAtURI", path)
        if request.method == "DELETE":
            del self._sessions[name]
            return Response(204, headers={"OData-Version": "4.0"})
        return self._read_only(request, _resource(self._session(name), name), "GET, HEAD, DELETE")

    # --- changing -----------------------------------------------------------------------------------------------

    def _reset(self, request: Request, machine: Machine) -> Response:
        try:
            data = request.json()
        except ValueError:
            return error("MalformedJSON")
        command = data.get("ResetType")
        if command is None:
            return error("ActionParameterMissing", "ComputerSystem.Reset", "ResetType")
        if command not in RESETS:
            return error("ActionParameterValueNotInList", str(command), "ResetType", "ComputerSystem.Reset")
        outcome = self._bmc.reset(machine, command, "redfish", request)
        if outcome.status == 409:
            return error("ResourceInUse")
        return Response(204, headers={"OData-Version": "4.0"})

    def _changes(self, request: Request, current: Response) -> dict[str, Any] | Response:
        """The body of a PATCH of the resource that `current` shows, or what is wrong with the request."""
        wanted = request.headers.get("if-match")
        if wanted is not None and not _matches(wanted, current.headers["ETag"]):
            return error("PreconditionFailed")
        try:
            return request.json()
        except ValueError:
            return error("MalformedJSON")

    def _patch_power(self, request: Request, machine: Machine) -> Response:
        data = self._changes(request, self._power(machine))
        if isinstance(data, Response):
            return data
        control = data.get("PowerControl")
        if set(data) != {"PowerControl"} or not isinstance(control, list) or len(control) != 1 \
                or not isinstance(control[0], dict):
            return error("PropertyValueTypeError", json.dumps(control), "PowerControl")
        limit = control[0].get("PowerLimit")
        if set(control[0]) - {"PowerLimit", "MemberId"} or not isinstance(limit, dict):
            return error("PropertyUnknown", ", ".join(sorted(set(control[0]) - {"PowerLimit"})) or "PowerLimit")
        if "LimitInWatts" not in limit:
            return error("PropertyUnknown", ", ".join(sorted(limit)) or "LimitInWatts")
        return self._set_limit(request, machine, limit["LimitInWatts"], "LimitInWatts") or self._power(machine)

    def _set_limit(self, request: Request, machine: Machine, watts: Any, name: str) -> Response | None:
        """None: it is set; else what is wrong with it."""
        if watts is not None and (isinstance(watts, bool) or not isinstance(watts, (int, float))):
            return error("PropertyValueTypeError", json.dumps(watts), name)
        try:
            self._bmc.set_cap(machine, watts, "redfish", request)
        except ValueError:
            return error("PropertyValueOutOfRange", str(watts), name)
        return None

    def _patch_environment(self, request: Request, machine: Machine) -> Response:
        data = self._changes(request, self._environment(machine))
        if isinstance(data, Response):
            return data
        limit = data.get("PowerLimitWatts")
        if set(data) != {"PowerLimitWatts"} or not isinstance(limit, dict) or not limit:
            return error("PropertyUnknown", ", ".join(sorted(set(data) - {"PowerLimitWatts"})) or "PowerLimitWatts")
        if set(limit) - {"SetPoint", "ControlMode"}:
            return error("PropertyUnknown", ", ".join(sorted(set(limit) - {"SetPoint", "ControlMode"})))
        mode = limit.get("ControlMode", "Automatic")
        if mode not in ("Automatic", "Disabled"):
            return error("PropertyValueNotInList", str(mode), "ControlMode")
        watts = None if mode == "Disabled" else limit.get("SetPoint", machine.wall_cap)
        return self._set_limit(request, machine, watts, "SetPoint") or self._environment(machine)
