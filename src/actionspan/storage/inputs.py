"""The files that a command reads: it never writes over one, whatever its path is called."""

import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from actionspan.errors import JobError

_Known = tuple[int, int] | None  # device and number of a file
_read: dict[_Known, Any] | None = None  # None: no command runs


@contextmanager
def inputs_kept(read: Iterable[Any] = (), written: Iterable[Any] = ()) -> Iterator[None]:
    """Refuse, inside the block, to write over files that are read; values may be no paths."""
    global _read
    before, _read = _read, {}
    try:
        keep(read)
        for path in written:
            refuse_input(path)
        yield
    finally:
        _read = before


def keep(paths: Iterable[Any]) -> None:
    """Note files that a command reads, if one runs."""
    if _read is not None:
        _read.update((_known(path), path) for path in paths)


def refuse_input(path: Any) -> None:
    """Raise JobError if `path` is a file that is read, by whatever name or link."""
    file = _known(path)
    # another file may have the number of a removed file by now
    if file and _read and file == _known(_read.get(file)):
        raise JobError(f"{path}: is an input of this command; name another output")


def _known(path: Any) -> _Known:
    """Return the identity of a file under any name; None for a folder, and for no path."""
    with suppress(OSError, TypeError, ValueError):
        found = Path(path).stat()
        return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
    return None
