"""The command line of bed.py: one bed in the foreground or detached, named by its directory."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bed import build, bulk, objects, toolchain
from bed.bed import Bed
from bed.process import wait_until

STATE = "bed.json"
DETACHED_START_SECONDS = 120


def main(argv=None):
    options = parse(argv)
    try:
        return {"up": up, "down": down}[options.command](options)
    except (build.BuildError, toolchain.ToolchainError, RuntimeError, TimeoutError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def parse(argv):
    parser = argparse.ArgumentParser(prog="bed.py", description="A real Kubernetes control plane on loopback.")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("up", help="start it; Ctrl-C ends it unless --detach")
    stop = commands.add_parser("down", help="end the one in the directory")
    default = Path(tempfile.gettempdir()) / f"kwatt-bed-{os.getuid()}"
    for command in (start, stop):
        command.add_argument("--dir", type=Path, default=default, help=f"its directory (default {default})")
    start.add_argument("--nodes", type=int, default=0, metavar="N", help="create N kwok nodes node01, node02, …")
    start.add_argument("--no-kwok", action="store_true", help="nothing plays the nodes' kubelets")
    start.add_argument("--detach", action="store_true", help="return when it is ready; end it with `down`")
    return parser.parse_args(argv)


def up(options):
    directory = options.dir.resolve()
    state = running(directory)
    if state:
        print(f"runs already (pid {state['pid']})", file=sys.stderr)
        print(f"KUBECONFIG={state['kubeconfig']}")
        return 0
    if options.detach:
        return up_detached(options, directory)
    return up_in_foreground(options, directory)


def up_in_foreground(options, directory):
    stop_requested = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: stop_requested.append(received))
    bed = Bed(directory, kwok=not options.no_kwok).start()
    try:
        width = max(2, len(str(options.nodes)))
        bulk.create_all(bed, (objects.node(f"node{index:0{width}}") for index in range(1, options.nodes + 1)))
        print(f"ready in {bed.start_seconds:.1f} s, {sum(bed.memory().values()) >> 20} MiB", file=sys.stderr)
        write_state(directory, bed)
        print(f"KUBECONFIG={bed.kubeconfig}", flush=True)
        while not stop_requested:
            for name in bed.process_names():
                bed.process(name).check()
            time.sleep(0.5)
    finally:
        bed.stop()
        (directory / STATE).unlink(missing_ok=True)
    return 0


def up_detached(options, directory):
    build.ensure()  # with its progress on our terminal, not in the log
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(Path(__file__).with_name("bed.py")), "up", "--dir", str(directory),
               "--nodes", str(options.nodes)] + (["--no-kwok"] if options.no_kwok else [])
    log_path = directory / "up.out"
    with open(log_path, "w") as log:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    state = wait_until(lambda: child.poll() is not None or running(directory), DETACHED_START_SECONDS, "bed to start")
    if child.poll() is not None:
        raise RuntimeError(f"the bed did not start:\n{log_path.read_text()}")
    print(log_path.read_text().splitlines()[0], file=sys.stderr)
    print(f"KUBECONFIG={state['kubeconfig']}")
    return 0


def down(options):
    directory = options.dir.resolve()
    state = running(directory)
    if not state:
        print(f"no bed runs in {directory}", file=sys.stderr)
        return 0
    os.kill(state["pid"], signal.SIGTERM)
    wait_until(lambda: not alive(state), 30, f"the bed of pid {state['pid']} to end")
    return 0


def write_state(directory, bed):
    temporary = directory / f"{STATE}.tmp"
    temporary.write_text(json.dumps({"pid": os.getpid(), "started": start_time(os.getpid()),
                                     "kubeconfig": str(bed.kubeconfig)}))
    temporary.rename(directory / STATE)


def running(directory):
    """The state of the bed in the directory if its process still lives, else None."""
    try:
        state = json.loads((directory / STATE).read_text())
    except (OSError, ValueError):
        return None
    return state if alive(state) else None


def alive(state):
    try:
        return start_time(state["pid"]) == state["started"]
    except OSError:
        return False


def start_time(pid):
    """Tells a process from a later one with the same pid."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
