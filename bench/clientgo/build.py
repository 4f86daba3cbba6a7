"""Builds the client-go program next to the test bed's programs, keyed by its sources."""
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from bed import build, toolchain

HERE = Path(__file__).resolve().parent


def ensure():
    """The program, built if it is not there yet."""
    digest = hashlib.sha256(os.uname().machine.encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((HERE / name).read_bytes())
    path = build.cache_root() / f"clientgo-{digest.hexdigest()[:12]}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with build.locked(path.with_suffix(".lock"), sys.stderr):
        if not path.exists():
            _build(path)
    return path


def _build(path):
    def say(text):
        print(text, file=sys.stderr, flush=True)

    go = toolchain.find_go([HERE], say)
    say(f"building the client-go program with {go}")
    temporary = path.with_suffix(".tmp")
    env = dict(os.environ, CGO_ENABLED="0", GO111MODULE="on", GOWORK="off", GOTOOLCHAIN="local",
               GOFLAGS="-mod=readonly -buildvcs=false")
    answer = subprocess.run([go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(temporary), "."], cwd=HERE,
                            env=env, capture_output=True, text=True, timeout=1200)
    if answer.returncode != 0:
        raise build.BuildError(f"building bench/clientgo failed:\n{answer.stderr[-4000:]}")
    temporary.rename(path)
