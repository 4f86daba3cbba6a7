"""Finds a Go toolchain new enough for the test bed, or fetches one as a Go module.

The bed's modules need a newer Go than Debian 12 packages (1.19). Any Go can download modules, and the
Go project publishes its toolchains as modules (golang.org/toolchain), so the packaged Go is enough to
fetch the right one through whatever module proxy the machine is set up for. The checksum database
verifies it exactly as it verifies every other module.
"""
import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

# Fetched only when no installed Go is at least as new as the `go` lines of the bed's modules.
FETCHED_GO = "1.26.8"
USUAL_PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")
GO_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}


class ToolchainError(RuntimeError):
    """No usable Go, with a sentence that says what to install."""


def parse_version(text):
    """(1, 26, 8) of `go1.26.8`, `1.26` or `go version go1.26rc1 linux/amd64`; None if there is none."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in match.groups()) if match else None


def required_version(module_dirs):
    """The newest `go` line among the modules to build."""
    lines = [re.search(r"^go (\S+)$", (Path(d) / "go.mod").read_text(), re.M) for d in module_dirs]
    return max(parse_version(line.group(1)) for line in lines)


def installed_gos():
    """Every go program on PATH and in the usual places, PATH first."""
    found = [shutil.which("go")]
    found += [path for path in USUAL_PLACES if os.access(path, os.X_OK)]
    versioned = Path("/usr/lib").glob("go-*/bin/go")
    found += [str(path) for path in sorted(versioned, reverse=True)]
    return list(dict.fromkeys(path for path in found if path))


def version_of(go):
    """The version of the program itself (GOTOOLCHAIN=local: not of one it might switch to)."""
    env = dict(os.environ, GOTOOLCHAIN="local", GO111MODULE="on")
    try:
        answer = subprocess.run([go, "version"], env=env, cwd="/", capture_output=True, text=True,
                                timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stdout) if answer.returncode == 0 else None


def fetch(go, say):
    """Downloads FETCHED_GO with an older go program and returns the path of the new one."""
    arch = GO_ARCH.get(os.uname().machine)
    if arch is None:
        raise ToolchainError(f"no Go toolchain is published for {os.uname().machine}")
    module = f"golang.org/toolchain@v0.0.1-go{FETCHED_GO}.linux-{arch}"
    say(f"fetching Go {FETCHED_GO} as the module {module}")
    env = dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GO111MODULE="on", GOWORK="off")
    answer = subprocess.run([go, "mod", "download", "-json", module], env=env, cwd="/",
                            capture_output=True, text=True, timeout=900)
    try:
        result = json.loads(answer.stdout)
    except ValueError:
        result = {}
    if answer.returncode != 0 or "Dir" not in result:
        reason = result.get("Error") or answer.stderr.strip()
        raise ToolchainError(f"{go} could not download {module}: {reason}")
    root = Path(result["Dir"])
    make_programs_executable(root)
    fetched = str(root / "bin" / "go")
    if version_of(fetched) is None:
        raise ToolchainError(f"{fetched} was downloaded but does not run")
    return fetched


def make_programs_executable(root):
    """Module archives carry no file modes, and the module cache is read-only: a+x where it is needed."""
    programs = [*(root / "bin").iterdir(), *(root / "pkg" / "tool").rglob("*")]
    for program in programs:
        if program.is_file():
            mode = program.stat().st_mode
            program.chmod(mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def find_go(module_dirs, say):
    """A go program that can build all the modules; fetches one if the installed ones are too old."""
    needed = required_version(module_dirs)
    gos = [(go, version_of(go)) for go in installed_gos()]
    gos = [(go, version) for go, version in gos if version]
    for go, version in gos:
        if version >= needed:
            return go
    if not gos:
        raise ToolchainError(
            "no Go is installed. Install Debian's package (apt-get install golang-go); any version "
            f"will do, it is used to fetch Go {FETCHED_GO} from the Go module proxy")
    return fetch(gos[0][0], say)
