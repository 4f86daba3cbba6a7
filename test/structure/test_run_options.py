"""Which tests `./dev test` chooses, and what it refuses."""
import subprocess
import sys

import pytest

import run


def test_a_group_is_its_files_by_language():
    sources, scripts = run.chosen_files(["wol", "telemetry"])
    assert "test/hardware/test_wake_lan.cpp" in sources and "test/telemetry/test_history.cpp" in sources
    assert "test/agent/test_wake_lan_on_wire.py" in scripts and "test/e2e/test_telemetry.py" in scripts
    assert not any("redfish" in file for file in sources + scripts)
    assert run.chosen_files(None) == (None, ["test"])


@pytest.mark.parametrize("name, patterns", run.read_groups().items())
def test_every_pattern_of_a_group_has_files(name, patterns):
    for pattern in patterns:
        assert list(run.ROOT.glob(pattern)), f"{name}: {pattern}"


def test_sanitized_tests_are_those_of_the_group(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(run, "run_doctest", lambda _, preset, _pattern, _scratch, files: ran.append((preset, files)))
    monkeypatch.setattr(sys, "argv", ["run.py", "--sanitize", "--group", "wol"])
    run.main()
    sources, _ = run.chosen_files(["wol"])
    assert ran == [("asan", sources), ("tsan", sources)]


@pytest.mark.parametrize("words, sentence", [
    (["--sanitize", "--group", "rbac"], "there are none in group rbac"),
    (["--sanitize", "--e2e"], "choose one of them"),
    (["--group", "nonsense"], "invalid choice: 'nonsense'"),
])
def test_what_would_run_nothing_is_refused_before_anything_is_built(words, sentence):
    done = subprocess.run([sys.executable, run.__file__, "--check", *words], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 2 and sentence in done.stderr
