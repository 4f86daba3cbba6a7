"""A program of the operator, called by the real controller: here it speaks the lab's power API."""
import base64
import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from on_bed import off_and_on_again  # noqa: E402 (it makes the packages below known)
from e2e.case import CHEAP_TO_BOOT, FAST, merged  # noqa: E402
from lab.site import NAMESPACE, Site  # noqa: E402

PASSWORD = "pdu-pass-4711"
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


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("command") / "lab-power"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory, program):
    with Site(tmp_path_factory.mktemp("command-site"), agents=False, redfish=False) as site:
        site.start_controller("--bmc-command", f"lab={program}")
        data = {key: base64.b64encode(value.encode()).decode()
                for key, value in (("username", "operator"), ("password", PASSWORD))}
        site.bed.api.create({"apiVersion": "v1", "kind": "Secret",
                             "metadata": {"name": "pdu", "namespace": NAMESPACE}, "data": data})
        yield site


def test_a_machine_goes_off_and_comes_back_through_the_program(site, program):
    address = site.room.control_url + "/machines/pdu-2"
    machine = off_and_on_again(site, "pdu", {"address": f"command:lab/{address}",
                                             "credentialsSecretRef": {"name": "pdu"}})
    calls = [json.loads(line) for line in Path(f"{program}.log").read_text().splitlines()]
    assert {tuple(call["argv"][1:]) for call in calls} == {(machine,)}
    changes = [call for call in calls if call["argv"][0] not in ("state", "power")]
    assert [call["argv"][0] for call in changes] == ["soft-off", "on"]
    assert len({call["KWATT_OPERATION_ID"] for call in changes}) == 2 and all(c["KWATT_OPERATION_ID"] for c in changes)
    assert {(call["KWATT_USER"], call["KWATT_PASSWORD"]) for call in calls} == {("operator", PASSWORD)}
    assert PASSWORD not in site.controller.log_path.read_text()


def test_a_name_that_the_operator_did_not_give_is_no_driver(site):
    site.add_machine("stranger", bmc=None, labels={"case": "stranger"}, model=CHEAP_TO_BOOT)
    site.bed.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": "stranger"},
                         "spec": merged(FAST, {"nodeSelector": {"matchLabels": {"case": "stranger"}},
                                               "powerOff": {"minAwake": 0}})})
    site.bed.api.patch("NodePower", "stranger", {"spec": {"bmc": {"address": "command:sh"}}})
    site.wait(lambda: site.machine_power("stranger").get("decision", {}).get("reason") == "NoDriver", 20, "NoDriver")
