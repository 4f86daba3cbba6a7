"""Files that stand for kernel attributes: always the same inode, never empty, written by the lab and by an agent."""

from __future__ import annotations

import os
import time
from pathlib import Path

# A write within this time of the last look may bear the same modification time (the kernel's clock ticks every 1-10 ms).
SETTLED_NS = 30_000_000


class AttributeFile:
    """One attribute. The descriptor is kept: 60 machines have some 2,000 of them, read and written ten times a second."""

    def __init__(self, path: Path, text: str, mode: int) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._text = ""
        self._seen_ns = 0
        # Not by way of mkdir + open("w"): the mode of a real attribute may forbid what the lab must do.
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.fchmod(self._fd, mode)
        self.put(text)

    def close(self) -> None:
        os.close(self._fd)

    def put(self, text: str) -> None:
        """Writes in place by one pwrite; a reader sees the old or the new text. Does nothing if it is there already."""
        if text == self._text:
            return
        data = text.encode()
        os.pwrite(self._fd, data, 0)
        if len(data) < len(self._text.encode()):
            # Until here a reader sees the new line and a rest behind it; kernel attributes are read up to the newline.
            os.ftruncate(self._fd, len(data))
        self._text = text

    def settle(self, text: str) -> None:
        """As put(), unless somebody has written since the last look: what a kernel stores, it does not lose."""
        if text != self._text and os.pread(self._fd, 4096, 0) == self._text.encode():
            self.put(text)

    def reset(self, text: str) -> None:
        """As put(), whatever somebody else may have written since the last look."""
        data = text.encode()
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))
        self._text = text

    def taken(self) -> str | None:
        """The first line somebody else wrote since the last look, or None. An empty file is a write under way."""
        stat = os.fstat(self._fd)
        if stat.st_mtime_ns == self._seen_ns:
            return None
        data = os.pread(self._fd, 4096, 0).decode(errors="replace")
        if time.time_ns() - stat.st_mtime_ns > SETTLED_NS:
            self._seen_ns = stat.st_mtime_ns
        if data == self._text or not data.strip():
            return None
        self._text = data
        return data.split("\n", 1)[0].strip()


def plain_file(path: Path, text: str, mode: int = 0o444) -> None:
    """An attribute that never changes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
