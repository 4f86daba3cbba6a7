"""The bodies that the C++ side writes (golden files of test_bodies.cpp) on a real API server: stored whole, nothing
pruned, nothing refused, and each writer of a status owns only its part."""
import json
from pathlib import Path

import pytest

from bed.client import path_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "bodies"

pytestmark = pytest.mark.xdist_group("crds")


def body(name):
    return json.loads((GOLDEN / name).read_text())


def apply_status(bed, kind, name, manager):
    path = path_of(kind, "golden", None, "status") + f"?fieldManager={manager}&force=true&fieldValidation=Strict"
    return bed.api.request("PATCH", path, (GOLDEN / name).read_bytes(), "application/apply-patch+yaml")


@pytest.fixture
def golden(bed):
    for kind in ("EnergyPolicy", "NodePower"):
        bed.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": kind, "metadata": {"name": "golden"}})
    yield
    for kind in ("EnergyPolicy", "NodePower"):
        bed.api.request("DELETE", path_of(kind, "golden"))


@pytest.mark.parametrize("kind, name", [("EnergyPolicy", "energypolicy.json"), ("NodePower", "nodepower.json"),
                                        ("Site", "site.json"), ("SiteRecommendation", "siterecommendation.json")])
def test_a_whole_object_is_stored_as_written(bed, kind, name):
    wanted = body(name)
    stored = bed.api.request("POST", path_of(kind, namespace="default") + "?dryRun=All&fieldValidation=Strict", wanted)
    assert stored["spec"] == wanted["spec"]  # every setting is written, so no default is filled in


def test_the_status_of_a_policy_is_stored_as_written(bed, golden):
    stored = apply_status(bed, "EnergyPolicy", "energypolicy-status.json", "kwatt-controller-status")
    assert stored["status"] == body("energypolicy-status.json")["status"]


@pytest.mark.parametrize("kind, name", [("Site", "site-status.json"),
                                        ("SiteRecommendation", "siterecommendation-status.json")])
def test_the_status_of_a_site_and_of_a_recommendation_is_stored_as_written(bed, kind, name):
    bed.api.request("POST", path_of(kind, namespace="default"),
                    {"apiVersion": "kwatt.dev/v1alpha1", "kind": kind, "metadata": {"name": "golden"}})
    try:
        path = path_of(kind, "golden", "default", "status") + "?fieldManager=kwatt-controller-status&force=true" \
            "&fieldValidation=Strict"
        stored = bed.api.request("PATCH", path, (GOLDEN / name).read_bytes(), "application/apply-patch+yaml")
        assert stored["status"] == body(name)["status"]
    finally:
        bed.api.request("DELETE", path_of(kind, "golden", "default"))


def test_controller_and_agent_each_own_their_part_of_a_machine(bed, golden):
    controller = body("nodepower-status.json")["status"]
    agent = body("nodepower-report.json")["status"]
    assert "report" not in controller and list(agent) == ["report"]
    apply_status(bed, "NodePower", "nodepower-status.json", "kwatt-controller-status")
    apply_status(bed, "NodePower", "nodepower-report.json", "kwatt-agent")
    stored = apply_status(bed, "NodePower", "nodepower-status.json", "kwatt-controller-status")
    assert stored["status"] == controller | agent


def test_an_old_resource_version_is_a_conflict(bed, golden):
    first = bed.api.get("NodePower", "golden")["metadata"]["resourceVersion"]
    apply_status(bed, "NodePower", "nodepower-report.json", "kwatt-agent")
    stale = body("nodepower-status.json")
    stale["metadata"]["resourceVersion"] = first
    path = path_of("NodePower", "golden", None, "status") + "?fieldManager=kwatt-controller-status&force=true"
    with pytest.raises(Exception, match="409"):
        bed.api.request("PATCH", path, json.dumps(stale).encode(), "application/apply-patch+yaml")


def test_lease_and_event_are_accepted(bed):
    lease = body("lease.json")
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases?fieldValidation=Strict"
    assert bed.api.request("POST", path, lease)["spec"] == lease["spec"]
    event = body("event.json")
    path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldValidation=Strict"
    stored = bed.api.request("POST", path, event)
    assert {key: stored[key] for key in event if key != "metadata"} == {
        key: value for key, value in event.items() if key != "metadata"}
