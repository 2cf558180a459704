"""Whether a file is still as it was written: its size and SHA-256 in a line, recorded elsewhere."""

import hashlib
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20


class Growing:
    """The fingerprint of a file's first `size` bytes, all if None, and of those that are added.

    Raises:
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path | None = None, size: int | None = None) -> None:
        self.size = 0
        self._sum: Any = hashlib.sha256()
        if path is not None:
            with path.open("rb") as file:
                while block := file.read(_BLOCK if size is None else min(_BLOCK, size - self.size)):
                    self.add(block)

    def add(self, data: bytes) -> None:
        """Append bytes."""
        self._sum.update(data)
        self.size += len(data)

    def __str__(self) -> str:
        return f"{self.size} {self._sum.hexdigest()}"


def fingerprint(path: Path) -> str | None:
    """Return the size and the SHA-256 of a file in a line; None: it is not there."""
    try:
        return str(Growing(path))
    except FileNotFoundError:
        return None
