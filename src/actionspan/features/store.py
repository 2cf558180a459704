"""Read features.h5 by memory map: opening it costs the same for any number of videos."""

import json
import sys
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.features.steps import merge_windows
from actionspan.features.transform import Transform
from actionspan.storage.checksums import CheckedFile, map_checked
from actionspan.storage.writing import open_h5
from actionspan.video.marks import Marks, marks_of
from actionspan.video.settings import CUTS

UNSHARED = -1
"""The footage of a step that no other video shows."""
_CHECKED = "content"  # an attribute
_FOREIGN = "not made by actionspan features rescale"


@dataclass(frozen=True, kw_only=True)
class Features:
    """The features of all videos, sorted by id.

    `array` is (N, steps, C) and stays on disk: rows are read when they are used. A row is a video,
    or a window of it: then the rows of a video follow each other. `first_step` (N,) is the step of
    its video at which a row starts and `length` (N,) the number of steps of the video.
    `frame_difference` and `flow_magnitude` are (N, steps), or None for external features. `footage`
    (N, steps) has equal numbers where training videos share footage, `UNSHARED` elsewhere, and is
    None in features.h5. `inside` is true of sequences.h5 and causal.h5, `causal` of the latter.
    `checked` names the content of a file if its writer saw that all features are finite: it changes
    with them and with the file's size and time. It is empty for other files. `all_marks` has the
    first row of a video before each of its cuts (K, 3) and bouts (B, 4), and is None in features.h5
    and causal.h5.
    """

    array: Float32
    video_id: list[str]
    duration_seconds: Float64
    subset: list[str]
    first_step: Int64
    length: Int64
    inside: bool
    causal: bool
    checked: str
    footage: NDArray[np.int32] | None
    frame_difference: Float32 | None
    flow_magnitude: Float32 | None
    all_marks: Marks | None

    def rows(self, subset: str) -> Int64:
        """Return the row numbers of one subset's videos."""
        return np.flatnonzero(np.asarray(self.subset) == subset)

    def videos(self) -> list[slice]:
        """Return the rows of each video."""
        counts = [len(list(rows)) for _, rows in groupby(self.video_id)]
        return [slice(*ends) for ends in pairwise(accumulate(counts, initial=0))]

    def sequence(self, rows: slice) -> Float32:
        """Return the steps (T, C) of a video, given its rows; windows are merged."""
        return merge_windows(self.array[rows], self.first_step[rows], int(self.length[rows.start]))

    def marks(self, rows: slice) -> Marks | None:
        """Return the marks of a video, given its rows; None where the file lacks them."""
        if self.all_marks is None:
            return None
        ends = [np.searchsorted(each[:, 0], [rows.start, rows.stop]) for each in self.all_marks]
        own = zip(self.all_marks, ends, strict=True)
        return Marks(*(each[first:last, 1:] for each, (first, last) in own))

    def shown(self, rows: slice) -> Int64:
        """Return the footage (T,) of a video's steps, given its rows."""
        length = int(self.length[rows.start])
        if self.footage is None:
            return np.full(length, UNSHARED, np.int64)
        found = self.footage[rows].astype(np.int64)
        return merge_windows(found, self.first_step[rows], length)


def open_features(path: Path) -> Features:
    """Open features.h5.

    Raises:
        InputError: The file is incomplete, not a features file, or its features are chunked.
    """
    with open_h5(path) as file:
        for key in ("features", "video_id", "duration_seconds", "subset"):
            if key not in file:
                raise InputError(f"{path}: no dataset {key}: {_FOREIGN}")
        rows, steps = file["features"].shape[:2]
        windows = "first_step" in file
        return Features(
            array=_map(path, file, "features", "<f4"),
            first_step=file["first_step"][:] if windows else np.zeros(rows, np.int64),
            length=file["length"][:] if windows else np.full(rows, steps, np.int64),
            inside="transform/cues" in file,
            causal="transform/past" in file,
            checked=_checked(path, file),
            footage=_map(path, file, "footage", "<i4"),
            video_id=[str(name) for name in file["video_id"].asstr()[:]],
            duration_seconds=file["duration_seconds"][:].astype(np.float64),
            subset=[sys.intern(str(name)) for name in file["subset"].asstr()[:]],
            frame_difference=_map(path, file, "frame_difference", "<f4"),
            flow_magnitude=_map(path, file, "flow_magnitude", "<f4"),
            all_marks=marks_of(file) if CUTS in file else None,
        )


def _map(path: Path, file: h5py.File, key: str, kind: str) -> Any:
    """Map a dataset; None where the file has none."""
    if key not in file:
        return None
    offset, wanted = file[key].id.get_offset(), np.dtype(kind)
    if file[key].dtype != wanted or offset is None:
        raise InputError(f"{path}: {key} are not a contiguous {wanted.name} dataset: {_FOREIGN}")
    return map_checked(path, wanted, offset, file[key].shape)


def write_checked(file: h5py.File, content: str) -> None:
    """Note the hash of the features that were written, all of which are finite."""
    file.attrs[_CHECKED] = content


def _checked(path: Path, file: h5py.File) -> str:
    if _CHECKED not in file.attrs:
        return ""
    with closing(CheckedFile(path)) as written:
        # one without checksums was changed since, and the note describes its earlier content
        return str(file.attrs[_CHECKED]) if written.has_checksums else ""


def read_transform(path: Path) -> Transform:
    """Read the transform that made features.h5.

    Raises:
        InputError: The file holds none.
    """
    with open_h5(path) as file:
        if "transform" not in file:
            raise InputError(f"{path}: no group transform: {_FOREIGN}")
        items: dict[str, Any] = {}
        file["transform"].visititems(items.__setitem__)
        datasets = {name: item for name, item in items.items() if isinstance(item, h5py.Dataset)}
        return Transform.from_arrays({name: np.asarray(d[()]) for name, d in datasets.items()})


def read_settings(path: Path) -> dict[str, Any]:
    """Return by section the settings that made the features, none of those made elsewhere."""
    with open_h5(path) as file:
        settings: dict[str, Any] = json.loads(file.attrs.get("settings", "{}"))
        return settings


def read_description(path: Path) -> tuple[str, str]:
    """Return a description of the features, and the name of their data set.

    Raises:
        InputError: The file lacks it.
    """
    with open_h5(path) as file:
        for key in ("description", "data"):
            if key not in file.attrs:
                reason = f"no attribute {key}: run actionspan features rescale again"
                raise InputError(f"{path}: {reason}")
        return str(file.attrs["description"]), str(file.attrs["data"])
