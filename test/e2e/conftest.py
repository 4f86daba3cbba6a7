"""One site (real control plane, simulated machines, real kwatt) per pytest worker; each case has its own
machines, namespace and policies on it, and an observer that is not kwatt watches the invariants."""
import pytest

from lab.site import Site
from e2e.case import Case
from e2e.observer import Observer


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("site")) as site:
        site.start_controller()
        yield site


@pytest.fixture(scope="session")
def observer(site):
    observer = Observer(site)
    observer.start()
    yield observer
    observer.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    setattr(item, f"report_{call.when}", outcome.get_result())


@pytest.fixture
def case(site, observer, request):
    case = Case(site, request.node.name)
    yield case
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        print(case.story())
    case.clean_up()
    violations = observer.take_violations(case.machines)
    assert not violations, "\n".join(violations)
