"""The control plane that the tests of the CRDs share."""
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

from bed import ApiError, Bed, wait_until
from bed.client import path_of


@pytest.fixture(scope="session")
def bed():
    with Bed(kwok=False, scheduler=False, controller_manager=False) as running:
        running.kubectl("apply", "-f", str(ROOT / "crds"))
        for kind in ("EnergyPolicy", "NodePower", "Site", "SiteRecommendation"):  # Established comes a moment before the API serves the kind
            wait_until(lambda: _served(running, kind), 30, f"{kind} to be served")
        yield running


def _served(bed, kind):
    try:
        return bed.api.request("GET", path_of(kind)) is not None
    except ApiError as error:
        if error.status not in (404, 429):  # 429: "storage is (re)initializing"
            raise
        return False
