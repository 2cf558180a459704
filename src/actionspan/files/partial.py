"""Names of files that are being written, and what killed processes left of them."""

import hashlib
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from actionspan.files.process import Process

_LONGEST_SUFFIX = 16
_FOREIGN_SECONDS = 7 * 24 * 3600.0  # after which another machine's file counts as left over


def partial_path(path: Path) -> Path:
    """Return where this process writes `path`: beside it, with its suffix.

    The name is short whatever the length of the file's own, and no two processes have the same.
    """
    suffix = path.suffix if len(os.fsencode(path.suffix)) <= _LONGEST_SUFFIX else ""
    return path.with_name(f"{_prefix(path)}{_host()}.{os.getpid()}.partial{suffix}")


def sweep(path: Path) -> None:
    """Remove what processes that have ended left of `path`.

    A process of another machine counts as ended when its file has not changed for a week.
    """
    prefix, host = _prefix(path), _host()
    with os.scandir(path.parent) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(prefix)]
    for name in names:
        left = path.with_name(name)
        owner, _, process = name.removeprefix(prefix).partition(".")
        number = process.partition(".")[0]
        with suppress(OSError):  # another process removed it
            ended = (
                Process.of(int(number)) is None
                if owner == host and number.isdecimal()
                else time.time() - left.stat().st_mtime > _FOREIGN_SECONDS
            )
            if ended:
                left.unlink()


def _prefix(path: Path) -> str:
    return f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}."


def _host() -> str:
    """Return what tells apart the machines, and containers, whose process numbers are their own."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return hashlib.sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]
