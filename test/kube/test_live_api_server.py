"""Our Kubernetes client against a real kube-apiserver; the cases are in live/test_live.cpp."""
import os
import subprocess
from pathlib import Path

import pytest

from bed import Bed

PROGRAM = Path(__file__).resolve().parents[2] / "build" / os.environ.get("KWATT_PRESET", "dev") / "test" / "live_kube"


@pytest.fixture(scope="module")
def bed():
    with Bed(kwok=False) as running:
        yield running


def test_live_cases(bed):
    assert PROGRAM.exists(), f"{PROGRAM} does not exist: run ./dev build first"
    run = subprocess.run([str(PROGRAM)], env={**os.environ, "KUBECONFIG": str(bed.kubeconfig)}, timeout=300,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, run.stdout
    assert " 0 failed" in run.stdout
