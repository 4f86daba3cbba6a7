"""The demo tells the whole story that the README promises."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_shows_every_lever_once():
    run = subprocess.run([sys.executable, "-m", "lab.demo", "--story", "--seconds", "150"], cwd=ROOT,
                         capture_output=True, text=True, timeout=200, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    for happening in (r"consolidated-\d is drained and switched off", r"consolidated-\d is awake again",
                      r"tuned-\d: governor schedutil -> powersave in its sysfs", r"capped-1: capped at 324 W",
                      r"capped-1: cap released"):
        assert re.search(happening, run.stdout), happening
    # What kubectl shows at the end: the lists, and the reasons in the policy's status.
    assert re.search(r"energypolicy\.kwatt\.dev/consolidated +Enforce +5 ", run.stdout)
    assert re.search(r"nodepower\.kwatt\.dev/tuned-1 +On .*powersave.*LowUtilization", run.stdout)
    assert "type: Accepted" in run.stdout
