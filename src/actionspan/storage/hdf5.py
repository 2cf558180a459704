"""HDF5 files read and written through Python, where a full disk or a damaged block is an exception.

HDF5 crashes when the disk fills up while it writes a file itself: it tries again at exit to close a
file that it cannot. Here every byte is reported to it as written, and the first error is raised
when the file is closed. Each block is checked before it is read.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from actionspan.errors import InputError, JobError, printable
from actionspan.storage.checksums import CheckedFile

if TYPE_CHECKING:
    import h5py  # a tenth of a second, which those that only write JSON do not wait for


class _Bytes(ABC):
    """What HDF5 needs of a file: a position, and bytes from there."""

    def __init__(self, path: Path) -> None:
        self.path, self.position = path, 0

    def __repr__(self) -> str:
        return ascii(str(self.path))[1:-1]  # h5py makes it the name of the file

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes the file has."""

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        before = {os.SEEK_SET: 0, os.SEEK_CUR: self.position}
        self.position = offset + (self.size() if whence == os.SEEK_END else before[whence])
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, size: int) -> bytearray:
        data = bytearray(size)
        self.readinto(data)
        return data

    @abstractmethod
    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the position; return how many bytes."""

    def flush(self) -> bool:
        """Return True: there is nothing to flush."""
        return True


class _OldFile(_Bytes):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = CheckedFile(path)

    def size(self) -> int:
        return self._file.size

    def readinto(self, buffer: Any) -> int:
        self._file.read_into(buffer, self.position)
        return len(buffer)

    def close(self) -> None:
        self._file.close()


class _NewFile(_Bytes):
    """A file that accepts all bytes; `error` is the first error of the system."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.error: OSError | None = None
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._descriptor, [buffer], self.position)
        view = memoryview(buffer)
        view[count:] = bytes(len(view) - count)  # the part not written
        return len(view)

    def write(self, data: Any) -> int:
        view, done = memoryview(data), 0
        while self.error is None and done < len(view):
            try:
                done += os.pwrite(self._descriptor, view[done:], self.position + done)
            except OSError as error:
                self.error = self._named(error)
        return len(view)

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            self.error = self.error or self._named(error)

    def close(self) -> None:
        os.close(self._descriptor)

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, str(self.path))


@contextmanager
def new_h5(path: Path) -> "Iterator[h5py.File]":
    """Write an HDF5 file.

    Raises:
        OSError: The disk had no room for it, or another error of the system.
    """
    import h5py

    target = _NewFile(path)
    try:
        with h5py.File(target, "w") as file:
            yield file
    except Exception:
        if target.error is None:
            raise
    finally:
        target.close()
    if target.error is not None:
        raise target.error


@contextmanager
def open_h5(
    path: Path, cure: str = "; if a run made it, delete it and run again"
) -> "Iterator[h5py.File]":
    """Open an HDF5 file for reading; blocks that have checksums are compared with them.

    `cure` is the end of a message about a damaged file; it is empty for a file of the user.

    Raises:
        JobError: The file is missing or damaged, here or where it is read, or lacks a group, a
            dataset or an attribute that the block asks of it.
        InputError: The same, without a cure.
    """
    import h5py

    problem = JobError if cure else InputError
    source = None
    try:
        source = _OldFile(path)
        file = h5py.File(source, "r")
    except FileNotFoundError:
        raise problem(f"{path}: no such file") from None
    except InputError:
        raise
    except Exception:
        if source is not None:
            source.close()
        raise problem(f"{path}: not a complete HDF5 file{cure}") from None
    try:
        with file:
            try:
                yield file
            except (InputError, MemoryError):
                raise
            except Exception as error:  # damaged files make h5py raise nearly anything
                if not _is_of(error.__traceback__, file):
                    raise
                reason = printable(str(error.args[0] if error.args else error))
                line = f"damaged, or not the kind of file that is wanted: {reason}"
                raise problem(f"{path}: {line}{cure}") from None
    finally:
        source.close()


def _is_of(trace: TracebackType | None, file: "h5py.File") -> bool:
    """Return whether h5py raised an error on this file."""
    import h5py

    last, name = "", b""
    while trace is not None:
        last = trace.tb_frame.f_globals.get("__name__", "")
        asked = getattr(trace.tb_frame.f_locals.get("self"), "_id", None)
        if last.startswith("h5py.") and asked is not None:
            with suppress(Exception):  # an object of a file that is closed
                name = h5py.h5f.get_name(asked)
        trace = trace.tb_next
    return last.startswith("h5py.") and name in (b"", h5py.h5f.get_name(file.id))
