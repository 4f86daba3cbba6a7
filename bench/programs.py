"""Where the programs under measurement are, and how they are run."""
import json
import os
import subprocess
from pathlib import Path

from bench.figures import BenchError

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20


def program(name):
    """A program of the preset in KWATT_PRESET (run.py sets release)."""
    path = ROOT / "build" / os.environ["KWATT_PRESET"] / "bin" / name
    if not path.exists():
        raise BenchError(f"{path} does not exist: run ./dev build {os.environ['KWATT_PRESET']}")
    return path


def run_json(command, seconds=600):
    """The JSON object that the command prints."""
    try:
        answer = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command[0]} did not end within {seconds} s") from None
    if answer.returncode != 0:
        raise BenchError(f"{command[0]} failed ({answer.returncode}): {answer.stderr.strip()[-2000:]}")
    return json.loads(answer.stdout)


def memory_of(pid, key="VmRSS"):
    """Bytes, from /proc/<pid>/status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"process {pid} has no {key}")
