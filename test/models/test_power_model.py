"""The learned power model, cross-validated on a machine that others have measured (kepler-model-db, nx12).

The data is not part of the repository: KWATT_DATA names its folder, ../shared/data beside the repository otherwise.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

from lab.site import program

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = Path(os.environ.get("KWATT_DATA") or ROOT.parent / "shared" / "data") / "kepler-power" / "nx12_abs_acpi_Basic.csv"
MOST_PERCENT = 4.5


def test_the_mean_error_on_blocks_of_time_that_were_held_out():
    if not FILE.exists():
        pytest.skip(f"{FILE.name} of kepler-model-db is not here: set KWATT_DATA to the folder above kepler-power")
    done = subprocess.run([program("power_model_cv", "test"), FILE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    print("\n" + done.stdout)
    folds = [float(percent) for percent in re.findall(r"^fold .*? MAPE ([0-9.]+) %", done.stdout, re.M)]
    lines = [float(percent) for percent in re.findall(r"^fold .*? line ([0-9.]+) %", done.stdout, re.M)]
    rows = re.findall(r"rows (\d+)-(\d+)", done.stdout)
    assert len(folds) == 5 and rows[0][0] == "0" and int(rows[-1][1]) == 2201
    # Blocks without gaps or overlap.
    assert all(int(after[0]) == int(before[1]) + 1 for before, after in zip(rows, rows[1:]))
    mean = sum(folds) / 5
    assert mean <= MOST_PERCENT, f"{mean:.2f} %\n{done.stdout}"
    assert all(fold < line for fold, line in zip(folds, lines)), done.stdout
