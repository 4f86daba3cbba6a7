"""The CRDs on a real API server: it takes them, judges policies as the C++ side does, and kubectl reads well.

What is valid stands in test/golden/policies, which test_validate.cpp reads as well.
"""
import json
from pathlib import Path

import pytest
import yaml

from bed import ApiError
from bed.client import path_of

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "test" / "golden" / "policies"
KINDS = {"energypolicies.yaml": "EnergyPolicy", "nodepowers.yaml": "NodePower", "sites.yaml": "Site",
         "siterecommendations.yaml": "SiteRecommendation", "estimators.yaml": "Estimator"}

pytestmark = pytest.mark.xdist_group("crds")  # one control plane for these files


def cases():
    for file, kind in KINDS.items():
        table = yaml.safe_load((GOLDEN / file).read_text())
        names = [case["name"] for case in table]
        assert len(set(names)) == len(names), f"two cases of {file} have one name"
        for case in table:
            yield pytest.param(kind, case, id=f"{kind}: {case['name']}")


def create(bed, kind, name, spec, dry_run=True):
    body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
    return bed.api.request("POST", path_of(kind, namespace="default") + query, body)


@pytest.mark.parametrize("kind, case", cases())
def test_the_api_server_judges_as_the_table_says(bed, kind, case):
    if case.get("refused") != "api":
        create(bed, kind, "case", case["spec"])
        return
    with pytest.raises(ApiError) as refusal:
        create(bed, kind, "case", case["spec"])
    assert refusal.value.status == 422
    said = [line["field"] + ": " + line["message"] for line in refusal.value.body["details"]["causes"]]
    wanted = case.get("says_api") or case["says"]
    assert any(line.startswith(case["field"]) and wanted in line for line in said), said


def test_the_schemas_are_structural_and_their_names_accepted(bed):
    for name in ("energypolicies", "nodepowers", "sites", "siterecommendations", "estimators"):
        crd = bed.kubectl_json("get", f"crd/{name}.kwatt.dev")
        conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        assert conditions.get("Established") == "True" and conditions.get("NamesAccepted") == "True"
        assert "NonStructuralSchema" not in conditions


def test_no_key_of_a_crd_is_read_as_a_boolean():
    """YAML 1.1, which kubectl reads, takes a bare `on` or `off` for true or false."""
    def keys(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from keys(inner)

    for file in KINDS:
        crd = yaml.safe_load((ROOT / "crds" / file).read_text())
        assert [key for key in keys(crd) if not isinstance(key, str)] == []


def test_unknown_fields_are_refused_when_asked_to(bed):
    with pytest.raises(ApiError) as refusal:
        create(bed, "EnergyPolicy", "case", {"powerOf": {"enabled": False}})
    assert "unknown field" in str(refusal.value)


STATUS = {
    "EnergyPolicy": {
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "all well",
                        "observedGeneration": 1, "lastTransitionTime": "2026-11-20T21:44:03Z"}],
        "nodes": {"selected": 10, "on": 7, "off": 3, "transitioning": 0, "slow": 2, "capped": 1, "unready": 0},
        "power": {"measuredMilliwatts": 1200000, "estimatedMilliwatts": 34000, "baselineMilliwatts": 2000000,
                  "savedWattHours": 567, "savedGramsCO2": 0, "baseline": "all on", "watts": 1234},
        "lastAction": "node3 is off"},
    "NodePower": {
        "powerState": "Off", "watts": 5,
        "decision": {"desired": "Off", "reason": "Idle", "since": "2026-11-20T21:44:03Z"},
        "report": {"governor": "powersave", "effectiveCapWatts": 150},
        "bmc": {"powerLimit": True, "effectiveCapWatts": 160}},
    "Site": {
        "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "all well"}],
        "free": {"cpuMillicores": 1000, "memoryMebibytes": 5, "gpus": 0, "ips": 3},
        "freeBandwidthMbps": 900, "cpuLoadPercent": 42},
    "SiteRecommendation": {
        "conditions": [{"type": "Ready", "status": "True", "reason": "Recommended", "message": "d is best"}],
        "site": "d", "total": 220, "sitesTotal": 3, "excludedTotal": 2,
        "sites": [{"name": "d", "total": 220, "recommended": True, "affinity": True,
                   "scores": [{"name": "Indicator/X", "raw": 2, "normalized": 2, "weight": 10, "weighted": 20}]}],
        "excluded": [{"name": "c", "plugin": "Taint", "reason": "tainted", "totalIfTolerated": 330}],
        "machines": [{"site": "d", "phase": "Started", "machineID": "vm-7"}]},
    "Estimator": {
        "conditions": [{"type": "Ready", "status": "True", "reason": "Answering", "message": "2 of 2 nodes",
                        "lastTransitionTime": "2026-11-20T21:44:03Z"}],
        "nodesTotal": 2, "nodesUsable": 1, "watts": 164,
        "nodes": [{"nodeName": "big", "milliwatts": 164000, "fullMilliwatts": 300000, "freeMillicores": 8000,
                   "freePods": 110, "reason": "", "message": ""}]},
}
HEADERS = {
    "EnergyPolicy": ["NAME", "MODE", "NODES", "OFF", "SLOW", "CAPPED", "WATTS", "SAVED", "READY", "AGE", "REASON",
                     "LAST-ACTION"],
    "NodePower": ["NAME", "STATE", "WATTS", "GOVERNOR", "CAP", "BMC-CAP", "DECISION", "REASON", "SINCE"],
    "Site": ["NAME", "REGION", "ISP", "KIND", "AVAILABLE", "CPU-LOAD", "FREE-MBPS", "READY", "AGE", "CLUSTER", "ZONE",
             "REASON"],
    "SiteRecommendation": ["NAME", "ACTION", "SITE", "TOTAL", "FIT", "EXCLUDED", "READY", "AGE", "MACHINE", "REASON"],
    "Estimator": ["NAME", "NODES", "USABLE", "WATTS", "READY", "AGE", "REASON"],
}
SHOWN = {
    "EnergyPolicy": ["columns", "Recommend", "10", "3", "2", "1", "1234", "567", "True", None, "Reconciled",
                     "node3 is off"],
    "NodePower": ["columns", "Off", "5", "powersave", "150", "160", "Off", "Idle", None],
    "Site": ["columns", "", "", "Edge", "true", "42", "900", "True", None, "", "", "Reconciled"],
    "SiteRecommendation": ["columns", "Recommend", "d", "220", "3", "2", "True", None, "vm-7", "Recommended"],
    "Estimator": ["columns", "2", "1", "164", "True", None, "Answering"],
}


@pytest.mark.parametrize("kind", KINDS.values())
def test_kubectl_get_shows_the_columns_and_nothing_of_the_status_is_pruned(bed, kind):
    create(bed, kind, "columns", {}, dry_run=False)
    path = path_of(kind, "columns", "default", "status") + "?fieldManager=test&force=true&fieldValidation=Strict"
    body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": kind, "metadata": {"name": "columns"}, "status": STATUS[kind]}
    stored = bed.api.request("PATCH", path, json.dumps(body).encode(), "application/apply-patch+yaml")
    assert stored["status"] == STATUS[kind]
    header, row = bed.kubectl("get", kind.lower(), "columns", "-o", "wide").splitlines()
    starts = [header.index(name) for name in HEADERS[kind]] + [None]
    assert header.split() == HEADERS[kind]
    shown = [row[start:end].strip() for start, end in zip(starts, starts[1:])]
    assert [None if wanted is None else got for got, wanted in zip(shown, SHOWN[kind])] == SHOWN[kind]


def test_short_names_and_the_category_work(bed):
    create(bed, "EnergyPolicy", "short", {}, dry_run=False)
    create(bed, "NodePower", "short", {}, dry_run=False)
    create(bed, "Site", "short", {}, dry_run=False)
    create(bed, "SiteRecommendation", "short", {}, dry_run=False)
    names = bed.kubectl("get", "enp,npw,sit,srec", "-o", "name").split()
    assert {f"{kind}.kwatt.dev/short" for kind in ("energypolicy", "nodepower", "site", "siterecommendation")} <= set(names)
    assert set(names) <= set(bed.kubectl("get", "energy", "-o", "name").split())


def test_a_recommendation_that_starts_machines_is_not_changed_afterwards(bed):
    create(bed, "SiteRecommendation", "creates", {"region": "a"}, dry_run=False)
    bed.api.patch("SiteRecommendation", "creates", {"spec": {"region": "b"}}, "default")
    bed.api.patch("SiteRecommendation", "creates", {"spec": {"action": "Create"}}, "default")
    with pytest.raises(ApiError, match="is not changed afterwards"):
        bed.api.patch("SiteRecommendation", "creates", {"spec": {"region": "c"}}, "default")
    bed.api.patch("SiteRecommendation", "creates", {"metadata": {"labels": {"may": "change"}}}, "default")


def test_kubectl_explain_says_what_a_setting_means(bed):
    text = bed.kubectl("explain", "energypolicy.spec.migration")
    for phrase in ("FIELDS:", "maxNodes\t<integer>", "enum: FewestPods, BestSaving", "reserved destination"):
        assert phrase in " ".join(text.split(" ")), phrase


def test_every_example_can_be_applied(bed):
    bed.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kwatt-system"}})
    examples = [path for path in sorted((ROOT / "examples").rglob("*.yaml"))
                if "kwatt.dev/v1alpha1" in path.read_text()]
    assert len(examples) >= 6
    for path in examples:
        documents = [d for d in yaml.safe_load_all(path.read_text()) if d]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        bed.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=text)
        bed.kubectl("apply", "--dry-run=server", "-f", str(path))
