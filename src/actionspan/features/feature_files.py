"""A video's features from a file that people already have: .npy, .csv, .pkl or .h5."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64
from actionspan.dataset.names import other_names
from actionspan.errors import InputError
from actionspan.files.safe_pickle import load_arrays
from actionspan.files.text import read_utf8

SUFFIXES = (".npy", ".csv", ".pkl", ".pickle", ".h5", ".hdf5")


def find_file(folder: Path, video_id: str) -> Path:
    """Return the file of a video; either name may have ActivityNet's `v_` or lack it.

    Raises:
        InputError: There is no file, or more than one.
    """
    stems = (video_id, *other_names(video_id))
    names = [folder / f"{stem}{suffix}" for stem in stems for suffix in SUFFIXES]
    paths = [path for path in names if path.is_file()]
    if not paths:
        raise InputError(f"{folder}: no file of features named {video_id} ({' '.join(SUFFIXES)})")
    if len(paths) > 1:
        raise InputError(f"{paths[0]}: {paths[1].name} is of the same video; keep one of them")
    return paths[0]


def read_features(path: Path, layout: str) -> Float32:
    """Read a file as (T, C) features; with layout `"feature_first"` it holds (C, T).

    A .csv may start with a line of column names (BSN, MMAction2). A .pkl or .h5 holds a matrix,
    alone or as the only entry of a dictionary, list or group. Axes of length 1 beyond two are
    dropped; a vector is a single row.

    Raises:
        InputError: The file is empty, damaged, not a single matrix, or holds a value not finite.
    """
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    read = {".npy": _read_npy, ".csv": _read_csv, ".pkl": _read_pickle, ".pickle": _read_pickle}
    values = read.get(path.suffix, _read_h5)(path)
    if values.dtype.kind not in "fiu":
        raise InputError(f"{path}: not numbers but {values.dtype}")
    # the matrix
    axes = tuple(axis for axis, length in enumerate(values.shape) if length == 1)
    surplus = max(values.ndim - 2, 0)
    matrix = np.atleast_2d(values.squeeze(axes[len(axes) - surplus :]) if surplus else values)
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"{path}: shape {values.shape}: want (T, C) with at least one row")
    if layout == "feature_first":
        matrix = matrix.T
    # its values
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"{path}: row {row}, feature {column}: {matrix[row, column]}: not finite")
    return np.ascontiguousarray(matrix, np.float32)


def _read_npy(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a .npy file of numbers: {error}") from None


def _read_csv(path: Path) -> NDArray[Any]:
    rows: list[Float64] = []
    for number, line in enumerate(read_utf8(path).split("\n"), start=1):
        cells = line.strip().split(",")
        if cells == [""] or (number == 1 and _is_header(cells)):
            continue
        try:
            rows.append(np.array(cells, dtype=np.float64))
        except ValueError as error:
            raise InputError(f"{path}: line {number}: {error}") from None
        if len(cells) != len(rows[0]):
            counts = f"{len(cells)} columns, the first row has {len(rows[0])}"
            raise InputError(f"{path}: line {number}: {counts}")
    if not rows:
        raise InputError(f"{path}: no row of features")
    return np.stack(rows)


def _is_header(cells: Sequence[str]) -> bool:
    """Return whether cells are names (`f0,f1,…`) or pandas' numbers (`0,1,2,…`), not features."""
    if len(cells) > 1 and list(cells) == [str(column) for column in range(len(cells))]:
        return True
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return True
    return False


def _read_h5(path: Path) -> NDArray[Any]:
    try:
        with h5py.File(path, "r") as file:
            items: list[Any] = []
            file.visititems(lambda _, item: items.append(item))
            datasets = [item for item in items if isinstance(item, h5py.Dataset)]
            if len(datasets) != 1:
                raise InputError(f"{path}: holds {len(datasets)} data sets; want one, (T, C)")
            return np.asarray(datasets[0][()])
    except OSError:
        raise InputError(f"{path}: not a complete HDF5 file") from None


def _read_pickle(path: Path) -> NDArray[Any]:
    """Take the only array out of a dictionary, or join a list of rows."""
    content = load_arrays(path)
    while isinstance(content, dict):
        if len(content) != 1:
            raise InputError(f"{path}: a dictionary of {len(content)} entries; want one matrix")
        (content,) = content.values()
    try:
        return np.asarray(content)
    except ValueError:
        raise InputError(f"{path}: rows of different lengths") from None
