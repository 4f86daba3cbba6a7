"""One plan on a yard: prepare, break, compare, clean up."""
import time
import traceback
from dataclasses import dataclass, field

from chaos import state, wire
from chaos.scenarios import SCENARIOS
from chaos.yard import BY_HAND

# What of a machine is the same after a policy is gone, whatever it did.
REMAINS = ("machine", "governors", "maxMHz", "capped", "powerState", "operation", "cordoned", "taints", "annotations",
           "labels", "suspended")


SETTLE = 1.2          # seconds for which an end must stay as it is
SETTLE_FIRST = 3.0    # the same for the end that others are compared with


@dataclass
class Outcome:
    plan: str
    seconds: float = 0.0
    violations: list = field(default_factory=list)
    unreached: list = field(default_factory=list)  # faults that found nothing to strike
    end: dict = None        # the state that an undisturbed run has reached
    requests: int = 0       # counted requests of the run
    story: str = ""         # for the reader of a violation
    clean: bool = True      # the yard is as it was before


def play(yard, plan, wanted=None):
    """`wanted`: the end of the undisturbed run; None: this is that run."""
    outcome, started = Outcome(str(plan)), time.monotonic()
    scenario = SCENARIOS[plan.scenario]
    try:
        scenario.prepare(yard)
        past = yard.past_lists() if any(fault.kind == "stale" for fault in plan.faults) else {}
        yard.proxy.arm(plan.faults, plan.seed, past)
        if scenario.reads_only:
            yard.read_only_since = time.time()
        scenario.act(yard)
        if wanted is None:
            outcome.end = _settle(yard, scenario)
        else:
            _arrive(yard, plan, wanted, outcome)
        outcome.requests = yard.proxy.counted()
    except Exception as error:  # a plan that cannot be played to its end is a violation, the next one goes on
        outcome.violations.append(f"not played to its end: {error}")
        if not isinstance(error, TimeoutError):
            outcome.story += traceback.format_exc()
    if outcome.violations:
        outcome.story += _story(yard)
    outcome.violations += wire.violations(list(yard.proxy.records), yard.read_only_since)
    left = _leave(yard, scenario)
    outcome.violations += left
    outcome.clean = not left
    outcome.violations += yard.observer.take_violations()
    outcome.seconds = time.monotonic() - started
    return outcome


def _settle(yard, scenario):
    """The end of an undisturbed run: what does not change any more."""
    while True:
        yard.wait(lambda: scenario.done(yard), f"scenario {scenario.name} to end")
        end = state.capture(yard, scenario.blur)
        time.sleep(SETTLE_FIRST)
        if scenario.done(yard) and state.capture(yard, scenario.blur) == end:
            return end


def _arrive(yard, plan, wanted, outcome):
    """The run gets to where the undisturbed one got, and stays there with a living controller."""
    found = {}

    def arrived():
        found["difference"] = state.difference(wanted, state.capture(yard, SCENARIOS[plan.scenario].blur))
        return not found["difference"]

    try:
        while True:
            yard.wait(arrived, "the end")
            yard.wait(yard.leading, "a controller to lead")
            time.sleep(SETTLE)
            if arrived() and yard.leading():
                break
    except TimeoutError:
        outcome.violations += [f"end: {sentence}" for sentence in found["difference"]] or ["end: no controller leads"]
    fired = yard.proxy.fired()
    outcome.unreached = [str(fault) for fault in plan.faults if fault not in fired]


def _leave(yard, scenario):
    """h: after the policy nothing of kwatt's is left, and what people set by hand still stands."""
    def rest():
        now = state.capture(yard)
        out = []
        for machine in yard.MACHINES:
            want = {key: yard.pristine[machine][key] for key in REMAINS}
            if machine == scenario.by_hand:
                want["annotations"], want["maxMHz"] = {**want["annotations"], BY_HAND: "2000"}, [2000]
            out += state.difference(want, {key: now[machine][key] for key in REMAINS}, machine)
        return out

    try:
        yard.clean_up()
        last = []

        def clean():
            last[:] = rest()
            return not last

        try:
            yard.wait(clean, "nothing of kwatt's to be left")
        except TimeoutError:
            return [f"h: after the policy, {sentence}" for sentence in last]
        yard.reset()
    except Exception as error:
        return [f"clean-up: {error}"]
    return []


def _story(yard):
    """The last requests, and the end of the controller's log."""
    lines = [f"{record.time:.3f} {record.sender} {record.index or '':>3} {record.method} {record.path} {record.status} "
             f"{record.fault}" for record in yard.proxy.records if record.mutating and record.plural != "events"][-60:]
    machines = [yard.site.describe(machine) for machine in yard.MACHINES]
    return "\n".join([*lines, *machines, yard.controller.log_tail(80)])
