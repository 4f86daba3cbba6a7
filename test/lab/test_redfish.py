import json
import ssl
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

SYSTEM = "/redfish/v1/Systems/node1"
RESET = SYSTEM + "/Actions/ComputerSystem.Reset"
POWER = "/redfish/v1/Chassis/node1/Power"
METRICS = "/redfish/v1/Chassis/node1/EnvironmentMetrics"
SESSIONS = "/redfish/v1/SessionService/Sessions"


def message_id(reply):
    error = reply.json()["error"]
    info = error["@Message.ExtendedInfo"][0]
    assert error["code"] == info["MessageId"] and info["Message"] and info["Resolution"] and info["MessageSeverity"]
    return info["MessageId"].split(".")[-1]


def test_links_lead_from_the_root_to_every_resource(redfish):
    seen, todo = set(), ["/redfish/v1/"]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        reply = redfish.get(path)
        assert reply.status == 200 and reply.headers["OData-Version"] == "4.0" and reply.headers["ETag"]
        assert reply.json()["@odata.etag"] == reply.headers["ETag"] and reply.json()["@odata.type"].startswith("#")

        def links(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    if key == "@odata.id" and "#" not in inner:
                        yield inner
                    yield from links(inner)
            if isinstance(value, list):
                for inner in value:
                    yield from links(inner)
        todo += links(reply.json())
    assert {SYSTEM, POWER, METRICS, SESSIONS, "/redfish/v1/Systems/node2", "/redfish/v1/Chassis/node1"} <= seen


def test_only_the_root_is_open(redfish):
    assert redfish.get("/redfish", credentials=None).json() == {"v1": "/redfish/v1/"}
    assert redfish.get("/redfish/v1", credentials=None).status == 200
    for credentials in (None, "admin:wrong", "nobody:s3cret", ""):
        for reply in (redfish.get(SYSTEM, credentials=credentials),
                      redfish.post(RESET, {"ResetType": "ForceOff"}, credentials=credentials)):
            assert (reply.status, message_id(reply)) == (401, "NoValidSession")
            assert reply.headers["WWW-Authenticate"].startswith("Basic")
    assert redfish.room.machine("node1")["state"] == "On"


def test_a_stranger_to_the_certificate_is_not_talked_to(redfish):
    with pytest.raises(urllib.error.URLError) as raised:
        urllib.request.urlopen(redfish.room.redfish_url + "/redfish/v1", timeout=5)
    assert isinstance(raised.value.reason, ssl.SSLCertVerificationError)


def test_a_reset_answers_at_once_and_power_state_follows(redfish):
    actions = redfish.get(SYSTEM).json()["Actions"]["#ComputerSystem.Reset"]
    assert actions["target"] == RESET
    assert actions["ResetType@Redfish.AllowableValues"] == ["On", "GracefulShutdown", "ForceOff"]
    assert redfish.post(RESET, {"ResetType": "GracefulShutdown"}, Kwatt_Operation_Id="op-1").status == 204
    assert redfish.get(SYSTEM).json()["PowerState"] == "PoweringOff"
    busy = redfish.post(RESET, {"ResetType": "On"})
    assert (busy.status, message_id(busy)) == (409, "ResourceInUse")
    redfish.room.wait_state("node1", "Off")
    assert redfish.get(SYSTEM).json()["PowerState"] == "Off"
    assert redfish.post(RESET, {"ResetType": "ForceOff"}).status == 204, "nothing to do is no error"
    assert redfish.post(RESET, {"ResetType": "On"}).status == 204
    assert redfish.get(SYSTEM).json()["PowerState"] == "PoweringOn"
    redfish.room.wait_state("node1", "On")
    log = redfish.room.log(machine="node1", kind="command")
    assert [(e["command"], e["source"], e["operationId"], e["status"]) for e in log] == [
        ("GracefulShutdown", "redfish", "op-1", 202), ("On", "redfish", "", 409), ("ForceOff", "redfish", "", 200),
        ("On", "redfish", "", 202)]
    assert redfish.room.machine("node2")["state"] == "On"


BAD = [
    ("post", RESET, b"{", 400, "MalformedJSON"),
    ("post", RESET, {}, 400, "ActionParameterMissing"),
    ("post", RESET, {"ResetType": "Nmi"}, 400, "ActionParameterValueNotInList"),
    ("post", RESET, {"ResetType": {"a": 1}}, 400, "ActionParameterValueNotInList"),
    ("get", RESET, None, 405, "OperationNotAllowed"),
    ("post", SYSTEM, {}, 405, "OperationNotAllowed"),
    ("delete", "/redfish/v1/Systems", None, 405, "OperationNotAllowed"),
    ("get", "/redfish/v1/Systems/node9", None, 404, "ResourceMissingAtURI"),
    ("get", SYSTEM + "/Nothing", None, 404, "ResourceMissingAtURI"),
    ("get", "/redfish/v1/Managers", None, 404, "ResourceMissingAtURI"),
    ("patch", POWER, b"{", 400, "MalformedJSON"),
    ("patch", POWER, {"PowerControl": {}}, 400, "PropertyValueTypeError"),
    ("patch", POWER, {"PowerControl": [{"PowerLimit": {"LimitInWatts": 1}}]}, 400, "PropertyValueOutOfRange"),
    ("patch", POWER, {"PowerControl": [{"PowerLimit": {"LimitInWatts": "200"}}]}, 400, "PropertyValueTypeError"),
    ("patch", POWER, {"PowerControl": [{"PowerLimit": {"Watts": 200}}]}, 400, "PropertyUnknown"),
    ("patch", POWER, {"PowerControl": [{"PowerCapacityWatts": 9}]}, 400, "PropertyUnknown"),
    ("patch", METRICS, b"{", 400, "MalformedJSON"),
    ("patch", METRICS, {"PowerWatts": {"Reading": 1}}, 400, "PropertyUnknown"),
    ("patch", METRICS, {"PowerLimitWatts": {"Reading": 1}}, 400, "PropertyUnknown"),
    ("patch", METRICS, {"PowerLimitWatts": {"SetPoint": 1}}, 400, "PropertyValueOutOfRange"),
    ("patch", METRICS, {"PowerLimitWatts": {"SetPoint": "200"}}, 400, "PropertyValueTypeError"),
    ("patch", METRICS, {"PowerLimitWatts": {"SetPoint": 300, "ControlMode": "Maybe"}}, 400, "PropertyValueNotInList"),
    ("post", SESSIONS, b"{", 400, "MalformedJSON"),
    ("post", SESSIONS, {"UserName": "admin", "Password": "wrong"}, 401, "NoValidSession"),
    ("post", SESSIONS, {}, 401, "NoValidSession"),
    ("get", SESSIONS + "/99", None, 404, "ResourceMissingAtURI"),
]


@pytest.mark.parametrize("method, path, body, status, message", BAD, ids=lambda value: str(value)[:30])
def test_errors_are_redfish_errors(redfish, method, path, body, status, message):
    reply = getattr(redfish, method)(path, body)
    assert (reply.status, message_id(reply)) == (status, message)
    if status == 405:
        assert reply.headers["Allow"]
    assert redfish.room.machine("node1")["capWatts"] is None


def test_a_power_limit_is_set_reported_and_felt(redfish):
    redfish.room.set_load("node1", 100)
    assert redfish.get(POWER).json()["PowerControl"][0]["PowerConsumedWatts"] > 390
    reply = redfish.patch(POWER, {"PowerControl": [{"PowerLimit": {"LimitInWatts": 300}}]})
    control = reply.json()["PowerControl"][0]
    assert (reply.status, control["PowerLimit"]["LimitInWatts"]) == (200, 300)
    assert control["PowerConsumedWatts"] <= 300 and control["PowerCapacityWatts"] == 406
    redfish.patch(POWER, {"PowerControl": [{"PowerLimit": {"LimitInWatts": None}}]})
    assert redfish.get(POWER).json()["PowerControl"][0]["PowerLimit"]["LimitInWatts"] is None
    assert [e["watts"] for e in redfish.room.log(kind="cap")] == [300, None]


def test_the_newer_model_is_the_same_limit(redfish):
    redfish.room.set_load("node1", 100)
    limit = redfish.get(METRICS).json()["PowerLimitWatts"]
    assert (limit["SetPoint"], limit["ControlMode"]) == (None, "Disabled")
    wanted = {"PowerLimitWatts": {"SetPoint": 300, "ControlMode": "Automatic"}}
    reply = redfish.patch(METRICS, wanted)
    assert reply.json()["PowerLimitWatts"]["SetPoint"] == 300 and reply.json()["PowerWatts"]["Reading"] <= 300
    assert redfish.get(POWER).json()["PowerControl"][0]["PowerLimit"]["LimitInWatts"] == 300
    assert redfish.patch(METRICS, wanted, If_Match='W/"old"').status == 412
    redfish.patch(METRICS, {"PowerLimitWatts": {"ControlMode": "Disabled"}})
    assert redfish.get(POWER).json()["PowerControl"][0]["PowerLimit"]["LimitInWatts"] is None
    assert limit["AllowableMin"] > 100 and limit["AllowableMax"] == 406


def test_a_session_is_opened_used_and_deleted(redfish):
    opened = redfish.post(SESSIONS, {"UserName": "admin", "Password": "s3cret"}, credentials=None)
    assert opened.status == 201 and opened.headers["Location"] == opened.json()["@odata.id"]
    token = opened.headers["X-Auth-Token"]
    assert redfish.get(SYSTEM, credentials=None, X_Auth_Token=token).status == 200
    assert redfish.get(SYSTEM, credentials=None, X_Auth_Token=token + "x").status == 401
    assert redfish.get(SESSIONS).json()["Members@odata.count"] == 1
    assert redfish.delete(opened.headers["Location"], None, credentials=None, X_Auth_Token=token).status == 204
    assert redfish.get(SYSTEM, credentials=None, X_Auth_Token=token).status == 401


def test_an_etag_guards_changes_and_spares_reading(redfish):
    etag = redfish.get(POWER).headers["ETag"]
    assert redfish.get(POWER, If_None_Match=etag).status == 304
    limit = {"PowerControl": [{"PowerLimit": {"LimitInWatts": 300}}]}
    changed = redfish.patch(POWER, limit, If_Match=etag)
    assert changed.status == 200 and changed.headers["ETag"] != etag
    stale = redfish.patch(POWER, {"PowerControl": [{"PowerLimit": {"LimitInWatts": 200}}]}, If_Match=etag)
    assert (stale.status, message_id(stale)) == (412, "PreconditionFailed")
    assert redfish.patch(POWER, limit, If_Match="*").status == 200
    system = redfish.get(SYSTEM).headers["ETag"]
    redfish.room.power("node1", "ForceOff")
    assert redfish.get(SYSTEM, If_None_Match=system).status == 200, "another power state is another version"


def test_each_machine_has_a_port_of_its_own_too(redfish):
    address = urlsplit(redfish.room.machine("node2")["redfish"].removeprefix("redfish+"))
    base = f"https://{address.netloc}"
    assert base != redfish.room.redfish_url
    members = redfish.get("/redfish/v1/Systems", base=base).json()["Members"]
    assert members == [{"@odata.id": "/redfish/v1/Systems/node2"}]
    assert redfish.get(address.path, base=base).json()["Id"] == "node2"
    assert redfish.get(SYSTEM, base=base).status == 404


def test_faults_show_here_as_well(redfish):
    redfish.room.set_faults("node1", bmc="unavailable")
    reply = redfish.get(SYSTEM)
    assert (reply.status, message_id(reply), reply.headers["Retry-After"]) == (503, "ServiceTemporarilyUnavailable", "1")
    redfish.room.set_faults("node1", bmc="unauthorized")
    assert redfish.get(SYSTEM).status == 401
    redfish.room.set_faults("node1", bmc="lies", meter="absent")
    assert redfish.get(SYSTEM).json()["PowerState"] == "Off"
    assert redfish.get(POWER).json()["PowerControl"][0]["PowerConsumedWatts"] is None
    redfish.room.set_faults("node1", bmc="html", shutdown="deaf")
    with pytest.raises(json.JSONDecodeError):
        redfish.get(SYSTEM).json()
    assert redfish.get("/redfish/v1/Systems/node2").status == 200
    redfish.room.set_faults("node1", bmc="ok")
    for reset in ("GracefulShutdown", "ForceOff"):
        assert redfish.post(RESET, {"ResetType": reset}).status == 204
        assert redfish.get(SYSTEM).json()["PowerState"] == "On", "it accepts, and nothing happens"
