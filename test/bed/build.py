#!/usr/bin/env python3
"""Builds the test bed's programs once, from pinned Go modules, into a cache directory.

    python3 test/bed/build.py            build what is missing; prints the directory
    python3 test/bed/build.py --paths    prints name=path of every program, building nothing
    python3 test/bed/build.py --optional NAME   builds one that only some tests need; prints its path

Programs that KUBEBUILDER_ASSETS holds are used from there. The cache is
${KWATT_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kwatt}/bed-<key>, where the key covers module files and flags,
so another version is another directory. An interrupted build goes on where it stopped.
"""
import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":  # started as a script: make the folder importable as the package `bed`
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bed import toolchain  # noqa: E402

HERE = Path(__file__).resolve().parent
KUBE_VERSION = "1.34.4"
STRIP = "-s -w"
BYTES_PER_PROGRAM = 1 << 30  # its share of Go's module and build caches, and itself
LOCK_WAIT_SECONDS = 45 * 60


def kube_ldflags():
    """What upstream's release scripts stamp, as far as clients look at it (`kubectl version`, discovery)."""
    major, minor, _ = KUBE_VERSION.split(".")
    stamps = {"gitVersion": f"v{KUBE_VERSION}", "gitMajor": major, "gitMinor": minor}
    flags = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamps.items()]
    flags.append(f"-X k8s.io/client-go/pkg/version.gitVersion=v{KUBE_VERSION}")
    return " ".join([STRIP, *flags])


# name -> (module folder, package, ldflags), in build order
PROGRAMS = {
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3", STRIP),
    "kube-apiserver": ("kube", "k8s.io/kubernetes/cmd/kube-apiserver", kube_ldflags()),
    "kube-controller-manager": ("kube", "k8s.io/kubernetes/cmd/kube-controller-manager", kube_ldflags()),
    "kube-scheduler": ("kube", "k8s.io/kubernetes/cmd/kube-scheduler", kube_ldflags()),
    "kubectl": ("kube", "k8s.io/kubernetes/cmd/kubectl", kube_ldflags()),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok", STRIP),
}
# The same for programs that only some tests need: each is built by the first test that asks for it, into a directory of
# its own, so that a new version of one builds nothing else again.
OPTIONAL = {
    "metrics-server": ("metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server", STRIP),
}


class BuildError(RuntimeError):
    """A program could not be built; the text ends with the tail of go's own output."""


def cache_root():
    if os.environ.get("KWATT_CACHE"):
        return Path(os.environ["KWATT_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kwatt"


def cache_dir():
    return cache_root() / f"bed-{key_of(PROGRAMS)}"


def key_of(programs):
    digest = hashlib.sha256(os.uname().machine.encode())
    for folder in sorted({spec[0] for spec in programs.values()}):
        for name in ("go.mod", "go.sum"):
            digest.update((HERE / folder / name).read_bytes())
    digest.update(repr(sorted(programs.items())).encode())
    return digest.hexdigest()[:12]


def program_path(name, directory):
    """Where the program is or will be: KUBEBUILDER_ASSETS first, then the cache."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and os.access(Path(assets) / name, os.X_OK):
        return Path(assets).resolve() / name
    return directory / name


def paths():
    directory = cache_dir()
    return {name: program_path(name, directory) for name in PROGRAMS}


def ensure(out=sys.stderr):
    """All programs by name, built if need be. Milliseconds when nothing is missing."""
    found = paths()
    if all(path.exists() for path in found.values()):
        return found
    directory = cache_dir()
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory.with_suffix(".lock"), out):
        missing = [name for name, path in found.items() if not path.exists()]  # another run may have built them
        build_missing(missing, directory, out)
    return found


def ensure_optional(name, out=sys.stderr):
    """The path of a program of OPTIONAL, built if need be (about a minute, once)."""
    directory = cache_root() / f"{name}-{key_of({name: OPTIONAL[name]})}"
    path = program_path(name, directory)
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory.with_suffix(".lock"), out):
        if not path.exists():  # another run may have built it
            build_missing([name], directory, out)
    return path


@contextlib.contextmanager
def locked(path, out):
    """One build at a time. The kernel frees the lock when its holder dies, however it dies."""
    with open(path, "w") as lock:
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        waiting = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    print(f"another build holds {path}, waiting", file=out, flush=True)
                    waiting = True
                if time.monotonic() > deadline:
                    raise BuildError(f"{path} is still held after {LOCK_WAIT_SECONDS} s") from None
                time.sleep(0.5)
        yield


def build_missing(missing, directory, out):
    if not missing:
        return
    check_space(directory, BYTES_PER_PROGRAM * len(missing))
    for leftover in directory.glob("*.tmp"):
        leftover.unlink()
    folders = sorted({HERE / spec_of(name)[0] for name in missing})
    go = toolchain.find_go(folders, lambda text: print(text, file=out, flush=True))
    minutes = "about 8 minutes" if set(missing) & set(PROGRAMS) else "a minute or two"
    print(f"building {len(missing)} programs of the test bed with {go} into {directory}\n"
          f"({minutes} on 2 cores the first time, never again for these versions)",
          file=out, flush=True)
    for number, name in enumerate(missing, 1):
        build_one(go, name, directory, Progress(f"[{number}/{len(missing)}] {name}", out))


def check_space(directory, needed):
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise BuildError(f"{directory} has {free >> 20} MiB free; this build needs about {needed >> 20} MiB")


def spec_of(name):
    return PROGRAMS.get(name) or OPTIONAL[name]


def build_one(go, name, directory, progress):
    folder, package, ldflags = spec_of(name)
    temporary = directory / f"{name}.tmp"
    log_path = directory / f"{name}.log"
    env = dict(os.environ, CGO_ENABLED="0", GO111MODULE="on", GOWORK="off", GOTOOLCHAIN="local",
               GOFLAGS="-mod=readonly -buildvcs=false")
    command = [go, "build", "-trimpath", "-ldflags", ldflags, "-o", str(temporary), package]
    with open(log_path, "w") as log:
        process = subprocess.Popen(command, cwd=HERE / folder, env=env, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT)
        try:
            progress.until(process)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode != 0:
        tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-20:])
        raise BuildError(f"building {name} failed (go exit {process.returncode}, full log {log_path}):\n{tail}")
    temporary.rename(directory / name)  # only ever complete programs carry the final name
    log_path.unlink()


class Progress:
    """One line per program: a running clock on a terminal, the final seconds in a log."""

    def __init__(self, label, out):
        self.label, self.out, self.started = label, out, time.monotonic()

    def until(self, process):
        live = self.out.isatty()
        if not live:
            print(f"{self.label} …", end="", file=self.out, flush=True)
        while True:
            try:
                process.wait(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if live:
                    print(f"\r{self.label} … {self.seconds()} s", end="", file=self.out, flush=True)
        start = f"\r{self.label} …" if live else ""
        verdict = "" if process.returncode == 0 else " FAILED"
        print(f"{start} {self.seconds()} s{verdict}", file=self.out, flush=True)

    def seconds(self):
        return round(time.monotonic() - self.started)


def main():
    parser = argparse.ArgumentParser(description="Build the test bed's programs into the cache.")
    parser.add_argument("--paths", action="store_true", help="print name=path of every program, build nothing")
    parser.add_argument("--optional", choices=sorted(OPTIONAL), help="build this one too and print its path")
    options = parser.parse_args()
    if options.paths:
        for name, path in paths().items():
            print(f"{name}={path}")
        return 0
    try:
        if options.optional:
            print(ensure_optional(options.optional))
            return 0
        ensure()
    except (BuildError, toolchain.ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the next run goes on from here", file=sys.stderr)
        return 130
    print(cache_dir())
    return 0


if __name__ == "__main__":
    sys.exit(main())
