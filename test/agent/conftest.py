"""One site for all tests of the real agent: each starts its own agents and has no controller."""
import pytest
from lab.site import Site


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("agent-site"), agents=False, redfish=False) as site:
        yield site
