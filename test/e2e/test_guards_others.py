"""Kinds of other projects, as far as kwatt heeds them: their CRDs here are the least that holds such objects."""
import datetime

import pytest

from bed import objects


def crd(plural, kind, group, namespaced):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}",
                         "annotations": {"api-approved.kubernetes.io": "unapproved, a test's own"}},
            "spec": {"group": group, "scope": "Namespaced" if namespaced else "Cluster",
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                     "versions": [{"name": "v1alpha1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": schema}}]}}


CRDS = [crd("capacitybuffers", "CapacityBuffer", "autoscaling.x-k8s.io", True),
        crd("nodehealthchecks", "NodeHealthCheck", "remediation.medik8s.io", False)]


@pytest.fixture
def kinds(case):
    for definition in CRDS:
        case.bed.kubectl("apply", "-f", "-", input=definition)
    case.bed.kubectl("create", "namespace", "medik8s-leases", check=False)
    yield
    for definition in CRDS:
        case.bed.kubectl("delete", "crd", definition["metadata"]["name"], "--wait=false")


def test_leases_health_checks_and_buffers_of_others_hold_machines_until_they_are_gone(case, kinds):
    none = {"powerOff": {"minAwake": 0, "idleFor": "12s"}}
    leased, checked, free, *room = case.add_each(
        {"labels": {"group": "one"}}, {"labels": {"group": "one", "checked": case.name}}, {"labels": {"group": "one"}},
        {"labels": {"group": "room"}}, {"labels": {"group": "room"}})
    moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
             "metadata": {"name": f"node-{leased}", "namespace": "medik8s-leases"},
             "spec": {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600, "renewTime": moment}}
    check = {"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck",
             "metadata": {"name": case.name}, "spec": {"selector": {"matchLabels": {"checked": case.name}}}}
    shape = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "shape", "namespace": case.name},
             "template": {"metadata": {"labels": {"app": "spare"}},
                          "spec": objects.pod_spec(cpu="6", node_selector={"case": case.name, "group": "room"})}}
    buffer = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "CapacityBuffer",
              "metadata": {"name": "spare", "namespace": case.name},
              "spec": {"podTemplateRef": {"name": "shape"}, "replicas": 2}}
    for body in (lease, check, shape, buffer):
        case.bed.kubectl("apply", "-f", "-", input=body)
    for machine in case.machines:
        case.bed.wait_node_ready(machine)
    for name in ("one", "room"):
        case.apply_policy(none | {"nodeSelector": {"matchLabels": {"group": name}}}, name=f"{case.name}-{name}")
    case.wait_off(free, seconds=60)
    assert case.reason(leased) == "ForeignOwner" and "node-maintenance" in case.power(leased)["decision"]["message"]
    assert case.reason(checked) == "ForeignOwner" and case.name in case.power(checked)["decision"]["message"]
    for machine in room:
        case.wait_reason(machine, "Headroom")
        assert f"{case.name}/spare" in case.power(machine)["decision"]["message"]
    assert all(case.commands(m) == [] for m in (leased, checked, *room))
    case.bed.kubectl("delete", "lease", f"node-{leased}", "-n", "medik8s-leases")
    case.bed.kubectl("label", "node", checked, "remediation.medik8s.io/exclude-from-remediation=true")
    case.bed.kubectl("delete", "capacitybuffer", "spare", "-n", case.name)
    for machine in (leased, checked, *room):
        case.wait_off(machine, seconds=60)
    # Room that is wanted again is woken, and no more than that.
    case.bed.kubectl("apply", "-f", "-", input=buffer | {"spec": {"podTemplateRef": {"name": "shape"}, "replicas": 1}})
    case.wait(lambda: sum(case.power(m).get("powerState") == "On" for m in room) == 1, 60, "one machine to be woken")
    woken = next(m for m in room if case.power(m)["powerState"] == "On")
    case.wait_reason(woken, "Headroom")
    case.stays(lambda: sum("On" in case.commands(m) for m in room) == 1, 3, "only one")
