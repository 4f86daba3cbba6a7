"""One full planning pass; bench_planner measures it and prints one line per figure."""
import re
import subprocess

from bench.figures import BenchError, Figure
from bench.programs import program

# planner pass 1000 nodes 30000 pods: 12.3 ms (target ≤ 200 ms)
LINE = re.compile(r"^planner (?P<what>.+): (?P<value>[\d.]+) (?P<unit>\S+) \(target ≤ (?P<target>[\d.]+) \S+\)$", re.M)


def measure():
    command = program("bench_planner")
    try:  # its details go to stderr, as ours do
        answer = subprocess.run([str(command)], stdout=subprocess.PIPE, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command} did not end within 300 s") from None
    found = [Figure("planner", match["what"], float(match["value"]), match["unit"], float(match["target"]))
             for match in LINE.finditer(answer.stdout)]
    if answer.returncode != 0 or not found:
        raise BenchError(f"{command} ended with {answer.returncode} and printed: {answer.stdout.strip()[-2000:]}")
    return found
