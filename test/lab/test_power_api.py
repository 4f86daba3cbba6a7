"""The control API over HTTP, as kwatt's lab driver and an observer use it."""

import http.client
import json
import socket
import time
import urllib.error
from urllib.parse import urlsplit

import pytest


def test_a_power_document_is_as_the_readme_says(room):
    document = room.http("/machines/node1/power").json()
    assert list(document) == ["name", "state", "since", "bootId", "watts", "capWatts", "capRange"]
    assert (document["name"], document["state"], document["capWatts"]) == ("node1", "On", None)
    assert document["capRange"] == {"minWatts": 154, "maxWatts": 406}
    assert document["bootId"] and document["since"].endswith("Z")


def test_a_machine_goes_off_and_on(room):
    first = room.http("/machines/node1/power").json()["bootId"]
    reply = room.http("/machines/node1/power", "POST", {"reset": "GracefulShutdown"})
    assert (reply.status, reply.json()["state"], reply.json()["bootId"]) == (202, "PoweringOff", "")
    assert room.http("/machines/node1/power", "POST", {"reset": "On"}).status == 409
    assert room.wait_state("node1", "Off")["watts"] == 5
    assert room.http("/machines/node1/power", "POST", {"reset": "ForceOff"}).status == 200
    assert room.http("/machines/node1/power", "POST", {"reset": "On"}).json()["state"] == "PoweringOn"
    assert room.wait_state("node1", "On")["bootId"] not in ("", first)


BAD = [
    ("POST", "/machines/node1/power", b"{", 400),
    ("POST", "/machines/node1/power", b"[]", 400),
    ("POST", "/machines/node1/power", b"[" * 20_000, 400),
    ("POST", "/machines/node1/power", {"reset": "PowerCycle"}, 400),
    ("POST", "/machines/node1/power", {"reset": ["On"]}, 400),
    ("POST", "/machines/node1/power", {}, 400),
    ("POST", "/machines/node1/power", b" " * 70_000, 413),
    ("DELETE", "/machines/node1/power", None, 405),
    ("PUT", "/machines/node1/cap", {"watts": 9}, 400),
    ("PUT", "/machines/node1/cap", {"watts": "200"}, 400),
    ("PUT", "/machines/node1/cap", {"watts": True}, 400),
    ("PUT", "/machines/node1/cap", b'{"watts": NaN}', 400),
    ("PUT", "/machines/node1/cap", {}, 400),
    ("GET", "/machines/node9/power", None, 404),
    ("GET", "/machines/node1/nothing", None, 404),
    ("GET", "/nothing", None, 404),
    ("PUT", "/log", None, 405),
    ("GET", "/log?since=yesterday", None, 400),
    ("POST", "/machines/node1/load", {"percent": -1}, 400),
    ("POST", "/machines/node1/load", {"percent": "much"}, 400),
    ("PUT", "/machines/node1/faults", {"bmc": "grumpy"}, 400),
    ("PUT", "/machines/node1/faults", {"mood": "bad"}, 400),
    ("POST", "/machines/node1/agent", {"signal": "SIGNOTHING"}, 400),
    ("POST", "/machines/node1/agent", {"signal": "SIGTERM"}, 409),
    ("POST", "/machines", {"name": "node1"}, 400),
    ("POST", "/machines", {"name": "node2", "colour": "red"}, 400),
    ("POST", "/machines", {"cpus": 4}, 400),
]


@pytest.mark.parametrize("method, path, body, status", BAD, ids=lambda value: str(value)[:30])
def test_bad_requests_are_refused_with_a_sentence_and_change_nothing(room, method, path, body, status):
    reply = room.http(path, method, body)
    assert reply.status == status
    assert " " in reply.json()["error"]
    assert room.machine("node1")["state"] == "On" and room.machine("node1")["capWatts"] is None


def test_a_cap_limits_the_draw_until_it_is_lifted(room):
    room.set_load("node1", 95)
    for policy in range(0, 16, 4):
        path = room.directory("node1") / f"sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor"
        path.write_text("performance\n")
    room.wait_for("node1", lambda m: m["watts"] > 370)
    assert room.http("/machines/node1/cap", "PUT", {"watts": 250}).json()["capWatts"] == 250
    assert room.machine("node1")["watts"] <= 250 and room.machine("node1")["throttled"]
    assert room.http("/machines/node1/cap", "PUT", {"watts": None}).json()["capWatts"] is None
    assert room.machine("node1")["watts"] > 370


def test_the_log_has_commands_with_operation_ids_before_the_changes_they_cause(room):
    headers = {"Kwatt-Operation-Id": "op-7"}
    room.http("/machines/node1/power", "POST", {"reset": "GracefulShutdown"}, headers)
    room.wait_state("node1", "Off")
    room.http("/machines/node1/cap", "PUT", {"watts": 200}, headers)
    room.http("/machines/node1/button", "POST", {"reset": "On"})
    room.http("/machines/node1/button", "POST", {"reset": "GracefulShutdown"})
    reply = room.http("/log").json()
    entries = reply["entries"]
    assert reply["dropped"] == 0
    assert [e["seq"] for e in entries] == list(range(1, len(entries) + 1))
    told = [(e["kind"], e.get("command") or e.get("to") or e.get("watts"), e.get("source"), e.get("operationId"),
             e.get("status")) for e in entries]
    assert told == [
        ("state", "On", None, None, None),
        ("command", "GracefulShutdown", "lab", "op-7", 202),
        ("state", "PoweringOff", None, None, None),
        ("state", "Off", None, None, None),
        ("cap", 200, "lab", "op-7", None),
        ("command", "On", "button", "", 202),
        ("state", "PoweringOn", None, None, None),
        ("command", "GracefulShutdown", "button", "", 409),
    ]
    assert [e["seq"] for e in room.http("/log?since=6").json()["entries"]] == [7, 8]
    assert [e["kind"] for e in room.http("/log?kind=cap&machine=node1").json()["entries"]] == ["cap"]
    assert room.http("/log?machine=node9").json()["entries"] == []


def test_a_bounded_log_says_how_much_it_dropped(make_room):
    room = make_room(log_limit=3)
    room.add_machine("node1")
    for percent in range(5):
        room.set_load("node1", percent)
    reply = room.http("/log").json()
    assert (len(reply["entries"]), reply["dropped"]) == (3, 3)


def test_a_sick_bmc_answers_in_its_own_way_but_observers_see_the_truth(room):
    def power():
        return room.http("/machines/node1/power")

    room.set_faults("node1", bmc="unavailable")
    assert (power().status, power().headers["Retry-After"]) == (503, "1")
    room.set_faults("node1", bmc="unauthorized")
    assert power().status == 401
    room.set_faults("node1", bmc="html")
    assert power().text.startswith("<!DOCTYPE html>") and power().status == 200
    room.set_faults("node1", bmc="lies")
    assert power().json()["state"] == "Off"
    room.set_faults("node1", bmc="slow", bmcDelaySeconds=0.3)
    start = time.monotonic()
    assert power().status == 200 and time.monotonic() - start >= 0.3
    room.set_faults("node1", bmc="drop")
    with pytest.raises((http.client.HTTPException, ConnectionError, urllib.error.URLError)):
        power()
    room.set_faults("node1", bmc="truncated")
    with pytest.raises((http.client.HTTPException, json.JSONDecodeError)):
        power().json()
    assert room.http("/machines/node1").json()["state"] == "On"
    assert room.http("/machines/node1/faults", "DELETE").json()["bmc"] == "ok"
    assert power().status == 200


def test_a_counted_fault_ends_by_itself(room):
    room.http("/machines/node1/faults", "PUT", {"bmc": "unavailable", "bmcCount": 2})
    assert [room.http("/machines/node1/power").status for _ in range(3)] == [503, 503, 200]


def test_a_command_to_a_broken_bmc_does_nothing(room):
    room.set_faults("node1", bmc="unavailable")
    assert room.http("/machines/node1/power", "POST", {"reset": "ForceOff"}).status == 503
    assert room.machine("node1")["state"] == "On"
    assert room.log(kind="command") == []


@pytest.mark.parametrize("fault, says", [("absent", None), ("zero", 0), ("max", 4294967295)])
def test_a_sick_meter_says_something_else(room, fault, says):
    room.set_faults("node1", meter=fault)
    assert room.http("/machines/node1/power").json()["watts"] == says
    assert room.machine("node1")["watts"] > 100


def test_machines_come_and_go_while_the_room_runs(room):
    added = room.http("/machines", "POST", {"name": "node2", "cpus": 4, "packages": 1, "initialState": "Off"})
    assert (added.status, added.json()["state"], added.json()["cpus"]) == (201, "Off", 4)
    assert [m["name"] for m in room.http("/machines").json()["items"]] == ["node1", "node2"]
    endpoints = json.loads((room.directory("node2").parent / "endpoints.json").read_text())
    assert endpoints["machines"]["node2"]["power"] == added.json()["power"]
    assert endpoints["control"] == room.control_url
    assert room.http("/machines/node2", "DELETE").status == 204
    assert room.http("/machines/node2").status == 404


def test_load_is_set_and_read_back_and_shows_in_watts(room):
    before = room.machine("node1")["watts"]
    reply = room.http("/machines/node1/load", "POST", {"percent": 85})
    assert reply.json() == {"percent": 85, "podMillicores": 0, "demandPercent": 85}
    assert room.machine("node1")["watts"] > before + 100
    assert room.http("/energy").json()["watts"] == pytest.approx(room.machine("node1")["watts"])


def test_the_trees_follow_without_being_asked(room):
    energy = room.directory("node1") / "sys/class/powercap/intel-rapl:0/energy_uj"
    stat = room.directory("node1") / "proc/stat"
    first = int(energy.read_text()), stat.read_text()
    deadline = time.monotonic() + 5
    while (int(energy.read_text()) == first[0] or stat.read_text() == first[1]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert int(energy.read_text()) > first[0] and stat.read_text() != first[1]


def test_one_connection_serves_many_requests_and_nonsense_ends_it(room):
    address = urlsplit(room.control_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=5)
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
    connection.close()
    for nonsense, status in ((b"hello\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000, b"431"),
                             (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
                             (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", b"400")):
        with socket.create_connection((address.hostname, address.port), 5) as raw:
            raw.sendall(nonsense)
            assert raw.recv(4096).split(b" ")[1] == status


def test_a_room_that_cannot_start_says_why(make_room, tmp_path):
    taken = make_room()
    with pytest.raises(OSError, match="address already in use"):
        make_room(control=taken.control_url.removeprefix("http://"))
