"""One full planning pass; bench_planner measures it and prints one line per figure."""
import re
import subprocess

from bench.figures import BenchError, Figure
from bench.programs import program

LINE = re.compile(r"^planner: (?P<what>.*\D) (?P<value>[\d.,]+) (?P<unit>\S+)"
                  r"(?: \(target <= (?P<target>[\d.,]+) \S+\))?(?:,? *(?P<note>.*))?$")


def measure():
    command = program("bench_planner")
    try:
        answer = subprocess.run([str(command)], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command} did not end within 300 s") from None
    found = figures(answer.stdout)
    if answer.returncode not in (0, 1) or not any(figure.target for figure in found):
        raise BenchError(f"{command} ended with {answer.returncode}: {(answer.stdout + answer.stderr).strip()[-2000:]}")
    return found


def figures(text):
    return [Figure("planner", match["what"], plain(match["value"]), match["unit"],
                   plain(match["target"]) if match["target"] else None, match["note"] or "")
            for match in map(LINE.match, text.splitlines()) if match]


def plain(text):
    return float(text.replace(",", ""))
