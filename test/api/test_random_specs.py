"""What C++ accepts the API server accepts, and the reverse: specs made from the schemas by chance.

The table of test/golden/policies says what must be refused and why; this finds what nobody thought of.
"""
import json
import os
import random
import subprocess
from pathlib import Path

import pytest
import yaml

from bed import ApiError
from bed.client import path_of

ROOT = Path(__file__).resolve().parents[2]
JUDGE = ROOT / "build" / os.environ.get("KWATT_PRESET", "dev") / "bin" / "judge-specs"
CRDS = {"EnergyPolicy": "energypolicies.yaml", "NodePower": "nodepowers.yaml", "Site": "sites.yaml",
        "SiteRecommendation": "siterecommendations.yaml"}
ONLY_IN_CPP = ("is no cron schedule", "there is no time zone")  # what CEL cannot check

pytestmark = pytest.mark.xdist_group("crds")

# Not among them: durations under a millisecond, which kwatt rounds to 0, and whole numbers written as 1.0, which CEL
# refuses where a rule reads them and the schema accepts elsewhere.
INTEGERS = [-1, 0, 1, 2, 11, 30, 59, 60, 61, 70, 79, 80, 90, 99, 100, 101, 255, 1001, 86401, 10**6, 10**9 + 1, 10**12,
            2**32, 2**63 - 1, 2**63, 1.5, "1", True]
DURATIONS = ["0s", "1s", "999ms", "-1s", "1m", "2m", "10m", "60m", "61m", "744h", "744h1s", "5", "", "1d", "1h1m", "+5s",
             ".5s", "1.s", "0", "1.5h", "1h ", "1e3s", "2540400h", "2562048h", "0.1s", "00001s", "-0", "1S", ".", 10, True]
TEXTS = ["", "x", "Spread", "EnergyAware", "spread-it", "1a", "Aé", "é", "3", "10%", "100%", "101%", "00%", "007%", "%",
         "99999", "100000", "-1", "1.5", "10 %", "@daily", "@often", "0 22 * * *", "0 22 * *", " 0 22 * * mon",
         "0  22\t* * *", "0 22 * * *\n", "75 * * * *", "UTC", "Europe/Berlin", "Mars/Base", "powersave", "performance",
         "balance_power", "255", "256", "Idle", "Whim", "In", "Exists", "Gt", "a" * 63, "a" * 64, "é" * 40, "é" * 64,
         "a" * 254, "a" * 600, "bmc-1", "bmc.ca", "bmc..ca", "Bmc", "bmc-", "a-.b", "redfish+https://10.0.0.1/x",
         "redfish+https:", "lab://h", "wol:aa:bb", "ipmi://h x", "ipmi://h\n", "http://x", "https://h/p?q", "true", 1, True]


def value(rng, schema, depth=0):
    if rng.random() < 0.03:
        return rng.choice([None, [], {}, "x", 3, True, 1.5])
    kind = schema["type"]
    if kind == "object" and "additionalProperties" in schema:
        return {rng.choice("abc"): rng.choice(["x", "", "y" * 64, 3]) for _ in range(rng.randint(0, 2))}
    if kind == "object":
        names = list(schema["properties"])
        chosen = rng.sample(names, min(len(names), rng.randint(0, 3 if depth else 2)))
        chosen += [name for name in schema.get("required", []) if name not in chosen and rng.random() < 0.8]
        return {name: value(rng, schema["properties"][name], depth + 1) for name in chosen}
    if kind == "array":
        items = [value(rng, schema["items"], depth + 1) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 11, 11, 12, 17, 33]))]
        if rng.random() < 0.4 and all(type(item) in (int, float) for item in items):
            items.sort()
        return items
    if kind == "integer":
        low, high = schema["minimum"], schema["maximum"]
        near = [low, high, low - 1, high + 1, rng.randint(low, high), rng.randint(low, min(high, low + 100))]
        return rng.choice(near if rng.random() < 0.5 else INTEGERS)
    if kind == "boolean":
        return rng.choice([True, False, True, False, "true", 1])
    if "enum" in schema and rng.random() < 0.8:
        return rng.choice(schema["enum"])
    return rng.choice(DURATIONS if "ns|us" in schema.get("pattern", "") else TEXTS)


def verdict_of_api_server(bed, kind, spec):
    body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": kind, "metadata": {"name": "case"}, "spec": spec}
    try:
        bed.api.request("POST", path_of(kind, namespace="default") + "?dryRun=All", body)
        return "ok"
    except ApiError as error:
        assert error.status == 422, error
        return str(error)


@pytest.mark.parametrize("kind, count", [("EnergyPolicy", 1000), ("NodePower", 500), ("Site", 700),
                                         ("SiteRecommendation", 700)])
def test_both_sides_judge_random_specs_alike(bed, kind, count):
    assert JUDGE.exists(), f"{JUDGE} does not exist: run ./dev build first"
    crd = yaml.safe_load((ROOT / "crds" / CRDS[kind]).read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rng = random.Random(20261120)
    specs = [spec for spec in (value(rng, schema) for _ in range(count)) if isinstance(spec, dict)]
    lines = "\n".join(json.dumps(spec) for spec in specs) + "\n"
    run = subprocess.run([str(JUDGE), kind], input=lines, capture_output=True, text=True, check=True, timeout=60)
    verdicts = run.stdout.rstrip("\n").split("\n")
    assert len(verdicts) == len(specs)
    accepted, different = 0, []
    for spec, cpp in zip(specs, verdicts):
        api = verdict_of_api_server(bed, kind, spec)
        accepted += api == "ok"
        if (api == "ok") != (cpp == "ok") and not any(words in cpp for words in ONLY_IN_CPP):
            different.append(f"{json.dumps(spec)}\n  API server: {api}\n  C++: {cpp}")
    assert not different, "\n".join(different[:5])
    assert count / 4 < accepted < count * 3 / 4, "the specs are too tame or too wild to say anything"
