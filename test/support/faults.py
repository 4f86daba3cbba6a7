"""The vocabulary of faults: what can be injected, when, and how it is written down.

    kill-between@7           the 7th counted request is carried out, and the sender killed before it hears so
    refuse-429*3/nodes@2     from the 2nd on, three requests about nodes are answered with 429
    delay=1.5@0              watches are 1.5 s behind from the beginning
    bmc-drop@SoftOff         when an operation's step SoftOff is being committed, that BMC drops a connection

Counted are requests that change something, but for Leases, Events and reviews.
"""
import re
from dataclasses import dataclass

# What becomes of one request (or of so many in a row as the count says).
REQUEST = {
    "kill-before": "the sender is killed, the request not carried out",
    "kill-between": "carried out, the sender killed before the reply",
    "kill-after": "carried out and answered, then the sender is killed",
    "refuse-409": "409 Conflict", "refuse-429": "429 with Retry-After: 1",
    "refuse-500": "500", "refuse-503": "503",
    "done-500": "carried out, answered with 500", "done-504": "carried out, answered with 504",
    "drop": "not carried out, the connection is reset",
    "lost": "carried out, the connection is reset instead of an answer",
    "hang": "not carried out, silence for so many seconds, then a reset",
    "done-hang": "carried out, silence for so many seconds, then a reset",
    "truncate": "carried out, half of the JSON as a whole answer",
    "half": "carried out, the connection is reset in the middle of the answer",
}
# What becomes of lists and watches.
READ = {
    "delay": "watches lag behind by so many seconds, until healed",
    "coalesce": "of the changes of an object within so many seconds only the last is told, until healed",
    "shuffle": "lists come in another order, until healed; all watches expire",
    "gone-event": "410 inside of every open watch",
    "gone-status": "every watch is cut, and 410 as the HTTP status of the next one on each resource",
    "gone-page": "all watches expire; lists come in pages of two, and a continue token of each resource expires",
    "cut": "every watch is cut",
    "silent": "open watches say nothing for so many seconds, then they are cut",
    "cut-list": "all watches expire; a list of each resource ends in the middle of its JSON",
    "stale": "lists that may be old are as old as the beginning, and their watches so many seconds behind",
}
# What others than the proxy do; the owner of the proxy says how.
OUTSIDE = {
    "pause": "the controller is stopped for so many seconds",
    "term": "the controller is asked to end, and started again",
    "agents": "all agents are killed",
    "apiserver": "kube-apiserver is killed and started again",
    # Of the machine whose operation comes to the step that is named.
    "bmc-drop": "its BMC drops a connection", "bmc-truncated": "its BMC loses half of an answer",
    "bmc-unavailable": "its BMC says 503 once", "bmc-html": "its BMC answers a page once",
    "bmc-slow": "its BMC answers once so many seconds late",
}
KINDS = {**REQUEST, **READ, **OUTSIDE}
TEXT = re.compile(r"(?P<kind>[a-z]+(-[a-z0-9]+)?)(=(?P<value>[0-9.]+))?(\*(?P<count>\d+))?(/(?P<resource>[a-z]+))?"
                  r"@(?P<at>\w+)")


@dataclass(frozen=True)
class Fault:
    kind: str
    at: object = 1        # the number of a counted request (0: at once), or the name of a step
    value: float = 0      # seconds
    count: int = 1        # of requests
    resource: str = ""    # only requests about these (leases too); "": every counted request

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"fault {self.kind!r} is not one of {', '.join(KINDS)}")

    def __str__(self):
        return (self.kind + (f"={self.value:g}" if self.value else "") + (f"*{self.count}" if self.count > 1 else "")
                + (f"/{self.resource}" if self.resource else "") + f"@{self.at}")

    @staticmethod
    def parse(text):
        found = TEXT.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is not a fault such as kill-between@7 or delay=1.5@0")
        at = found["at"]
        return Fault(found["kind"], int(at) if at.isdigit() else at, float(found["value"] or 0),
                     int(found["count"] or 1), found["resource"] or "")
