"""Interpreters with packages from PyPI that only comparisons with other people's solvers need: each in a virtual
environment of its own in the cache, made at the first call on this machine."""
import fcntl
import subprocess
import venv

from bed.build import cache_root


def interpreter(name, packages):
    """The python of the environment `name`, which is versioned: other packages need another name."""
    folder = cache_root() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    program = folder / "bin" / "python"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            venv.create(folder, with_pip=True, clear=True)
            subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
                           check=True, timeout=900)
            (folder / "complete").touch()
    return program
