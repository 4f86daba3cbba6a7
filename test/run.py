"""./dev test: runs the C++ and the Python tests and closes with one line of counts.

C++: one doctest executable per folder from the dev preset (asan and tsan with --sanitize).
Python: pytest over test/ with KWATT_TEST_WORKERS (5) workers; each has a control plane of its own for
the end-to-end cases. A skipped test is listed with its reason. test/groups.txt names groups of test files.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


GROUPS = ROOT / "test" / "groups.txt"


def read_groups():
    """Group name → patterns of test files, as test/groups.txt says."""
    groups = {}
    for line in GROUPS.read_text().splitlines():
        if line and not line.startswith("#"):
            name, pattern = line.split()
            groups.setdefault(name, []).append(pattern)
    return groups


def chosen_files(groups):
    """(C++ sources or None for all, Python files) of these groups; None or []: everything."""
    if not groups:
        return None, ["test"]
    known = read_groups()
    chosen = sorted({str(f.relative_to(ROOT)) for name in groups for p in known[name] for f in ROOT.glob(p)})
    return [f for f in chosen if f.endswith(".cpp")], [f for f in chosen if f.endswith(".py")]


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []
        self.by_file = {}  # test file → [passed, failed, skipped]

    def read_junit(self, path, group):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{group}: {case.get('name')}"
            counts = self.by_file.setdefault(test_file(case.get("classname", "")), [0, 0, 0])
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed.append(name)
                counts[1] += 1
                if group != "python":  # pytest has told
                    print("".join(part.text or "" for part in case.findall("failure") + case.findall("error")))
            elif case.find("skipped") is not None:
                self.skipped.append((name, case.find("skipped").get("message", "no reason given")))
                counts[2] += 1
            else:
                self.passed += 1
                counts[0] += 1

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        for file, counts in other.by_file.items():
            mine = self.by_file.setdefault(file, [0, 0, 0])
            self.by_file[file] = [a + b for a, b in zip(mine, counts)]

    def forget_failures(self):
        self.failed = []
        for counts in self.by_file.values():
            counts[1] = 0


def test_file(class_name):
    """The path of a test file from what the reports call it: a path (doctest), or dotted (pytest)."""
    if "/" in class_name:
        return class_name[class_name.rfind("test/", 0, class_name.rfind("/") + 1):]
    parts = class_name.split(".")
    while parts and not (ROOT / "/".join(parts)).with_suffix(".py").exists():
        parts.pop()  # a class inside the file
    return "/".join(parts) + ".py"


def run_doctest(tally, preset, pattern, scratch, files=None):
    """The programs, two at a time: some of them mostly wait."""
    def run(program):
        report = scratch / f"{preset}-{program.name}.xml"
        command = [str(program), "--reporters=junit", f"--out={report}"]
        if pattern:
            command.append(f"--test-case=*{pattern}*")
        if files is not None:
            command.append("--source-file=" + ",".join(f"*{name}" for name in files))
        started = time.monotonic()
        # What the code under test logs is shown only when something failed.
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=1200,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return program, report, done, time.monotonic() - started

    programs = sorted((ROOT / "build" / preset / "test").glob("test_*"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for program, report, done, seconds in pool.map(run, programs):
            group = f"{program.name.removeprefix('test_')}" + ("" if preset == "dev" else f" ({preset})")
            before = len(tally.failed)
            count = tally.passed
            if report.exists():
                try:
                    tally.read_junit(report, group)
                except ElementTree.ParseError as error:  # it crashed while writing it, or a child wrote into it
                    tally.failed.append(f"{group}: its report is not readable: {error}")
            if done.returncode != 0:
                sys.stdout.write(done.stdout.decode(errors="replace"))
                if len(tally.failed) == before:
                    tally.failed.append(f"{group}: exit status {done.returncode}")
            if files is not None and tally.passed == count and len(tally.failed) == before:
                continue
            state = "ok" if len(tally.failed) == before else "FAILED"
            print(f"{group:<24} {tally.passed - count:>5} cases  {seconds:6.1f} s  {state}", flush=True)


def run_pytest(tally, pattern, scratch, files=("test",)):
    """Timers of seconds meet busy machines here: what failed runs once more, alone, and is named."""
    def attempt(number, extra):
        report = scratch / f"pytest-{number}.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--dist=loadgroup", f"--junitxml={report}",
                   "--durations=8", "-o", f"cache_dir={scratch / 'cache'}", *extra, *files]
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

    first = attempt(1, ["-n", os.environ.get("KWATT_TEST_WORKERS", "5")])
    if first.failed:
        second = attempt(2, ["-n", "1", "--lf", "--lfnf=none"])
        if second.passed or second.failed:
            for name in set(first.failed) - set(second.failed):
                print(f"passed only at the second attempt: {name}")
            first.forget_failures()
            first.add(second)
    tally.add(first)


def print_groups(tally):
    for group, patterns in read_groups().items():
        counts = [c for file, c in tally.by_file.items() if any(fnmatch.fnmatch(file, p) for p in patterns)]
        if counts:
            passed, failed, skipped = (sum(column) for column in zip(*counts))
            print(f"group {group:<14} {passed} passed, {failed} failed, {skipped} skipped")


def main():
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unit", action="store_true", help="only the C++ tests")
    parser.add_argument("--e2e", action="store_true", help="only the Python tests")
    parser.add_argument("--sanitize", action="store_true", help="the C++ tests under ASan+UBSan and TSan")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name contains this")
    parser.add_argument("--group", action="append", choices=sorted(read_groups()), metavar="NAME",
                        help="only the files of this group, may be repeated: " + " ".join(sorted(read_groups())))
    parser.add_argument("--check", action="store_true", help="only look whether these options go together")
    options = parser.parse_args()
    if options.sanitize and options.e2e:
        parser.error("--sanitize runs the C++ tests and --e2e the Python tests: choose one of them")
    tally = Tally()
    source_files, python_files = chosen_files(options.group)
    if options.sanitize and source_files == []:
        parser.error(f"--sanitize runs the C++ tests, and there are none in group {', '.join(options.group)}")
    if options.check:
        return 0
    if "mlserver" in (options.group or []):
        os.environ["KWATT_TEST_MLSERVER"] = "1"  # its 527 MB are for those who ask for it
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        if options.sanitize:
            run_doctest(tally, "asan", options.pattern, Path(scratch), source_files)
            run_doctest(tally, "tsan", options.pattern, Path(scratch), source_files)
        else:
            if not options.e2e and source_files != []:
                run_doctest(tally, "dev", options.pattern, Path(scratch), source_files)
            if not options.unit and python_files:
                run_pytest(tally, options.pattern, Path(scratch), python_files)
    print_groups(tally)
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
