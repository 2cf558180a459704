"""Checksums of a file's blocks, written behind its last byte and compared where it is read.

A reader of a few rows of a large file checks the blocks of these rows and no others, each once. The
bytes behind the file's own end are

- a CRC-32 for each block of 64 KiB, 4 bytes each;
- the end: a mark of 8 bytes, the file's own size, the CRC-32 of the above and of the end.

HDF5 passes over them, and cuts them off where it changes a file: a file without them is read
unchecked.

The `fingerprint` of a whole file, its size and SHA-256 in a line, is recorded elsewhere.
"""

import hashlib
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan.errors import JobError

_BLOCK = 1 << 16
_MARK = b"\x00blocks1"
_END = struct.Struct("<8sQI")  # the mark, the file's own size and the CRC-32 of the checksums
_CRC = struct.Struct("<I")  # of the end
_HDF5 = b"\x89HDF\r\n\x1a\n\x00"  # with the version of the superblock that h5py writes
_HDF5_SIZE = 40  # where the superblock has the length of the file


def append_checksums(path: Path) -> None:
    """Write the checksums of a file behind its last byte."""
    with path.open("r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        blocks = range(0, size, _BLOCK)
        sums = [zlib.crc32(os.pread(file.fileno(), _BLOCK, begin)) for begin in blocks]
        table = np.array(sums, "<u4").tobytes()
        end = _END.pack(_MARK, size, zlib.crc32(table))
        rest = memoryview(table + end + _CRC.pack(zlib.crc32(end)))
        file.seek(size)
        while rest:  # a full disk may take some of it
            rest = rest[file.write(rest) :]


class CheckedFile:
    """A file open for reading by any thread, the same even if another takes its name.

    Attributes:
        path: Of the file.
        size: Its bytes, without checksums.
        descriptor: Of the open file.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            OSError: It is missing or cannot be read.
            JobError: Its checksums are damaged.
        """
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.size = os.fstat(self.descriptor).st_size
        self._sums: NDArray[np.uint32] | None = None
        self._read_checksums()
        self._right = bytearray(0 if self._sums is None else len(self._sums))  # blocks found right

    @property
    def has_checksums(self) -> bool:
        """Whether the file has checksums: a file that was changed since has none."""
        return self._sums is not None

    def read(self, begin: int, size: int) -> bytearray:
        """Return the bytes from `begin` on, fewer where the file ends.

        Raises:
            JobError: The file is damaged there.
        """
        data = bytearray(max(0, min(size, self.size - begin)))
        self.read_into(data, begin)
        return data

    def read_into(self, buffer: Any, begin: int) -> None:
        """Fill a buffer with the bytes from `begin` on, and with 0 behind the file's end.

        Raises:
            JobError: The file is damaged there.
        """
        view = memoryview(buffer).cast("B")
        inside = max(0, min(len(view), self.size - begin))
        self.check(begin, begin + inside)
        done = 0
        while done < inside:
            count = os.preadv(self.descriptor, [view[done:inside]], begin + done)
            if count == 0:
                raise self._damaged("it is shorter than it was")
            done += count
        view[inside:] = bytes(len(view) - inside)

    def check(self, begin: int, end: int) -> None:
        """Compare the blocks from `begin` up to `end` with their checksums, each once.

        Raises:
            JobError: One differs.
        """
        if self._sums is None or end <= begin:
            return
        for block in range(begin // _BLOCK, min(-(-end // _BLOCK), len(self._sums))):
            if not self._right[block]:
                first = block * _BLOCK
                data = os.pread(self.descriptor, min(_BLOCK, self.size - first), first)
                if zlib.crc32(data) != self._sums[block]:
                    raise self._damaged("its checksums differ")
                self._right[block] = 1

    def check_each(self, begins: NDArray[np.int64], size: int) -> None:
        """Compare the blocks of pieces of `size` bytes with their checksums, each once.

        Raises:
            JobError: One differs.
        """
        if self._sums is None or not len(begins) or not size:
            return
        first, last = begins // _BLOCK, (begins + size - 1) // _BLOCK
        right = np.frombuffer(self._right, np.uint8)
        for step in range(int((last - first).max()) + 1):
            blocks = np.minimum(first + step, last)
            for block in np.unique(blocks[right[blocks] == 0]).tolist():
                self.check(block * _BLOCK, block * _BLOCK + 1)

    def close(self) -> None:
        """Close the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            self.close()

    def _read_checksums(self) -> None:
        whole, length = self.size, _END.size + _CRC.size
        tail = os.pread(self.descriptor, length, max(0, whole - length))
        end, crc = tail[: _END.size], tail[_END.size :]
        if len(tail) == length and end[:8] == _MARK and crc == _CRC.pack(zlib.crc32(end)):
            _, size, wanted = _END.unpack(end)
            table = os.pread(self.descriptor, max(0, whole - length - size), size)
            if len(table) != 4 * -(-size // _BLOCK) or zlib.crc32(table) != wanted:
                raise self._damaged("its checksums are not whole")
            self.size, self._sums = size, np.frombuffer(table, "<u4")
            return
        head = os.pread(self.descriptor, _HDF5_SIZE + 8, 0)
        if head.startswith(_HDF5) and int.from_bytes(head[_HDF5_SIZE:], "little") < whole:
            raise self._damaged("its checksums are not whole")  # something follows its own end

    def _damaged(self, reason: str) -> JobError:
        return JobError(f"{self.path}: damaged: {reason}; delete it and run again")


class CheckedMap(np.memmap[Any, Any]):
    """A memory map of `file` that checks rows, given by the first index, as they are read."""

    file: CheckedFile

    def __getitem__(self, index: Any) -> Any:
        """Return rows, or parts of them, as an array.

        Raises:
            JobError: The file is damaged there.
        """
        if hasattr(self, "file"):  # else a view on its way to the caller
            self._check(index[0] if isinstance(index, tuple) else index)
        found = super().__getitem__(index)
        return found.view(np.ndarray) if isinstance(found, CheckedMap) else found

    def _check(self, index: Any) -> None:
        if isinstance(index, slice):
            rows = np.arange(*index.indices(len(self)))
        elif isinstance(index, int | np.integer | np.ndarray):
            found = np.atleast_1d(index)
            rows = found.nonzero()[0] if found.dtype == np.bool_ else found.astype(np.int64).ravel()
            rows = np.where(rows < 0, rows + len(self), rows)
        else:
            rows = np.atleast_1d(np.arange(len(self))[index])
        inside = rows[(rows >= 0) & (rows < len(self))]  # numpy raises for the others
        each = self.itemsize * math.prod(self.shape[1:])
        self.file.check_each(self.offset + inside * each, each)


def map_checked(path: Path, dtype: Any, offset: int, shape: tuple[int, ...]) -> CheckedMap:
    """Map an array of a file into memory, read-only."""
    file = CheckedFile(path)
    # by the same descriptor: another file may have taken the name
    with os.fdopen(os.dup(file.descriptor), "rb") as same:
        array = CheckedMap(same, dtype, "r", offset, shape)
    array.file = file
    return array


_CHUNK = 1 << 20  # bytes


class Growing:
    """The fingerprint of a file's first `size` bytes (None: all) and of those added later.

    Raises:
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path | None = None, size: int | None = None) -> None:
        self.size = 0
        self._sum: Any = hashlib.sha256()
        if path is not None:
            with path.open("rb") as file:
                while block := file.read(_CHUNK if size is None else min(_CHUNK, size - self.size)):
                    self.add(block)

    def add(self, data: bytes) -> None:
        """Append bytes."""
        self._sum.update(data)
        self.size += len(data)

    def __str__(self) -> str:
        return f"{self.size} {self._sum.hexdigest()}"


def fingerprint(path: Path) -> str | None:
    """Return the size and the SHA-256 of a file in a line; None if it is missing."""
    try:
        return str(Growing(path))
    except FileNotFoundError:
        return None
