"""Which process is which, and which files it is writing or holds.

A process is known also after its number is used again or the machine has restarted; so is what
killed processes left of files.
"""

import errno
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Self

_BATCH_JOB = (b"SLURM_JOB_ID", b"PBS_JOBID", b"LSB_JOBID", b"JOB_ID")


@dataclass(frozen=True)
class Process:
    """A process of this machine or another: its number, and what makes the number unique."""

    host: str
    machine: str  # with `host`: which computer
    boot: str  # since which start of the computer
    space: str  # of the numbers: a container counts its own processes
    batch: str  # the batch job it belongs to, if any
    pid: int
    born: str  # when it began, as the system counts

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return a process of this machine; None if it has ended."""
        seen = _look(pid)
        return cls(*_here(), pid, seen[1]) if seen else None

    @classmethod
    def this(cls) -> Self:
        """Return this process."""
        process = cls.of(os.getpid())
        assert process is not None
        return process

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the process that `text` wrote; None for any other text."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def text(self) -> str:
        """Return all of it in one line."""
        return json.dumps(asdict(self))

    def alive(self) -> bool | None:
        """Return whether it is alive; None if that cannot be seen from here."""
        host, machine, boot, space, _ = _here()
        if (self.host, self.machine) != (host, machine):
            return None
        if self.boot != boot:
            return False
        if self.space != space:
            return None
        seen = _look(self.pid)
        return seen is not None and seen[1] == self.born

    def in_same_job(self) -> bool:
        """Return whether it can be seen from here and belongs to the same batch job."""
        return self.alive() is not None and self.batch == _here()[-1]


def ancestors(pid: int) -> Iterator[int]:
    """Yield the parent of a process, its parent, and so on, up to the first process."""
    while (seen := _look(pid)) and seen[0] > 0:
        pid = seen[0]
        yield pid


def batch_job(environment: Iterable[bytes]) -> str:
    """Return the batch job that an environment, of entries NAME=VALUE, belongs to, or ""."""
    values = dict(entry.partition(b"=")[::2] for entry in environment)
    return next((values[name].decode() for name in _BATCH_JOB if values.get(name)), "")


@cache
def _here() -> tuple[str, str, str, str, str]:
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    machine = _line(Path("/etc/machine-id"))
    boot = _line(Path("/proc/sys/kernel/random/boot_id"))
    batch = batch_job(f"{name}={value}".encode() for name, value in os.environ.items())
    return socket.gethostname(), machine, boot, space, batch


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _look(pid: int) -> tuple[int, str] | None:
    """Return the parent's number and the start of a process; None if it has ended."""
    if Path("/proc/self/stat").exists():
        # PID (NAME) STATE PARENT …, the start as the 22nd; a name may hold anything
        fields = _line(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
        state, parent, born = (fields[0], fields[1], fields[19]) if len(fields) > 19 else "Z00"
    else:
        words = ["ps", "-o", "state=,ppid=,lstart=", "-p", str(pid)]
        shown = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        state, parent, born = (*shown.split(None, 2), "Z", "0", "0")[:3] if shown else "Z00"
    return None if state[0] in "ZX" else (int(parent), born.strip())


_LONGEST_SUFFIX = 16
_FOREIGN_SECONDS = 7 * 24 * 3600.0  # after which another machine's file counts as left over


def partial_path(path: Path) -> Path:
    """Return where this process writes `path`: next to it, with its suffix.

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
    """Return an identity of the machine or container, each with process numbers of its own."""
    host, _, _, space, _ = _here()
    return hashlib.sha256(f"{host} {space}".encode()).hexdigest()[:8]


_LONGEST_OWNER = 200  # bytes; always as many, so that a full disk has room for another


def hold_file(path: Path, owner: str) -> IO[bytes]:
    """Open a file that one process at a time may hold, and write into it who that is.

    It is held until it is closed, or the process ends in any way.

    Raises:
        BlockingIOError: Another process holds it; the text is the owner that it wrote.
    """
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", buffering=0)
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_LONGEST_OWNER)  # locked bytes there cannot be read by others
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            with file:
                file.seek(0)
                holder = file.read(_LONGEST_OWNER).decode(errors="replace").strip()
            raise BlockingIOError(holder) from None
        # else the file system knows no locks
    file.seek(0)
    with suppress(OSError):  # of a full disk: the lock holds, its owner has no name
        file.write(owner.encode()[:_LONGEST_OWNER].ljust(_LONGEST_OWNER))
    return file
