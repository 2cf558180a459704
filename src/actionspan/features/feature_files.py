"""One video's features from a file people already have: .npy, .csv, .pkl or .h5."""

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
    """Return the file of a video; ActivityNet's `v_` may stand before either name or not.

    Raises:
        InputError: There is none, or more than one.
    """
    found = [
        path
        for stem in (video_id, *other_names(video_id))
        for suffix in SUFFIXES
        if (path := folder / f"{stem}{suffix}").is_file()
    ]
    if not found:
        raise InputError(f"{folder}: no file of features named {video_id} ({' '.join(SUFFIXES)})")
    if len(found) > 1:
        raise InputError(f"{found[0]}: {found[1].name} beside it is of the same video; keep one")
    return found[0]


def read_features(path: Path, layout: str) -> Float32:
    """Read one file as (T, C) features.

    A .csv may begin with a line of column names (BSN, MMAction2). A .pkl or .h5 holds one matrix,
    alone or as the only entry of a dictionary, list or group. Axes of length 1 beyond two are
    dropped; a vector is one row.

    Args:
        path: The file.
        layout: `"time_first"` for (T, C), `"feature_first"` for (C, T).

    Raises:
        InputError: The file is empty, damaged, not one matrix, or holds a value not finite.
    """
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    if path.suffix == ".npy":
        values = _read_npy(path)
    elif path.suffix == ".csv":
        values = _read_csv(path)
    elif path.suffix in (".pkl", ".pickle"):
        values = _only_matrix(path, load_arrays(path))
    else:
        values = _read_h5(path)
    if values.dtype.kind not in "fiu":
        raise InputError(f"{path}: not numbers but {values.dtype}")
    axes = tuple(axis for axis, length in enumerate(values.shape) if length == 1)
    surplus = max(values.ndim - 2, 0)
    matrix = np.atleast_2d(values.squeeze(axes[len(axes) - surplus :]) if surplus else values)
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"{path}: shape {values.shape}: want (T, C) with at least one row")
    if layout == "feature_first":
        matrix = matrix.T
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
    lines = read_utf8(path).split("\n")
    rows: list[Float64] = []
    for number, line in enumerate(lines, start=1):
        cells = line.strip().split(",")
        if cells == [""] or (number == 1 and _is_header(cells)):
            continue
        try:
            rows.append(np.array(cells, dtype=np.float64))
        except ValueError as error:
            raise InputError(f"{path}: line {number}: {error}") from None
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                f"{path}: line {number}: {len(cells)} columns, the first row has {len(rows[0])}"
            )
    if not rows:
        raise InputError(f"{path}: no row of features")
    return np.stack(rows)


def _is_header(cells: Sequence[str]) -> bool:
    """Tell names (`f0,f1,…`) and pandas' numbers (`0,1,2,…`) from a row of features."""
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
            found: list[h5py.Dataset] = []
            file.visititems(lambda _, item: found.append(item) if _is_dataset(item) else None)
            if len(found) != 1:
                raise InputError(f"{path}: holds {len(found)} data sets; want one, (T, C)")
            return np.asarray(found[0][()])
    except OSError:
        raise InputError(f"{path}: not a complete HDF5 file") from None


def _is_dataset(item: Any) -> bool:
    return isinstance(item, h5py.Dataset)


def _only_matrix(path: Path, content: Any) -> NDArray[Any]:
    """Take the one array out of a dictionary, or join a list of rows."""
    while isinstance(content, dict):
        if len(content) != 1:
            raise InputError(f"{path}: a dictionary of {len(content)} entries; want one matrix")
        (content,) = content.values()
    try:
        return np.asarray(content)
    except ValueError:
        raise InputError(f"{path}: rows of different lengths") from None
