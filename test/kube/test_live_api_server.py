"""Our Kubernetes client against a real kube-apiserver; the cases are in live/test_live.cpp."""
import os
import subprocess

import pytest

from bed import Bed
from lab.site import program


@pytest.fixture(scope="module")
def bed():
    with Bed(kwok=False) as running:
        yield running


def test_live_cases(bed):
    run = subprocess.run([program("live_kube", "test")], env={**os.environ, "KUBECONFIG": str(bed.kubeconfig)}, timeout=300,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, run.stdout
    assert " 0 failed" in run.stdout
