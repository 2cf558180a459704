"""The user's cache: bytes by name that are quicker to read than to make again.

They are files in the folder `actionspan` of `$XDG_CACHE_HOME`, else of `~/.cache`; the variable
`ACTIONSPAN_CACHE` names another folder, or none where it is empty. Results never depend on them:
damaged files, and files that another user may have written, are not read, and where nothing can be
written nothing is kept.
"""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_MOST = 500_000_000  # bytes of all files
_SUFFIX = ".kept"  # no other file is removed, whatever folder is named
_SEAL = hashlib.sha256().digest_size  # bytes at the beginning of a file


def read_cached(name: str) -> bytes | None:
    """Return the bytes under a name, None if there are none to rely on."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / (name + _SUFFIX)
    try:
        with path.open("rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            seal, content = file.read(_SEAL), file.read()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)  # the files that were not used for the longest time make room
    return content if seal == _seal(name, content) else None


def write_cached(name: str, content: bytes) -> None:
    """Keep bytes under a name, if that can be done here; the least used make room for them."""
    folder = _folder()
    if folder is None or len(content) > _MOST // 2:
        return
    try:
        # readable by its owner alone; other processes see all of the file or nothing
        with tempfile.NamedTemporaryFile(dir=folder, suffix=_SUFFIX, delete=False) as file:
            partial = Path(file.name)
            try:
                file.write(_seal(name, content))
                file.write(content)
                file.close()  # Windows renames no open file
                partial.replace(folder / (name + _SUFFIX))
            finally:
                partial.unlink(missing_ok=True)
        _make_room(folder)
    except OSError:  # a full disk, a folder that is read-only, another process that made room
        return


def _folder() -> Path | None:
    """Return the folder, made if it is missing; None where there can be none."""
    given = os.environ.get("ACTIONSPAN_CACHE")
    if given == "":
        return None
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME", ""))
        root = root if root.is_absolute() else Path.home() / ".cache"
        folder = Path(given) if given else root / "actionspan"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_ours(folder.stat()) else None
    except (OSError, RuntimeError):  # the latter from a user without a home
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Return whether this user alone may write to a file or folder."""
    if not hasattr(os, "getuid"):  # Windows, where a user's folder is the user's
        return True
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.getuid() and not status.st_mode & others


def _seal(name: str, content: bytes) -> bytes:
    """Return a checksum; a file under another name does not have it."""
    seal = hashlib.sha256(name.encode() + b"\0")
    seal.update(content)
    return seal.digest()


def _make_room(folder: Path) -> None:
    used = [(path.stat(), path) for path in folder.glob(f"*{_SUFFIX}")]
    total = 0
    for status, path in sorted(used, key=lambda each: each[0].st_mtime_ns, reverse=True):
        total += status.st_size
        if total > _MOST:
            path.unlink(missing_ok=True)
