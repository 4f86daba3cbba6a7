"""One site for the drivers' end-to-end tests, whose controller knows a program of the operator, too."""
import pytest

from lab.site import Site

# Calls the lab's own power API, and notes what it was called with beside itself.
PROGRAM = """#!/usr/bin/python3
import json, os, sys, urllib.request
verb, node = sys.argv[1:3]
trace = {key: os.environ.get(key) for key in ("KWATT_ADDRESS", "KWATT_OPERATION_ID", "KWATT_USER", "KWATT_PASSWORD")}
with open(__file__ + ".log", "a") as log:
    log.write(json.dumps({"argv": sys.argv[1:], **trace}) + "\\n")
url = os.environ["KWATT_ADDRESS"].removeprefix("command:lab/") + "/power"
reset = {"on": "On", "soft-off": "GracefulShutdown", "off": "ForceOff"}.get(verb)
body = json.dumps({"reset": reset}).encode() if reset else None
answer = json.load(urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})))
words = {"On": "on", "Off": "off", "PoweringOn": "powering-on", "PoweringOff": "powering-off"}
if verb == "state":
    print(words[answer["state"]])
"""


@pytest.fixture(scope="session")
def power_program(tmp_path_factory):
    path = tmp_path_factory.mktemp("command") / "lab-power"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def site(tmp_path_factory, power_program):
    with Site(tmp_path_factory.mktemp("drivers-site"), redfish=False) as site:
        site.start_controller("--bmc-command", f"lab={power_program}")
        yield site
