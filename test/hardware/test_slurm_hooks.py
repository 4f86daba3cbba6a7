"""The programs of examples/slurm, with a Slurm and an ipmitool that only write down what they are asked."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "slurm"


@pytest.fixture
def slurm(tmp_path):
    """Runs a program with fakes before all others in PATH; `slurm.state` is what sinfo says."""
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    calls = tmp_path / "calls"

    def fake(name, script):
        path = fakes / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    fake("sinfo", 'echo "$SLURM_SAYS"')
    fake("scontrol", f'if [ "$1" = show ]; then echo "$3" | tr , "\\n"; else echo "scontrol $*" >> {calls}; fi')
    fake("ipmitool", f'echo "ipmitool $*" >> {calls}; case "$*" in *broken*) exit 1 ;; esac')

    def run(program, *arguments, says="idle", **environment):
        calls.write_text("")
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, timeout=20,
                              env={"PATH": f"{fakes}:{os.environ['PATH']}", "SLURM_SAYS": says, **environment})
        return done.returncode, done.stdout.strip(), calls.read_text().splitlines(), done.stderr

    return run


@pytest.mark.parametrize(("says", "state"), [
    ("idle", "on"), ("alloc", "on"), ("mix", "on"), ("drain", "on"), ("idle~", "off"), ("drain~", "off"),
    ("alloc#", "powering-on"), ("idle%", "powering-off"), ("idle!", "powering-off"), ("down*", "unknown"),
    ("unk", "unknown"), ("", "unknown")])
def test_the_driver_reads_the_state_that_slurm_tells(slurm, says, state):
    assert slurm(EXAMPLES / "kwatt-slurm", "state", "n1", says=says)[:2] == (0, state)


@pytest.mark.parametrize(("verb", "says", "asked"), [
    ("on", "idle~", ["scontrol update NodeName=n1 State=POWER_UP"]), ("on", "idle", []), ("on", "idle#", []),
    ("soft-off", "idle", ["scontrol update NodeName=n1 State=POWER_DOWN_ASAP Reason=kwatt 42"]),
    ("soft-off", "idle~", []), ("soft-off", "idle%", []),
    ("off", "mix", ["scontrol update NodeName=n1 State=POWER_DOWN_FORCE Reason=kwatt 42"]), ("off", "idle~", [])])
def test_what_is_done_already_is_not_asked_again(slurm, verb, says, asked):
    code, _, calls, said = slurm(EXAMPLES / "kwatt-slurm", verb, "n1", says=says, KWATT_OPERATION_ID="42")
    assert (code, calls) == (0, asked), said


def test_what_slurm_cannot_do_is_not_offered_and_no_foreign_text_reaches_it(slurm):
    for verb in ("power", "limit", "unlimit"):
        assert slurm(EXAMPLES / "kwatt-slurm", verb, "n1")[0] == 3
    for name in ("n1,n2", "n[1-9]", "-x", "n1 State=DOWN"):
        code, _, calls, said = slurm(EXAMPLES / "kwatt-slurm", "off", name)
        assert code == 1 and calls == [] and "is no node name" in said


def test_the_hooks_switch_every_node_of_the_list_and_tell_of_those_they_cannot(slurm, tmp_path):
    bmcs = tmp_path / "bmcs"
    bmcs.write_text("n1 10.0.0.1\nn2 broken\n")
    for name in ("kwatt-slurm-suspend", "kwatt-slurm-resume"):
        shutil.copy(EXAMPLES / "kwatt-slurm-power", tmp_path / name)
    settings = {"KWATT_SLURM_BMCS": str(bmcs), "KWATT_BMC_PASSWORD_FILE": "/secret"}
    code, _, calls, said = slurm(tmp_path / "kwatt-slurm-suspend", "n1", **settings)
    assert (code, calls) == (0, ["ipmitool -I lanplus -H 10.0.0.1 -U kwatt -f /secret chassis power soft"]), said
    code, _, calls, said = slurm(tmp_path / "kwatt-slurm-resume", "n3,n2,n1", **settings)
    assert code == 1 and [call.split()[4] for call in calls] == ["broken", "10.0.0.1"]
    assert calls[1].endswith("chassis power on") and "n3 has no line in" in said
