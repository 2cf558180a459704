"""What this process is doing, where the process that watches it can read it after a kill."""

import mmap

_SIZE = 200
_board: mmap.mmap | None = None


def make_board() -> mmap.mmap:
    """Return memory that a child process of this one shares."""
    global _board
    _board = mmap.mmap(-1, _SIZE)
    return _board


def doing(what: str) -> None:
    """Note what this process is doing, e.g. "training, epoch 3"; nothing if nobody watches."""
    if _board is not None:
        _board[:] = what.encode()[:_SIZE].ljust(_SIZE)


def was_doing(board: mmap.mmap) -> str:
    """Return what the child noted last, or ""."""
    return board[:].decode(errors="ignore").strip("\0 ")
