"""The processes that stand for agents: a shell script here, which says what it is told and does as it is asked."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab import AgentOptions, RoomConfig, RoomThread, parse
from lab.config import load

ROOT = Path(__file__).resolve().parents[2]
POLITE = """#!/bin/sh
echo "started $*"
trap 'echo "told to end"; exit 0' TERM
while :; do sleep 0.05; done
"""
DEAF = """#!/bin/sh
trap '' TERM
echo "deaf"
while :; do sleep 0.05; done
"""


@pytest.fixture
def agent_room(make_room, tmp_path):
    """agent_room(script, **agent options): a room with node1 running the script."""
    def make(script, **options):
        program = tmp_path / "agent.sh"
        program.write_text(script)
        program.chmod(0o755)
        room = make_room(agent=AgentOptions(f"{program} --node {{node}} '--sys={{sys}}' {{proc}} {{dir}}", **options))
        room.add_machine("node1", boot_seconds=0.1, shutdown_seconds=0.3)
        return room
    return make


def output(room):
    return (room.directory("node1") / "agent.log").read_text()


def await_output(room, text):
    end = time.monotonic() + 5
    while text not in output(room):
        assert time.monotonic() < end, output(room)
        time.sleep(0.01)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def events(room):
    return [(e["event"], e.get("exitCode")) for e in room.log(machine="node1", kind="agent")]


def test_an_agent_starts_with_its_machine_and_is_told_where_its_trees_are(agent_room):
    room = agent_room(POLITE)
    await_output(room, "\n")
    home = room.directory("node1")
    assert output(room) == f"started --node node1 --sys={home}/sys {home}/proc {home}\n"
    assert alive(room.machine("node1")["agentPid"])


def test_a_graceful_shutdown_tells_the_agent_first(agent_room):
    room = agent_room(POLITE)
    await_output(room, "started")
    room.power("node1", "GracefulShutdown")
    room.wait_state("node1", "Off")
    assert "told to end" in output(room)
    assert events(room) == [("started", None), ("ended", 0)]
    room.power("node1", "On")
    room.wait_for("node1", lambda m: m["state"] == "On" and m["agentPid"])
    assert events(room)[-1] == ("started", None)


def test_loss_of_power_kills_at_once(agent_room):
    room = agent_room(POLITE)
    await_output(room, "started")
    pid = room.machine("node1")["agentPid"]
    room.power("node1", "ForceOff")
    assert not alive(pid)
    assert "told to end" not in output(room)
    assert events(room)[-1] == ("ended", -signal.SIGKILL)


def test_a_deaf_agent_is_killed_after_the_grace_even_if_the_shutdown_hangs(agent_room):
    room = agent_room(DEAF, grace_seconds=0.2)
    await_output(room, "deaf")
    room.set_faults("node1", shutdown="hang")
    room.power("node1", "GracefulShutdown")
    room.wait_for("node1", lambda m: m["agentPid"] is None)
    assert room.machine("node1")["state"] == "PoweringOff"
    assert events(room)[-1] == ("ended", -signal.SIGKILL)


def test_an_agent_that_exits_is_restarted_only_if_asked_for(agent_room):
    once = agent_room("#!/bin/sh\nexit 3\n")
    once.wait_for("node1", lambda m: m["agentPid"] is None)
    again = agent_room("#!/bin/sh\nexit 3\n", restart=True)
    end = time.monotonic() + 5
    while events(again).count(("started", None)) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    assert events(again)[:3] == [("started", None), ("ended", 3), ("started", None)]
    assert events(once) == [("started", None), ("ended", 3)]


def test_an_agent_can_be_killed_and_started_through_the_api(agent_room):
    room = agent_room(POLITE)
    await_output(room, "started")
    pid = room.http("/machines/node1/agent").json()["pid"]
    assert room.http("/machines/node1/agent", "POST", {"signal": "SIGKILL"}).status == 200
    room.wait_for("node1", lambda m: m["agentPid"] is None)
    assert not alive(pid)
    started = room.http("/machines/node1/agent", "POST", {"start": True}).json()["pid"]
    assert started not in (None, pid) and alive(started)
    room.power("node1", "ForceOff")
    assert room.http("/machines/node1/agent", "POST", {"start": True}).status == 409


def test_a_command_that_does_not_exist_is_logged(make_room):
    room = make_room(agent=AgentOptions("/no/such/agent"))
    room.add_machine("node1")
    assert room.machine("node1")["agentPid"] is None
    assert events(room) == [("failed", None)]


def test_stopping_the_room_tells_the_agents_and_leaves_none(agent_room):
    room = agent_room(POLITE)
    await_output(room, "started")
    pid = room.machine("node1")["agentPid"]
    room.stop()
    assert "told to end" in output(room) and not alive(pid)


def program(*arguments, **options):
    return subprocess.Popen([sys.executable, "-m", "lab", *arguments], cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def test_agents_do_not_survive_a_killed_lab(tmp_path):
    lab = program("--dir", str(tmp_path), "--machines", "2", "--agent-command", "sleep 60")
    try:
        assert lab.stdout.readline().startswith("lab ready machines=2 control=http://127.0.0.1:")
        found = subprocess.run(["ps", "--ppid", str(lab.pid), "-o", "pid="], capture_output=True, text=True, check=True)
        pids = [int(pid) for pid in found.stdout.split()]
        assert len(pids) == 2
    finally:
        lab.kill()
        lab.communicate()
    end = time.monotonic() + 5
    while any(Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
              for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_program_ends_on_sigterm_and_takes_its_configuration_from_a_file(tmp_path):
    config = tmp_path / "room.json"
    config.write_text('{"dir": "%s/room", "defaults": {"cpus": 4}, "machines": [{"name": "rack-{i:02}", "count": 3}]}'
                      % tmp_path)
    lab = program("--config", str(config), "--time-scale", "10")
    line = lab.stdout.readline()
    assert "machines=3" in line and f"dir={tmp_path}/room" in line
    assert (tmp_path / "room/rack-03/sys/devices/system/cpu/online").read_text() == "0-3\n"
    lab.terminate()
    assert lab.communicate(timeout=10)[1] == "" and lab.returncode == 0


BAD_CONFIGS = [
    ('{"machines": []}', "dir is missing"),
    ('{"dir": "x", "colour": 1}', "unknown field 'colour'"),
    ('{"dir": "x", "control": "0.0.0.0:80"}', "loopback only"),
    ('{"dir": "x", "machines": [{"name": "a", "cpus": "4"}]}', "cpus is not of type int"),
    ('{"dir": "x", "machines": [{"name": "a", "count": 2}]}', "has to contain {i}"),
    ('{"dir": "x", "timeScale": 0}', "timeScale"),
    ('[]', "not a JSON object"),
    ('{', "Expecting"),
]


@pytest.mark.parametrize("text, sentence", BAD_CONFIGS)
def test_a_bad_configuration_is_refused_with_a_sentence(tmp_path, text, sentence):
    file = tmp_path / "room.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        parse(load(file))


def test_the_program_refuses_a_bad_configuration(tmp_path):
    file = tmp_path / "room.json"
    file.write_text("{")
    lab = program("--config", str(file))
    assert lab.communicate(timeout=10)[1].startswith("lab: ") and lab.returncode == 2


def test_a_room_that_was_never_started_says_so(tmp_path):
    with pytest.raises(RuntimeError, match="started"):
        RoomThread(RoomConfig(dir=str(tmp_path))).log()
