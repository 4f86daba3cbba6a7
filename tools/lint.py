"""./dev lint: formatting, include directions, clang-tidy. Each finding names file and line.

clang-tidy is slow on template-heavy sources, so a source that passed is remembered by the hash of
its preprocessed text and of the configuration, and is not looked at again until one of them changes.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("KWATT_CACHE", Path.home() / ".cache" / "kwatt")) / "lint"


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                         cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [line for line in out.splitlines() if (ROOT / line).exists()]


def formatting():
    files = tracked("*.cpp", "*.hpp")
    run = subprocess.run(["clang-format-14", "--dry-run", "--Werror", *files], cwd=ROOT)
    return run.returncode == 0


def include_direction():
    sys.path.insert(0, str(ROOT / "test" / "structure"))
    import include_direction as check
    problems = check.problems(ROOT)
    for problem in problems:
        print(problem, file=sys.stderr)
    return not problems


def tidy_one(entry, config):
    """Runs clang-tidy on one compile command; returns (file, ok, output, from_cache)."""
    arguments = [a for a in shlex.split(entry["command"])]
    # Drop the launcher, the output, the precompiled header, which clang cannot read, and -Werror:
    # the compiler has its own opinion of warnings.
    while not arguments[0].endswith(("c++", "g++", "cc")):
        arguments.pop(0)
    kept, skip = [], 0
    for position, argument in enumerate(arguments):
        if skip:
            skip -= 1
        elif argument in ("-o", "-include", "-MF", "-MT"):
            skip = 1
        elif argument in ("-c", "-MD", "-Werror", "-Winvalid-pch", "-fpch-preprocess"):
            continue
        else:
            kept.append(argument)
    source = entry["file"]
    text = subprocess.run([*kept, "-E", "-P"], cwd=entry["directory"], capture_output=True)
    stamp = CACHE / hashlib.sha256(config + text.stdout).hexdigest()
    if text.returncode == 0 and stamp.exists():
        return source, True, "", True
    run = subprocess.run(["clang-tidy-14", "--quiet", source, "--", *kept[1:]],
                         cwd=entry["directory"], capture_output=True, text=True)
    if run.returncode == 0:
        stamp.touch()
    return source, run.returncode == 0, run.stdout + run.stderr, False


def tidy(only):
    configure = subprocess.run(["cmake", "--preset", "dev", "-DKWATT_BENCH=ON", "-B", "build/lint"],
                               cwd=ROOT, capture_output=True, text=True)
    if configure.returncode != 0:
        print(configure.stdout, configure.stderr, file=sys.stderr)
        return False
    commands = json.loads((ROOT / "build/lint/compile_commands.json").read_text())
    # Product code only: doctest's macros expand to what the checks dislike.
    wanted = {str(ROOT / f) for f in tracked("*.cpp") if not f.startswith(("test/", "bench/"))}
    entries = [e for e in commands if e["file"] in wanted and (not only or any(o in e["file"] for o in only))]
    config = (ROOT / ".clang-tidy").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)
    started, done, fresh, ok = time.monotonic(), 0, 0, True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, good, output, cached in pool.map(lambda e: tidy_one(e, config), entries):
            done += 1
            fresh += not cached
            if not good:
                ok = False
                print(output, file=sys.stderr)
            if not cached or done == len(entries):
                print(f"[{done}/{len(entries)}] clang-tidy {os.path.relpath(source, ROOT)}", file=sys.stderr)
    print(f"clang-tidy: {len(entries)} files, {fresh} looked at, {time.monotonic() - started:.0f} s")
    return ok


def main():
    parser = argparse.ArgumentParser(prog="./dev lint", description=__doc__)
    parser.add_argument("--no-tidy", action="store_true", help="skip clang-tidy (fast)")
    parser.add_argument("only", nargs="*", help="clang-tidy only files whose path contains one of these")
    options = parser.parse_args()
    steps = [("formatting", formatting), ("include directions", include_direction)]
    if not options.no_tidy:
        steps.append(("clang-tidy", lambda: tidy(options.only)))
    failed = []
    for name, step in steps:
        good = step()
        print(f"lint: {name}: {'ok' if good else 'FAILED'}", flush=True)
        if not good:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
