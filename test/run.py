"""./dev test: runs the C++ and the Python tests and closes with one line of counts.

C++: one doctest executable per folder from the dev preset (asan and tsan with --sanitize).
Python: pytest over test/ with KWATT_TEST_WORKERS (4) workers; each has a control plane of its own for
the end-to-end cases. A skipped test is listed with its reason.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def read_junit(self, path, group):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{group}: {case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed.append(name)
            elif case.find("skipped") is not None:
                self.skipped.append((name, case.find("skipped").get("message", "no reason given")))
            else:
                self.passed += 1


def run_doctest(tally, preset, pattern, scratch):
    folder = ROOT / "build" / preset / "test"
    for program in sorted(folder.glob("test_*")):
        report = scratch / f"{preset}-{program.name}.xml"
        command = [str(program), "--reporters=junit", f"--out={report}"]
        if pattern:
            command.append(f"--test-case=*{pattern}*")
        started = time.monotonic()
        # What the code under test logs is shown only when something failed.
        run = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=1200,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        group = f"{program.name.removeprefix('test_')}" + ("" if preset == "dev" else f" ({preset})")
        before = len(tally.failed)
        count = tally.passed
        if report.exists():
            tally.read_junit(report, group)
        if run.returncode != 0:
            sys.stdout.write(run.stdout.decode(errors="replace"))
            if len(tally.failed) == before:
                tally.failed.append(f"{group}: exit status {run.returncode}")
        state = "ok" if len(tally.failed) == before else "FAILED"
        print(f"{group:<24} {tally.passed - count:>5} cases  {time.monotonic() - started:6.1f} s  {state}", flush=True)


def run_pytest(tally, pattern, scratch):
    """Timers of seconds meet busy machines here: what failed runs once more, alone, and is named."""
    def attempt(number, extra):
        report = scratch / f"pytest-{number}.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--dist=loadgroup", f"--junitxml={report}",
                   "--durations=8", "-o", f"cache_dir={scratch / 'cache'}", *extra, "test"]
        if pattern:
            command += ["-k", pattern]
        run = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=3000)
        outcome = Tally()
        if report.exists():
            outcome.read_junit(report, "python")
        # 5: nothing matched the pattern.
        if run.returncode not in (0, 5) and not outcome.failed:
            outcome.failed.append(f"pytest: exit status {run.returncode}")
        return outcome

    first = attempt(1, ["-n", os.environ.get("KWATT_TEST_WORKERS", "4")])
    tally.passed += first.passed
    tally.skipped += first.skipped
    if first.failed:
        second = attempt(2, ["-n", "1", "--lf", "--lfnf=none"])
        tally.passed += second.passed
        tally.failed += second.failed if second.passed or second.failed else first.failed
        for name in set(first.failed) - set(second.failed):
            print(f"passed only at the second attempt: {name}")


def main():
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unit", action="store_true", help="only the C++ tests")
    parser.add_argument("--e2e", action="store_true", help="only the Python tests")
    parser.add_argument("--sanitize", action="store_true", help="the C++ tests under ASan+UBSan and TSan")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name contains this")
    options = parser.parse_args()
    tally = Tally()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        if options.sanitize:
            run_doctest(tally, "asan", options.pattern, Path(scratch))
            run_doctest(tally, "tsan", options.pattern, Path(scratch))
        else:
            if not options.e2e:
                run_doctest(tally, "dev", options.pattern, Path(scratch))
            if not options.unit:
                run_pytest(tally, options.pattern, Path(scratch))
    for name, reason in tally.skipped:
        print(f"skipped: {name}: {reason}")
    for name in tally.failed:
        print(f"FAILED: {name}")
    if tally.passed == 0 and not tally.failed:
        print("no test ran")
        return 1
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped"
          f"  ({time.monotonic() - started:.0f} s)")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
