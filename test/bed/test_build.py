"""The builder, with a go program that is a shell script: what it builds, reuses, and says when it cannot."""
import io
import subprocess
import sys
from pathlib import Path

import pytest

from bed import build, toolchain

FAKE_GO = """#!/bin/sh
case $1 in
  version) echo "go version go%(version)s linux/amd64" ;;
  build)
    echo "$@" >> %(log)s
    %(build)s
    while [ "$1" != -o ]; do shift; done
    echo program > "$2"; chmod +x "$2" ;;
esac
"""


@pytest.fixture
def fake_go(tmp_path, monkeypatch):
    """Installs a fake go as the only one; returns a function that writes it and the list of its builds."""
    log = tmp_path / "builds"
    log.touch()
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("KWATT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(toolchain, "USUAL_PLACES", ())
    monkeypatch.setattr(build, "BYTES_PER_PROGRAM", 0)  # the fake's programs are small, the disk may be

    def write(version="99.1", build=""):
        (folder / "go").write_text(FAKE_GO % {"version": version, "log": log, "build": build})
        (folder / "go").chmod(0o755)
        return lambda: log.read_text().splitlines()
    return write


@pytest.mark.parametrize("text, version", [
    ("go version go1.19.8 linux/amd64", (1, 19, 8)),
    ("go version go1.26.8 linux/amd64", (1, 26, 8)),
    ("go version go1.27rc1 linux/amd64", (1, 27, 0)),
    ("1.26.0", (1, 26, 0)),
    ("1.24", (1, 24, 0)),
    ("devel", None),
])
def test_versions_are_read_from_what_go_prints(text, version):
    assert toolchain.parse_version(text) == version


def test_a_first_run_builds_every_program_and_a_second_nothing(fake_go):
    builds = fake_go()
    out = io.StringIO()
    found = build.ensure(out)
    assert all(path.read_text() == "program\n" for path in found.values())
    assert len(builds()) == len(build.PROGRAMS) == 6
    assert "[6/6] kwok … 0 s" in out.getvalue()
    assert build.ensure(out) == found
    assert len(builds()) == 6


def test_an_interrupted_build_goes_on_where_it_stopped(fake_go):
    fake_go(build='case "$*" in *kubectl*) echo broken source >&2; exit 1 ;; esac')
    with pytest.raises(build.BuildError, match="building kubectl failed .*\nbroken source"):
        build.ensure(io.StringIO())
    paths = build.paths()
    assert paths["etcd"].exists() and not paths["kubectl"].exists()
    builds = fake_go()
    before = len(builds())
    build.ensure(io.StringIO())
    assert len(builds()) - before == 2, "only kubectl and kwok were missing"


def test_programs_of_kubebuilder_assets_are_used_and_the_others_built(fake_go, tmp_path, monkeypatch):
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (assets / name).write_text("given\n")
        (assets / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    builds = fake_go()
    found = build.ensure(io.StringIO())
    assert found["kubectl"] == assets / "kubectl"
    assert len(builds()) == 3


def test_two_runs_at_once_build_every_program_once(fake_go):
    builds = fake_go(build="sleep 0.2")
    script = "from bed import build; build.BYTES_PER_PROGRAM = 0; build.main()"
    command = [sys.executable, "-c", script]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=Path(build.__file__).parent.parent) for _ in range(2)]
    outputs = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    assert len(builds()) == 6
    assert any("waiting" in stderr for _, stderr in outputs)


def test_an_optional_program_is_built_when_asked_for_and_changes_no_other(fake_go):
    builds = fake_go()
    before = build.cache_dir()
    path = build.ensure_optional("metrics-server", io.StringIO())
    assert path.read_text() == "program\n"
    assert build.ensure_optional("metrics-server", io.StringIO()) == path
    assert len(builds()) == 1
    assert build.cache_dir() == before and not before.exists()
    assert "metrics-server" not in build.paths()


def test_another_module_version_is_another_cache_directory(monkeypatch):
    before = build.cache_dir()
    monkeypatch.setitem(build.PROGRAMS, "kwok", ("kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w -X main.other=1"))
    assert build.cache_dir() != before


def test_without_any_go_it_says_what_to_install(fake_go, monkeypatch):
    monkeypatch.setattr(toolchain, "installed_gos", list)
    with pytest.raises(toolchain.ToolchainError, match="apt-get install golang-go"):
        build.ensure(io.StringIO())


def test_an_old_go_that_cannot_download_says_why(fake_go):
    fake_go(version="1.19.8")  # the fake answers nothing to `go mod download`
    with pytest.raises(toolchain.ToolchainError, match="could not download golang.org/toolchain@v0.0.1-go1.26.8"):
        build.ensure(io.StringIO())
