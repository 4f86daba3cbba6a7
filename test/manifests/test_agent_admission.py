"""What an agent's token can write: the report of its own NodePower, and nothing else."""
import json
from pathlib import Path

import pytest
import yaml

from bed import CommandError, wait_until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("manifests")

REPORT = {"report": {"governor": "powersave", "watts": 120}}


@pytest.fixture(scope="module")
def bed(bare_bed):
    # The API server reads policies from a watch of its own: wait until this one counts.
    stranger = kubeconfig(bare_bed, bound_node="n1")
    wait_until(lambda: refusal(bare_bed, stranger, "n2", {"watts": 1}), 20, "the admission policy to be in force")
    return bare_bed


def kubeconfig(bed, **options):
    return bed.kubeconfig_for_token(bed.token_for("kwatt-agent", "kwatt-system", **options))


def apply_status(bed, config, node, status):
    body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower", "metadata": {"name": node}, "status": status}
    bed.kubectl("apply", "--server-side", "--force-conflicts", "--subresource=status", "--field-manager=kwatt-agent",
                "-f", "-", input=json.dumps(body), kubeconfig=config)


def refusal(bed, config, node, status):
    """What the API server says against it; "" if it was accepted."""
    try:
        apply_status(bed, config, node, status)
    except CommandError as error:
        return error.stderr
    return ""


def test_an_agent_writes_the_report_of_its_own_machine(bed):
    apply_status(bed, kubeconfig(bed, bound_node="n1"), "n1", REPORT)
    assert bed.api.get("NodePower", "n1")["status"]["report"]["governor"] == "powersave"


def test_a_report_is_still_accepted_when_the_controller_has_written_its_part(bed):
    bed.kubectl("patch", "nodepower", "n1", "--subresource=status", "--type=merge", "--patch",
                json.dumps({"status": {"powerState": "On", "watts": 5, "decision": {"desired": "On", "reason": "Idle"},
                                       "operation": {"id": "x", "kind": "PowerOff"},
                                       "memory": {"failureCount": 1}}}))
    apply_status(bed, kubeconfig(bed, bound_node="n1"), "n1", REPORT)


@pytest.mark.parametrize("options", [{"bound_node": "n1"}, {}], ids=["another node's", "no node's"])
def test_a_token_of_another_node_or_of_none_is_refused(bed, options):
    said = refusal(bed, kubeconfig(bed, **options), "n2", REPORT)
    assert "only the NodePower of the node that its token is bound to" in said
    assert "report" not in bed.api.get("NodePower", "n2").get("status", {})


CONTROLLERS = {"powerState": "Off", "powerStateSince": "2026-11-20T00:00:00Z", "watts": 1,
               "decision": {"desired": "Off", "reason": "Idle"}, "operation": {"id": "evil", "kind": "PowerOff"},
               "memory": {"poweredOffByUs": True}, "bmc": {"originalKnown": True}, "power": {"meter": "hwmon"}}


@pytest.mark.parametrize("field", sorted(CONTROLLERS))
def test_an_agent_cannot_write_what_is_the_controllers(bed, field):
    said = refusal(bed, kubeconfig(bed, bound_node="n2"), "n2", {field: CONTROLLERS[field]})
    assert "nothing but status.report" in said


def test_every_field_of_the_status_is_either_the_agents_or_guarded():
    crd = yaml.safe_load((ROOT / "crds" / "nodepowers.yaml").read_text())
    status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert set(status) == {"report", *CONTROLLERS}
