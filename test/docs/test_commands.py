"""The commands of the documentation, run as a reader would run them, against a real API server.

A ```sh block is run if the line before it is one of
    <!-- run -->                     needs an API server with kwatt's kinds
    <!-- run with the programs -->   needs kwatt's programs as well
and `... in the background -->` for what a reader starts in another terminal. The blocks of a page run in order, in one
shell, from the project's root; a failing command fails the test.
"""
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import gen_reference
from bed import ApiError, Bed, Timers
from documents import ROOT, blocks, markdown_files

pytestmark = [pytest.mark.xdist_group("docs"), pytest.mark.long(80)]
SECONDS = 120  # the longest page takes about a quarter of it on an idle machine


@pytest.fixture(scope="module")
def bed():
    with Bed(timers=Timers(node_monitor_grace="8s", node_lease_seconds=6)) as running:
        for name in ("node01", "node02", "node03"):
            running.create_node(name)
        yield running


def installed(bed):
    try:
        bed.api.request("GET", "/apis/kwatt.dev/v1alpha1/nodepowers")
        return bed.api.get("Namespace", "kwatt-system")["status"]["phase"] == "Active"
    except ApiError:
        return False


def install(bed):
    """As the README says; before each page that needs it, because one of them uninstalls."""
    if installed(bed):
        return
    bed.kubectl("apply", "-f", ROOT / "manifests" / "00-namespace.yaml")
    bed.kubectl("apply", "-f", ROOT / "crds", "-f", ROOT / "manifests")
    bed.kubectl("wait", "--for=condition=Established", "--timeout=20s", "-f", ROOT / "crds")


def pages():
    return [path for path in markdown_files() if any(block.directive for block in blocks(path))]


def script_of(path):
    """One bash script of the page's marked blocks; stops at the first command that fails."""
    lines = ["set -eu"]
    for block in blocks(path):
        if not block.directive:
            continue
        lines.append(f"echo '==> {block.name}' >&2")
        if block.background:
            # As in a terminal of its own: its output is not mixed with that of the reader's.
            lines += ["{", block.text.rstrip(), '} >>"$DOCS_BACKGROUND_LOG" 2>&1 &']
        else:
            lines.append(block.text.rstrip())
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of(path, bed):
    if any("programs" in block.directive for block in blocks(path)):
        missing = [name for name in gen_reference.PROGRAMS if not gen_reference.program_path(name).exists()]
        if missing:
            pytest.skip(f"{', '.join(missing)} not built")
    install(bed)
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "background.log"
        log.touch()
        environment = {**os.environ, "KUBECONFIG": str(bed.kubeconfig), "HOME": scratch, "TMPDIR": scratch,
                       "KUBECACHEDIR": scratch, "DOCS_BACKGROUND_LOG": str(log),
                       "PATH": f"{Path(bed._programs['kubectl']).parent}:{os.environ['PATH']}"}  # noqa: SLF001
        run = subprocess.Popen(["bash", "-c", script_of(path)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            output, _ = run.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            end(run)
            output, _ = run.communicate()
            pytest.fail(f"not done after {SECONDS} s\n{output}\nbackground:\n{tail(log)}")
        finally:
            end(run)
        assert run.returncode == 0, f"{output}\nbackground:\n{tail(log)}"


def end(run):
    """Ends what the page has started in the background: all of it is in the shell's process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(run.pid, number)
        except ProcessLookupError:
            return
        if number == signal.SIGTERM:
            wait_for_group(run.pid)


def wait_for_group(group, seconds=5):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def tail(path, lines=60):
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
