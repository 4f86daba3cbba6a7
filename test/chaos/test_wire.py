"""The checks on the wire can fail."""
from bed.client import path_of
from chaos import wire
from support.fault_proxy import Record, place


def lists(sender="a", but=()):
    return [Record(1.0, sender, "GET", "/x", {}, plural, "", "", whole=plural not in but)
            for plural in sorted(wire.CACHES)]


def lease(sender, renewed, seconds=3, status=200):
    spec = {"holderIdentity": sender, "renewTime": f"1970-01-01T00:00:{renewed:02d}.000000Z",
            "leaseDurationSeconds": seconds}
    return Record(float(renewed), sender, "PUT", "/x", {}, "leases", "kwatt-controller", "", body={"spec": spec},
                  status=status)


def change(sender, time, plural="nodes", subresource="", method="PATCH"):
    return Record(float(time), sender, method, "/x", {}, plural, "n1", subresource)


def test_a_change_within_the_lease_after_all_lists_is_no_violation():
    assert wire.violations([*lists(), lease("a", 2), change("a", 4), lease("a", 5), change("a", 7)]) == []


def test_a_change_after_the_lease_has_expired_is_seen():
    for effect in (change("a", 6), change("a", 6, "pods", "eviction", "POST")):
        violation, = wire.violations([*lists(), lease("a", 2), effect])
        assert violation.startswith("d:") and "1.00 s after" in violation


def test_a_renewal_that_the_server_refused_is_none():
    violation, = wire.violations([*lists(), lease("a", 2), lease("a", 4, status=409), change("a", 6)])
    assert violation.startswith("d:")


def test_a_change_before_every_list_was_whole_is_seen():
    violation, = wire.violations([*lists(but={"pods"}), lease("a", 2), change("a", 3)])
    assert violation.startswith("j:") and "pods" in violation
    # The lists of another process do not count.
    assert wire.violations([*lists("b"), lease("a", 2), change("a", 3)])


def test_only_status_may_change_where_nothing_is_to_change():
    harmless = [change("a", 3, "nodepowers", "status"), change("a", 3, "energypolicies", "status"),
                change("a", 3, "nodepowers", "", "POST"), change("a", 3, "events", "", "POST")]
    records = [*lists(), lease("a", 2), *harmless]
    assert wire.violations(records, read_only_since=2.5) == []
    for forbidden in (change("a", 3), change("a", 3, "energypolicies"), change("a", 3, "pods", "eviction", "POST")):
        violation, = wire.violations([*records, forbidden], read_only_since=2.5)
        assert violation.startswith("i:")
        assert wire.violations([*records, forbidden], read_only_since=3.5) == []


def test_paths_are_taken_apart():
    assert place("/api/v1/nodes/m1/status") == ("nodes", "m1", "status")
    assert place(path_of("Lease", "x", "kwatt-system")) == ("leases", "x", "")
    assert place("/api/v1/namespaces/chaos/pods/a/eviction") == ("pods", "a", "eviction")
    assert place(path_of("EnergyPolicy")) == ("energypolicies", "", "")
