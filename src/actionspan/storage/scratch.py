"""Large arrays in unnamed files of the temporary folder (`TMPDIR`), which vanish with them.

The system writes their pages to the disk where memory runs short. Small arrays are ordinary ones.
"""

import math
import mmap
import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.arrays import Float64
from actionspan.errors import JobError
from actionspan.storage.text import NO_ROOM

_SMALL = 1 << 22  # bytes


def scratch(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array of zeros.

    Raises:
        JobError: The disk has no room for it.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= _SMALL or not hasattr(os, "posix_fallocate"):
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a page without room would end the process
            return _mapped(file, size, mmap.ACCESS_WRITE, dtype).reshape(shape)
    except OSError as error:
        raise _no_room(error) from None


class ScratchRows:
    """A table (N, C) of float64 that grows by blocks of rows."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._file: BinaryIO = BytesIO()
        self._size = 0

    def __len__(self) -> int:
        return self._size // (8 * self._columns)

    def append(self, rows: Float64) -> None:
        """Append (M, C) rows.

        Raises:
            JobError: The disk has no room for them.
        """
        data = np.ascontiguousarray(rows, np.float64).tobytes()
        try:
            if isinstance(self._file, BytesIO) and self._size + len(data) > _SMALL:
                small, self._file = self._file, tempfile.TemporaryFile()  # noqa: SIM115
                self._file.write(small.getbuffer())
            self._file.write(data)
        except OSError as error:
            raise _no_room(error) from None
        self._size += len(data)

    def array(self) -> Float64:
        """Return all rows, read-only; no more can be appended."""
        if isinstance(self._file, BytesIO):
            found = np.frombuffer(self._file.getvalue(), np.float64)
        else:
            try:
                self._file.flush()
            except OSError as error:
                raise _no_room(error) from None
            found = _mapped(self._file, self._size, mmap.ACCESS_READ, np.float64)
        self._file.close()
        return found.reshape(-1, self._columns)


def _mapped(file: Any, size: int, access: int, dtype: Any) -> NDArray[Any]:
    """Return the bytes of a file as an array, which outlives the open file."""
    return np.frombuffer(mmap.mmap(file.fileno(), size, access=access), dtype)


def _no_room(error: OSError) -> Exception:
    """Return the error that names the place without room; others unchanged."""
    if error.errno not in NO_ROOM:
        return error
    folder = tempfile.gettempdir()
    return JobError(f"{folder}: {NO_ROOM[error.errno]}; make room, or set TMPDIR to another folder")


class VideoTables(Mapping[str, Float64]):
    """The rows (N, C) of each video, in the order of the videos; the last of a repeated id counts.

    They are read-only views of a table, `rows`, which lies in scratch space where it is large.
    """

    def __init__(self, videos: Iterable[tuple[str, ArrayLike]], columns: int) -> None:
        self._places: dict[str, int] = {}
        rows, ends = ScratchRows(columns), array("q", [0])
        for place, (video, given) in enumerate(videos):
            self._places[video] = place
            rows.append(np.asarray(given, np.float64).reshape(-1, columns))
            ends.append(len(rows))
        self._ends, self.rows = ends, rows.array()

    def __getitem__(self, video: str) -> Float64:
        place = self._places[video]
        return self.rows[self._ends[place] : self._ends[place + 1]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, video: object) -> bool:
        return video in self._places
