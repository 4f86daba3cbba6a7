"""A few fixed plans, so that the chaos suite itself never rots; the long run is ./dev chaos."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parent / "run.py"
PLANS = [
    "dvfs/kill-between@4/seed=1",               # the intent is committed, nobody knows
    "dvfs/stale=1@0/kill-after@9/seed=2",       # the next process begins in the past
    "dvfs/gone-page@3/lost@7/seed=3",           # lists that expire half way, a lost reply
    "recommend/coalesce=1@0/refuse-429*2@2/seed=4",
]
pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.long(90)]


def test_fixed_plans_end_as_undisturbed_and_break_no_invariant():
    command = [sys.executable, str(RUN), "--sites", "2", "-o", "json"]
    for plan in PLANS:
        command += ["--replay", plan]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, run.stderr[-6000:]
    assert sorted(line["plan"] for line in lines[:-1]) == sorted(PLANS)
    assert all(line["unreached"] == [] for line in lines[:-1])
    assert lines[-1]["plans"] == len(PLANS) and lines[-1]["violations"] == 0
