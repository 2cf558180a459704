"""Files that are either complete or absent: atomic writes of HDF5, JSON, TSV and others.

Each file is written next to its place and renamed when complete. HDF5 files carry the version of
the package and the digest of the settings that made them.
"""

import csv
import dataclasses
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from actionspan import __version__
from actionspan.errors import InputError, JobError
from actionspan.storage.checksums import append_checksums
from actionspan.storage.hdf5 import new_h5
from actionspan.storage.hdf5 import open_h5 as open_h5
from actionspan.storage.inputs import refuse_input
from actionspan.storage.process import partial_path, sweep
from actionspan.storage.text import NO_ROOM, read_cell, read_utf8, safe_cell

if TYPE_CHECKING:
    import h5py

_QUOTED = re.compile(r'[\t"\r\n]')


def digest(*parts: Any) -> str:
    """Return 16 hexadecimal digits that change with any value in `parts`.

    These are settings dataclasses, paths and anything JSON can hold.
    """

    def plain(value: Any) -> Any:
        is_settings = dataclasses.is_dataclass(value) and not isinstance(value, type)
        return dataclasses.asdict(value) if is_settings else str(value)

    text = json.dumps(parts, sort_keys=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a path to write to; rename it to `path` on success, remove it on failure.

    It is in the folder of `path` and has its suffix, by which some writers choose the format. The
    file is synced before it is renamed, so that a power failure leaves the old or the new file.

    Raises:
        JobError: The disk has no room for the file, or it is an input of the command or a folder.
    """
    refuse_input(path)
    if path.is_dir():
        raise JobError(f"{path}: is a folder; name a file")
    if path.parent.is_file():
        raise JobError(f"{path.parent}: is a file; name a folder")
    partial = partial_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path)
        try:
            yield partial
            _sync(partial, os.O_RDWR)
            partial.replace(path)
            if hasattr(os, "O_DIRECTORY"):  # Windows opens no folder
                _sync(path.parent, os.O_RDONLY)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        if error.errno not in NO_ROOM:
            if error.filename == str(partial):
                error.filename = str(path)  # nobody knows the other name
            raise
        # the system does not name the file that lacked room
        raise JobError(f"{path}: {NO_ROOM[error.errno]}; make room and run it again") from None


def _sync(path: Path, access: int) -> None:
    """Sync a file or a folder to the disk, where the file system can do that."""
    descriptor = os.open(path, access)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)


@contextmanager
def create_h5(path: Path, settings_digest: str) -> "Iterator[h5py.File]":
    """Open a new HDF5 file that appears at `path` only when the block ends without an error.

    Its bytes have checksums, which `open_h5` compares.
    """
    with atomic_path(path) as partial:
        with new_h5(partial) as file:
            file.attrs["actionspan_version"] = __version__
            file.attrs["digest"] = settings_digest
            yield file
        append_checksums(partial)


def append_rows(group: "h5py.Group", name: str, block: NDArray[np.generic]) -> None:
    """Append rows to a dataset: a chunk holds a row of images, or 1,024 numbers."""
    row = block.shape[1:]
    if name not in group:
        chunks = (1 if row else 1024, *row)
        group.create_dataset(name, (0, *row), block.dtype, maxshape=(None, *row), chunks=chunks)
    dataset = group[name]
    dataset.resize(len(dataset) + len(block), axis=0)
    dataset[-len(block) :] = block


def write_text(path: Path, text: str) -> None:
    """Write `text` in UTF-8, atomically."""
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Mapping[str, Any], indent: int | None = 1) -> None:
    """Write `content` as JSON, atomically."""
    write_text(path, json.dumps(content, indent=indent) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        InputError: The file is missing, is not UTF-8 or is not JSON.
    """
    text = read_utf8(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{path}: JSON nested too deep") from None


def write_tsv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table with a header line, tab-separated, atomically; no cell is a formula."""
    with atomic_path(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        for row in chain([columns], rows):
            file.write("\t".join(map(_tsv_cell, row)) or '""')
            file.write("\n")


def _tsv_cell(value: Any) -> str:
    """Return a cell, quoted where it must be: the csv module leaves a carriage return bare."""
    text = "" if value is None else str(safe_cell(value))
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Read a table that `write_tsv` wrote, a dictionary for each row.

    Raises:
        InputError: The file is missing or is not such a table.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, delimiter="\t")
            rows = [[read_cell(cell) for cell in line] for line in lines if line]
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: not a tab-separated table in UTF-8") from None
    header = rows[0] if rows else []
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            counts = f"{len(row)} cells, the header has {len(header)}"
            raise InputError(f"{path}: row {number}: {counts}")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]
