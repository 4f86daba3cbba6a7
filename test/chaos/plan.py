"""Plans: a scenario and the faults it meets. Chosen at random by seed, written so that they can be played again:

    drain/kill-between@7/shuffle@0/seed=123
"""
import random
from dataclasses import dataclass

from chaos.scenarios import SCENARIOS
from support.faults import Fault

KILLS = ("kill-before", "kill-between", "kill-after")
ANSWERS = ("refuse-409", "refuse-429", "refuse-500", "refuse-503", "done-500", "done-504", "drop", "lost", "hang",
           "done-hang", "truncate", "half")
READS = ("delay", "coalesce", "shuffle", "gone-event", "gone-status", "gone-page", "cut", "silent", "cut-list")
BMC = ("bmc-drop", "bmc-truncated", "bmc-unavailable", "bmc-html", "bmc-slow")
# In which step a BMC is asked for something, after the point where a failure only means to try another machine.
BMC_STEPS = {"poweroff": "SoftOff", "drain": "SoftOff", "wake": "Wake", "deletion": "Wake", "release": "Wake"}
SECONDS = {"hang": (1, 4), "done-hang": (1, 4), "delay": (0.3, 2.5), "coalesce": (0.3, 2), "silent": (1, 4),
           "stale": (0.5, 3), "pause": (2, 6), "bmc-slow": (1, 4)}


@dataclass(frozen=True)
class Plan:
    scenario: str
    faults: tuple = ()
    seed: int = 0

    def __str__(self):
        return "/".join([self.scenario, *(str(fault).replace("/", ":") for fault in self.faults), f"seed={self.seed}"])

    @staticmethod
    def parse(text):
        scenario, *parts = text.split("/")
        if scenario not in SCENARIOS:
            raise ValueError(f"scenario {scenario!r} is not one of {', '.join(SCENARIOS)}")
        seed = 0
        if parts and parts[-1].startswith("seed="):
            seed = int(parts.pop().removeprefix("seed="))
        return Plan(scenario, tuple(Fault.parse(part.replace(":", "/")) for part in parts), seed)


class Planner:
    """An endless row of plans. `requests`: scenario → counted requests of its undisturbed run. Kills walk through every
    request and every moment around it before they repeat; the rest is drawn."""

    def __init__(self, seed, requests):
        self._random = random.Random(seed)
        self._requests = requests
        points = [(s, kind, n) for s, count in requests.items() for n in range(1, count + 1) for kind in KILLS]
        self._random.shuffle(points)
        self._points, self._next = points, 0
        self.points = len(points)

    @property
    def visited(self):
        """Points at which a plan has killed the controller."""
        return min(self._next, len(self._points))

    def __iter__(self):
        return self

    def __next__(self):
        draw = self._random
        kind = draw.choices(("kill", "answer", "read", "kill+read", "stale", "process", "lease", "bmc"),
                            weights=(38, 14, 12, 14, 9, 6, 4, 3))[0]
        scenario = draw.choice(sorted(self._requests))
        faults = []
        if kind in ("kill", "kill+read"):
            scenario, moment, n = self._points[self._next % len(self._points)]
            self._next += 1
            faults.append(Fault(moment, n))
            if kind == "kill+read":
                faults.append(self._timed(draw.choice(READS), draw.choice((0, n))))
        elif kind == "answer":
            faults.append(self._timed(draw.choice(ANSWERS), self._number(scenario), count=draw.choice((1, 1, 2, 4))))
        elif kind == "read":
            faults.append(self._timed(draw.choice(READS), self._number(scenario, 0)))
        elif kind == "stale":
            faults += [self._timed("stale", 0), Fault(draw.choice(KILLS), self._number(scenario))]
        elif kind == "process":
            process = draw.choices(("pause", "term", "agents", "apiserver"), weights=(4, 3, 3, 1))[0]
            faults.append(self._timed(process, self._number(scenario)))
        elif kind == "lease":
            what = draw.choice(("refuse-409", "refuse-500", "done-500", "lost", "hang", "drop"))
            faults.append(self._timed(what, self._number(scenario), count=draw.choice((1, 2, 6)), resource="leases"))
        else:
            with_bmc = sorted(set(BMC_STEPS) & set(self._requests))
            if with_bmc:
                scenario = draw.choice(with_bmc)
                faults.append(self._timed(draw.choice(BMC), BMC_STEPS[scenario]))
            else:
                faults.append(self._timed("agents", self._number(scenario)))
        return Plan(scenario, tuple(faults), draw.randrange(10**6))

    def _number(self, scenario, lowest=1):
        return self._random.randint(lowest, max(lowest, self._requests[scenario]))

    def _timed(self, kind, at, **fields):
        low, high = SECONDS.get(kind, (0, 0))
        return Fault(kind, at, round(self._random.uniform(low, high), 1), **fields)
