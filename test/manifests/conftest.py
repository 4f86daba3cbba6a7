"""One API server with kwatt's kinds, rights and rules, for what tokens of agents may do on it."""
from pathlib import Path

import pytest

from bed import Bed, register_kind

ROOT = Path(__file__).resolve().parents[2]
register_kind("NodePower", "/apis/kwatt.dev/v1alpha1", "nodepowers", namespaced=False)


@pytest.fixture(scope="session")
def bare_bed():
    with Bed(kwok=False, scheduler=False) as bed:
        bed.kubectl("apply", "-f", ROOT / "manifests" / "00-namespace.yaml")
        bed.kubectl("apply", "-f", ROOT / "crds", "-f", ROOT / "manifests")
        bed.kubectl("wait", "--for=condition=Established", "--timeout=20s", "-f", ROOT / "crds")
        for name in ("own", "other", "n1", "n2"):
            bed.create_node(name, wait=False)
            bed.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower", "metadata": {"name": name}})
        yield bed
