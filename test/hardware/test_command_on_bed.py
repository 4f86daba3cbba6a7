"""A program of the operator, called by the real controller: here it speaks the lab's power API."""
import base64
import json
from pathlib import Path

import pytest

from on_bed import off_and_on_again
from e2e.case import CHEAP_TO_BOOT, FAST, merged
from lab.site import NAMESPACE

PASSWORD = "pdu-pass-4711"
pytestmark = [pytest.mark.xdist_group("drivers"), pytest.mark.long(80)]


@pytest.fixture(scope="module")
def secret(site):
    data = {key: base64.b64encode(value.encode()).decode()
            for key, value in (("username", "operator"), ("password", PASSWORD))}
    site.bed.api.create({"apiVersion": "v1", "kind": "Secret",
                         "metadata": {"name": "pdu", "namespace": NAMESPACE}, "data": data})
    return {"name": "pdu"}


def test_a_machine_goes_off_and_comes_back_through_the_program(site, secret, power_program):
    address = site.room.control_url + "/machines/pdu-2"
    machine = off_and_on_again(site, "pdu", {"address": f"command:lab/{address}",
                                             "credentialsSecretRef": secret})
    calls = [json.loads(line) for line in Path(f"{power_program}.log").read_text().splitlines()]
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
