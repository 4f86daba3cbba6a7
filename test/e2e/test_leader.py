"""Two controllers with the default leases (15s, 10s, 2s): who leads, for how long, and what the other may still do."""
import re
import signal
import time

import pytest
from bed.process import wait_until
from e2e.case import CHEAP_TO_BOOT, FAST, merged
from e2e.invariants import seconds_of
from e2e.observer import LEASE, Observer
from lab.site import Site

DEFAULTS = ("15s", "10s", "2s")
MACHINES = [f"m{number}" for number in range(1, 8)]
pytestmark = [pytest.mark.xdist_group("leader"), pytest.mark.long(80)]


class Pair:
    def __init__(self, site):
        self.site, self.api = site, site.bed.api
        self.processes = [site.start_controller(name=name, lease=DEFAULTS) for name in ("first", "second")]

    def identity(self, process):
        """What the process called itself when it last became the leader."""
        found = re.findall(r'msg=leading.*identity="?([^\s"]+)', process.log_path.read_text(errors="replace"))
        return found[-1] if found else ""

    def identities(self):
        return {process.pid: self.identity(process) for process in self.processes if process.running()}

    def holder(self):
        return self.lease().get("holderIdentity") or ""

    def lease(self):
        return (self.api.find("Lease", *LEASE) or {}).get("spec", {})

    def leader(self):
        """The process that holds the lease now; None in between."""
        holder = self.holder()
        return next((p for p in self.processes if holder and p.running() and self.identity(p) == holder), None)

    def wait_leader(self, other_than=None, seconds=40):
        def found():
            now = self.leader()
            return now if now is not other_than else None
        return wait_until(found, seconds, "a leader")

    def both_run(self):
        for process in self.processes:
            if not process.running():
                process.start()
        leader = self.wait_leader()
        follower = next(p for p in self.processes if p is not leader)
        # It has seen the Lease, and waits.
        wait_until(lambda: follower.log_tail(400).count("caches filled"), 30, "the follower to be ready")
        return leader, follower


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("leader"), agents=False, redfish=False) as site:
        site.add_machines(*({"name": name, "model": CHEAP_TO_BOOT, "boot_seconds": 1, "shutdown_seconds": 0.5}
                            for name in MACHINES))
        yield Pair(site)


def took_over(pair, old, began):
    new = pair.wait_leader(other_than=old)
    return new, time.monotonic() - began


def test_after_a_crash_the_other_leads_within_17_seconds(pair):
    leader, follower = pair.both_run()
    leader.signal(signal.SIGKILL)
    new, seconds = took_over(pair, leader, time.monotonic())
    print(f"failover after SIGKILL: {seconds:.1f} s")
    assert new is follower and seconds <= 17


def test_after_a_clean_stop_the_other_leads_within_3_seconds(pair):
    leader, follower = pair.both_run()
    leader.signal(signal.SIGTERM)
    new, seconds = took_over(pair, leader, time.monotonic())
    print(f"failover after SIGTERM: {seconds:.1f} s")
    assert new is follower and seconds <= 3


def test_a_leader_that_is_stopped_for_20_seconds_does_nothing_after_its_lease(pair):
    leader, follower = pair.both_run()
    observer = Observer(pair.site, identities=pair.identities)
    observer.start()
    try:
        pair.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": "leader"},
                         "spec": merged(FAST, {"powerOff": {"idleFor": "1s"}, "disruption": {
                             "budgets": [{"nodes": "2"}]}})})
        # In the middle: a machine was told to go off, others are being drained or wait for their turn.
        wait_until(lambda: observer.commands, 60, "the first command")
        old = leader.pid
        leader.signal(signal.SIGSTOP)
        expiry = seconds_of(pair.lease()["renewTime"]) + pair.lease()["leaseDurationSeconds"]
        time.sleep(20)
        assert pair.leader() is follower
        leader.signal(signal.SIGCONT)
        wait_until(lambda: all(pair.site.machine_power(m).get("powerState") == "Off" for m in MACHINES[:-1]), 120,
                   "all but one to be off")
        wait_until(lambda: not leader.running(), 30, "the old leader to end")
        late = [entry for entry, pid in observer.commands if pid == old and seconds_of(entry["time"]) > expiry]
        by_new = [entry for entry, pid in observer.commands if pid == follower.pid]
        print(f"commands by the stopped leader after its lease: {len(late)}; by the new one: {len(by_new)}")
        assert late == [] and by_new
        assert observer.take_violations() == []
    finally:
        leader.signal(signal.SIGCONT)
        observer.stop()
