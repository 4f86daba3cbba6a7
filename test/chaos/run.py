"""./dev chaos: crash and fault tolerance of kwatt, from outside.

Small sites run beside each other, each a real control plane with simulated machines, the real programs and a fault
proxy before the API server. First every scenario is played undisturbed; then plans, each a scenario under faults
drawn by --seed, until --seconds are over or --plans are played. The end of a plan must be that of the undisturbed
run, and an observer that is not kwatt watches the invariants of docs/explanation/safety.md meanwhile.
"""
import argparse
import json
import multiprocessing
import queue
import random
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT, ROOT / "test"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from chaos.plan import Plan, Planner  # noqa: E402
from chaos.scenarios import SCENARIOS  # noqa: E402

SILENCE_SECONDS = 1200  # longer than all waits of a plan that goes wrong


def work(number, jobs, results):
    """One site in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from chaos.play import play
    from chaos.yard import Yard
    try:
        ready, job = False, None
        while True:
            with Yard() as yard:
                if not ready:
                    results.put(("ready", number, None))
                    ready = True
                clean = True
                while clean:  # else the next plan gets a new site
                    if (job := jobs.get()) is None:
                        return
                    outcome = play(yard, Plan.parse(job[0]), job[1])
                    clean = outcome.clean
                    results.put(("played", number, outcome))
    except Exception as error:
        results.put(("broken", number, f"{type(error).__name__}: {error}"))
        raise


class Sites:
    """The processes; each has at most one job, and is asked for the next when it is done."""

    def __init__(self, count):
        context = multiprocessing.get_context("spawn")
        self._results = context.Queue()
        self._jobs = [context.Queue() for _ in range(count)]
        self._processes = [context.Process(target=work, args=(n, self._jobs[n], self._results)) for n in range(count)]
        self.idle, self.busy = [], {}

    def __enter__(self):
        try:
            for process in self._processes:  # one after the other: a control plane that starts wants all processors
                process.start()
                kind, number, what = self._next()
                if kind != "ready":
                    raise RuntimeError(f"site {number} did not start: {what}")
                self.idle.append(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _next(self):
        try:
            return self._results.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            raise RuntimeError(f"no site has said anything for {SILENCE_SECONDS} s; being played: "
                               + ", ".join(map(str, self.busy.values()))) from None

    def __exit__(self, *_):
        for jobs in self._jobs:
            jobs.put(None)
        for process in self._processes:
            if process.pid is None:
                continue
            process.join(60)
            if process.is_alive():
                process.terminate()

    def give(self, plan, wanted=None):
        number = self.idle.pop()
        self.busy[number] = plan
        self._jobs[number].put((str(plan), wanted))

    def take(self):
        """The next outcome; RuntimeError when a site is broken."""
        kind, number, outcome = self._next()
        if kind != "played":
            raise RuntimeError(f"site {number} is broken while playing {self.busy.get(number)}: {outcome}")
        del self.busy[number]
        self.idle.append(number)
        return outcome


class Report:
    def __init__(self, as_json):
        self._json, self._started = as_json, time.monotonic()
        self.plans, self.violated, self.unreached = 0, 0, 0

    def say(self, text):
        print(text, file=sys.stderr if self._json else sys.stdout, flush=True)

    def undisturbed(self, outcome):
        self.say(f"undisturbed  {outcome.plan:<40} {outcome.requests:>3} requests  {outcome.seconds:5.1f} s")
        self._tell(outcome)

    def played(self, outcome):
        self.plans += 1
        self.unreached += bool(outcome.unreached)
        state = "VIOLATED" if outcome.violations else "ok" if not outcome.unreached else "ok, not struck"
        self.say(f"{time.monotonic() - self._started:6.0f} s  {self.plans:>4}  {outcome.plan:<64} "
                 f"{outcome.seconds:5.1f} s  {state}")
        if self._json:
            print(json.dumps({"plan": outcome.plan, "seconds": round(outcome.seconds, 1),
                              "violations": outcome.violations, "unreached": outcome.unreached}), flush=True)
        self._tell(outcome)

    def _tell(self, outcome):
        if not outcome.violations:
            return
        self.violated += len(outcome.violations)
        for sentence in outcome.violations:
            self.say(f"    {sentence}")
        self.say(f"    again: ./dev chaos --replay '{outcome.plan}'")
        path = ROOT / "build" / "chaos" / (outcome.plan.replace("/", "_") + ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*outcome.violations, outcome.story, ""]))
        self.say(f"    story: {path.relative_to(ROOT)}")


def undisturbed(sites, scenarios, report):
    """Scenario → outcome of its run without a fault."""
    waiting, outcomes = list(scenarios), {}
    while waiting or sites.busy:
        while waiting and sites.idle:
            sites.give(Plan(waiting.pop(0)))
        outcome = sites.take()
        outcomes[Plan.parse(outcome.plan).scenario] = outcome
        report.undisturbed(outcome)
    return {name: outcome for name, outcome in outcomes.items() if outcome.end is not None}


def _requests(name, outcome):
    """How many requests a fault is placed among; where their number differs from run to run, the first half."""
    return max(1, outcome.requests // 2 if "watts" in SCENARIOS[name].blur else outcome.requests)


def run(options, report):
    fixed = [Plan.parse(text) for text in options.replay]
    scenarios = sorted({plan.scenario for plan in fixed} or options.scenario or SCENARIOS)
    with Sites(min(options.sites, len(fixed) or options.sites)) as sites:
        known = undisturbed(sites, scenarios, report)
        planner = Planner(options.seed, {name: _requests(name, known[name]) for name in sorted(known)})
        plans = iter(fixed) if fixed else planner
        until = time.monotonic() + options.seconds
        left = len(fixed) or options.plans or sys.maxsize
        while True:
            while left and sites.idle and (fixed or time.monotonic() < until) and known:
                plan = next(plans)
                if plan.scenario not in known:
                    left -= 1
                    continue
                sites.give(plan, known[plan.scenario].end)
                left -= 1
            if not sites.busy:
                break
            report.played(sites.take())
        if not fixed:
            report.say(f"killed at {planner.visited} of {planner.points} points (each request: before, between, after)")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="no new plan after so long (300)")
    parser.add_argument("--seed", type=int, help="of the choice of plans; printed (default: another each time)")
    parser.add_argument("--plans", type=int, help="at most so many plans")
    parser.add_argument("--sites", type=int, default=3, help="sites beside each other (3)")
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), help="only this one, may be repeated")
    parser.add_argument("--replay", action="append", default=[], metavar="PLAN", help="play this plan, may be repeated")
    parser.add_argument("-o", dest="output", choices=["json"], help="json: a line per plan on standard output")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    report = Report(options.output == "json")
    if not options.replay:
        report.say(f"seed {options.seed}")
    try:
        run(options, report)
    except KeyboardInterrupt:
        report.say("interrupted")
    except RuntimeError as error:
        report.violated += 1
        report.say(f"    {error}")
    closing = f"{report.plans} plans, {report.violated} violations"
    if report.unreached:
        report.say(f"in {report.unreached} plans a fault found nothing to strike")
    report.say(closing)
    if report._json:
        print(json.dumps({"seed": options.seed, "plans": report.plans, "violations": report.violated,
                          "unreached": report.unreached}), flush=True)
    return 1 if report.violated or report.plans == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
