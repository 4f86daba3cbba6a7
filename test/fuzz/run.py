"""./dev fuzz [NAME...] --seconds N: libFuzzer on what reads foreign bytes, one target after the other.

New inputs that reach new code are kept in KWATT_CACHE (default ~/.cache/kwatt) and used the next time; the corpus in
test/fuzz/corpus/ is only read. What crashes a target is kept next to them, and named: with its mend it belongs into
the corpus, which every `./dev test` plays.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS = ROOT / "test" / "fuzz" / "corpus"
CACHE = Path(os.environ.get("KWATT_CACHE", Path.home() / ".cache" / "kwatt")) / "fuzz"


def run(name, seconds):
    """True if nothing was found."""
    found = CACHE / name
    found.mkdir(parents=True, exist_ok=True)
    seeds = [str(CORPUS / name)]
    if name == "object":
        seeds.append(str(ROOT / "test" / "golden" / "bodies"))
    # A second for 16 KiB is a thousand times what it should take.
    command = [str(ROOT / "build" / "fuzz" / "fuzz" / f"fuzz_{name}"), f"-max_total_time={seconds}", "-timeout=5",
               "-rss_limit_mb=2048", "-max_len=16384", "-print_final_stats=1", f"-artifact_prefix={CACHE}/{name}-",
               str(found), *seeds]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds + 300)
    out = done.stdout.decode(errors="replace")
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", out)
    covered = re.findall(r"\bcov: (\d+)", out)
    print(f"{name:<10} {runs.group(1) if runs else '?':>10} inputs  {covered[-1] if covered else '?':>6} edges  "
          f"{'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
    if done.returncode != 0:
        print(out[-8000:])
    return done.returncode == 0


def main():
    names = sorted(folder.name for folder in CORPUS.iterdir())
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + " ".join(names) + "; default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    options = parser.parse_args()
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {' '.join(names)}")
    results = [run(name, options.seconds) for name in options.names or names]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
