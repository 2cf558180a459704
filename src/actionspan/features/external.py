"""Features people already have, as a feature shard."""

import argparse
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from actionspan.annotations.names import other_names
from actionspan.annotations.tables import Video, read_videos
from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError, naming, printable
from actionspan.features.settings import ExternalSettings
from actionspan.jobs.apart import error_line
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import ShardWork, add_shard_flags, shard_work
from actionspan.settings import from_arguments
from actionspan.storage.hdf5 import open_h5
from actionspan.storage.text import read_utf8
from actionspan.storage.writing import digest

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_LONGEST = 200  # characters of a reason
_MOST_COMPRESSED = 1000  # times; HDF5's filters reach this on values that are all the same
_MOST_UNPACKED = 1 << 32  # bytes
_PICKLES = (".pkl", ".pickle")  # which are refused
_SUFFIXES = (".npy", ".csv", ".h5", ".hdf5", *_PICKLES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    inputs = {"folder": "a .npy, .csv or .h5 for each video", "videos": "dataset/videos.tsv"}
    add_shard_flags(parser, ExternalSettings, inputs=inputs, out="features/shards/external.h5")


def run(arguments: argparse.Namespace) -> None:
    """Read a folder of features."""
    settings, how = from_arguments(ExternalSettings, arguments), shard_work(arguments)
    import_features(arguments.folder, arguments.videos, arguments.out, settings, how)


def row_times(rows: int, video: Video, settings: ExternalSettings) -> Float64:
    """Return the centre of each row of a file in seconds.

    With a stride, row k is at frame offset + k · stride; without it, at the middle of the k-th of
    `rows` equal parts of the video.

    Raises:
        InputError: Rows are more than a stride beyond the end of the video, or a stride is given
            and the video's frame rate is not known.
    """
    if not settings.stride:
        return (np.arange(rows, dtype=np.float64) + 0.5) * (video.duration_seconds / rows)
    if video.fps <= 0:
        raise InputError(
            "stride is in frames, and the annotations give this video no frame rate; give "
            "dataset.video_info, or stride 0"
        )
    from actionspan.dataset.timeline import seconds_of  # --help does not wait for PyAV

    times = seconds_of(settings.offset + settings.stride * np.arange(rows), video)
    if times[-1] > video.duration_seconds + settings.stride / video.fps:
        raise InputError(
            f"row {rows - 1} is at {times[-1]:.2f} s, the video ends at "
            f"{video.duration_seconds:.2f} s: stride or offset is wrong, or its unit is not frames"
        )
    return times


def import_features(
    folder: Path, videos: Path, out: Path, settings: ExternalSettings, how: ShardWork | None = None
) -> dict[str, str]:
    """Read the features of all videos of videos.tsv into a shard; return why videos are rejected.

    Videos with a missing or damaged file, or one of another width than the first, are rejected.

    Raises:
        InputError: The folder is missing or no video has features.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    listed = read_videos(videos)
    width = _first_width(folder, listed, settings)
    both = digest(settings, str(folder), width)
    return map_videos(
        out,
        [video.video_id for video in listed],
        listed,
        [digest(both, video, _stamp(folder, video)) for video in listed],
        partial(_work, folder, width, settings),
        title="reading",
        how=how,
        settings_digest=both,
        attributes={"description": f"features from the folder {folder.resolve().name}"},
    )


def _work(
    folder: Path, width: int, settings: ExternalSettings, video: Video, group: h5py.Group
) -> None:
    path = find_file(folder, video.video_id)
    features = read_features(path, settings.layout)
    if features.shape[1] != width:
        raise InputError(
            f"{path}: {features.shape[1]} features a row, other files have {width}"
            + ("; is it the other --layout?" if features.shape[0] == width else "")
        )
    with naming(path):
        group["time"] = row_times(len(features), video, settings)
    group["external"] = features
    group.attrs.update(fps=video.fps, frame_count=video.frames, sha256=video.sha256)
    group.attrs["duration_seconds"] = video.duration_seconds


def _first_width(folder: Path, videos: list[Video], settings: ExternalSettings) -> int:
    """Return the width of the first file that can be read."""
    reason = ""
    for video in videos:
        try:
            return len(read_features(find_file(folder, video.video_id), settings.layout)[0])
        except Exception as error:  # whatever is wrong with it, another may do
            reason = reason or str(error) or error_line(error)
    raise InputError(f"{folder}: no video has features; the first: {reason or 'no video listed'}")


def _stamp(folder: Path, video: Video) -> str:
    """Return what changes when a video's file does, or why there is none."""
    try:
        facts = find_file(folder, video.video_id).stat()
    except (InputError, OSError) as error:
        return str(error)
    return f"{facts.st_size} {facts.st_mtime_ns}"


def find_file(folder: Path, video_id: str) -> Path:
    """Return the file of a video; either name may have ActivityNet's `v_` or lack it.

    Raises:
        InputError: The file is missing, or there are several.
    """
    stems = (video_id, *other_names(video_id))
    names = [folder / f"{stem}{suffix}" for stem in stems for suffix in _SUFFIXES]
    paths = [path for path in names if _is_file(path)]
    if not paths:
        raise InputError(f"{folder}: no file of features named {video_id} ({' '.join(_SUFFIXES)})")
    if len(paths) > 1:
        raise InputError(f"{paths[0]}: {paths[1].name} is of the same video; keep one of them")
    return paths[0]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long, or a place that is not to be read
        return False


def read_features(path: Path, layout: str) -> Float32:
    """Read a file as (T, C) features; with layout `"feature_first"` it holds (C, T).

    A .csv may start with a line of column names (BSN, MMAction2). A .h5 holds one
    matrix. Axes of length 1 beyond two are dropped; a vector is a single row.

    Raises:
        InputError: The file is empty, damaged, a pickle, not a single matrix, or holds a value that
            is not finite.
    """
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    if path.suffix in _PICKLES:
        made = f"numpy.save('{path.stem}.npy', pickle.load(open('{path.name}', 'rb')))"
        cure = f'if you trust it: python -c "import numpy, pickle; {made}"'
        raise InputError(f"{path}: a pickle can run any code, so it is not read; {cure}")
    read = {".npy": _read_npy, ".csv": _read_csv}
    try:
        values = read.get(path.suffix, _read_h5)(path)
    except MemoryError:
        raise InputError(f"{path}: more values than there is memory for") from None
    _check_numbers(path, values.dtype)
    # the matrix
    axes = tuple(axis for axis, length in enumerate(values.shape) if length == 1)
    surplus = max(values.ndim - 2, 0)
    matrix = np.atleast_2d(values.squeeze(axes[len(axes) - surplus :]) if surplus else values)
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"{path}: shape {values.shape}: want (T, C) with at least one row")
    if layout == "feature_first":
        matrix = matrix.T
    # its values
    with np.errstate(over="ignore"):
        features = np.ascontiguousarray(matrix, np.float32)
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        reason = "too large for float32" if np.isfinite(matrix[row, column]) else "not finite"
        raise InputError(f"{path}: row {row}, feature {column}: {matrix[row, column]}: {reason}")
    return features


def _check_numbers(path: Path, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiu":
        raise InputError(f"{path}: not numbers but {printable(str(dtype)[:_LONGEST])}")


def _read_npy(path: Path) -> NDArray[Any]:
    """Read the header, then the bytes that it declares, if the file has them."""
    with path.open("rb") as file:
        try:
            header = _HEADERS[np.lib.format.read_magic(file)]
            shape, fortran, dtype = header(file, max_header_size=10_000)
        except Exception:  # numpy parses it as Python, which raises nearly anything
            raise InputError(f"{path}: not a .npy file of numbers") from None
        _check_numbers(path, dtype)
        claimed = math.prod(shape) * dtype.itemsize
        found = path.stat().st_size - file.tell()
        if claimed != found or min(shape, default=0) < 0:
            sizes = f"{found} bytes of values, its header states {claimed}"
            raise InputError(f"{path}: not a complete .npy file: {sizes}")
        values = np.fromfile(file, dtype)
    return values.reshape(shape, order="F" if fortran else "C")


def _read_csv(path: Path) -> NDArray[Any]:
    rows: list[Float64] = []
    for number, line in enumerate(read_utf8(path).split("\n"), start=1):
        cells = line.strip().split(",")
        if cells == [""] or (number == 1 and _is_header(cells)):
            continue
        try:
            rows.append(np.array(cells, dtype=np.float64))
        except ValueError as error:
            reason = printable(str(error)[:_LONGEST])
            raise InputError(f"{path}: line {number}: {reason}") from None
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
        list(map(float, cells))
    except ValueError:
        return True
    return False


def _read_h5(path: Path) -> NDArray[Any]:
    with open_h5(path, cure="") as file:
        items: dict[str, Any] = {}
        file.visititems(items.__setitem__)
        datasets = [item for item in items.values() if isinstance(item, h5py.Dataset)]
        if len(datasets) != 1:
            raise InputError(f"{path}: holds {len(datasets)} data sets; want one, (T, C)")
        (dataset,) = datasets
        if dataset.shape is None:
            raise InputError(f"{path}: its data set is empty; want (T, C) with at least one row")
        if dataset.external or dataset.is_virtual:
            raise InputError(f"{path}: its values are in other files; want them in this one")
        _check_numbers(path, dataset.dtype)
        claimed, stored = dataset.size * dataset.dtype.itemsize, dataset.id.get_storage_size()
        if claimed > max(stored, min(_MOST_COMPRESSED * stored, _MOST_UNPACKED)):
            sizes = f"{claimed} bytes of values in {stored}"
            raise InputError(f"{path}: not a complete HDF5 file: {sizes}")
        return np.asarray(dataset[()])
