"""probabilities.h5: the output of a temporal network, written and read by video.

`probabilities` is (V, T, 3) where all videos have T steps. Where they differ it is (ΣT, 3), and
`offsets` (V + 1) are where each video's steps begin.

A cross-fitted network adds `parts` (ΣT): each step's part of the training footage, with
probabilities by the member that did not learn it; −1 in other videos.

`cuts` (ΣK, 2) are where each video is cut and `bouts` (ΣB, 3) when something moves, where that is
known; `cut_offsets` and `bout_offsets` (V + 1) are where each video's begin.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.storage.scratch import scratch
from actionspan.storage.writing import create_h5, open_h5
from actionspan.temporal.labels import KINDS, NO_PART
from actionspan.video.marks import Marks

NAMES = ("probabilities", "video_id", "duration_seconds", "subset")
_BLOCK = 64  # videos read at once


class Prediction(NamedTuple):
    """The output of a network for one video."""

    probabilities: Float32  # (T, 3)
    parts: Int64 | None = None  # (T,) of a training video and a cross-fitted network
    marks: Marks | None = None


@dataclass(frozen=True, kw_only=True)
class Probabilities:
    """An open file. `steps` (V,) is the length of each video.

    `parts` is (ΣT), `marks` are all of each kind and their offsets; None in a file without.
    """

    digest: str
    video_id: list[str]
    duration_seconds: Float64
    subset: list[str]
    steps: Int64
    dataset: Any
    parts: Int64 | None = None
    marks: Sequence[tuple[Float64, Int64]] | None = None

    def video_marks(self, index: int) -> Marks | None:
        """Return the marks of a video; None where they are not known."""
        if self.marks is None:
            return None
        ends = [slice(*offsets[index : index + 2].tolist()) for _, offsets in self.marks]
        return Marks(*(every[own] for (every, _), own in zip(self.marks, ends, strict=True)))

    def video_parts(self, index: int) -> Int64 | None:
        """Return the parts (T,) of a video's steps; None where it was not learned by members."""
        if self.parts is None:
            return None
        after = int(self.steps[: index + 1].sum())
        own: Int64 = self.parts[after - int(self.steps[index]) : after]
        return own if own.min() >= 0 else None

    def video(self, index: int) -> Float32:
        """Return (T, 3) start, actionness and end of one video."""
        return next(self._read(index, index + 1))

    def __iter__(self) -> Iterator[Float32]:
        """Yield one video after another, reading many at once."""
        for first in range(0, len(self.video_id), _BLOCK):
            yield from self._read(first, min(first + _BLOCK, len(self.video_id)))

    def _read(self, first: int, after: int) -> Iterator[Float32]:
        if self.dataset.ndim == 3:
            yield from self.dataset[first:after]
        else:
            offsets = np.concatenate([[0], np.cumsum(self.steps)])[first : after + 1]
            block = self.dataset[offsets[0] : offsets[-1]]
            yield from np.split(block, offsets[1:-1] - offsets[0])


def write_probabilities(
    path: Path,
    settings_digest: str,
    video_id: Sequence[str],
    duration_seconds: Sequence[float],
    subset: Sequence[str],
    steps: Sequence[int],
    values: Iterable[Prediction],
) -> None:
    """Write probabilities.h5: V ids, durations, subsets and lengths, and what each video has.

    `values` are taken one video at a time.
    """
    uniform = len(set(steps)) <= 1
    offsets = np.concatenate([[0], np.cumsum(np.asarray(steps, np.int64))])
    shape = (len(steps), *steps[:1]) if uniform else (int(offsets[-1]),)
    with create_h5(path, settings_digest) as file:
        rows = file.create_dataset("probabilities", (*shape, KINDS), np.float32)
        parts = None
        marks: list[Marks] = []  # of each video
        for index, video in enumerate(values):
            rows[index if uniform else slice(*offsets[index : index + 2])] = video.probabilities
            if video.parts is not None:
                parts = scratch((int(offsets[-1]),), np.int64) if parts is None else parts
                parts[offsets[index] : offsets[index + 1]] = video.parts - NO_PART
            if video.marks is not None:
                marks.append(video.marks)
        if parts is not None:
            parts += NO_PART  # scratch space begins with 0
            file["parts"] = parts
        for key, own in zip(Marks._fields, zip(*marks, strict=True), strict=False):
            file[key] = np.concatenate(own)
            file[f"{key[:-1]}_offsets"] = np.cumsum([0, *map(len, own)])
        if not uniform:
            file["offsets"] = offsets
        text = h5py.string_dtype("utf-8")
        file.create_dataset("video_id", data=list(video_id), dtype=text)
        file.create_dataset("duration_seconds", data=np.asarray(duration_seconds, float))
        file.create_dataset("subset", data=list(subset), dtype=text)


def read_probabilities(file: h5py.File, path: Path) -> Probabilities:
    """Return what an open file holds.

    Raises:
        InputError: It holds no probabilities, or in a different form.
    """
    for name in NAMES:
        if name not in file:
            raise InputError(f"{path}: no {name}; `temporal predict` writes it")
    # find each video's steps
    dataset = file["probabilities"]
    videos, shape = len(file["video_id"]), dataset.shape
    if dataset.ndim == 3 and shape[1] >= 1 and (shape[0], shape[2]) == (videos, KINDS):
        steps = np.full(videos, shape[1], np.int64)
    elif dataset.ndim == 2 and shape[1] == KINDS and "offsets" in file:
        steps = np.diff(file["offsets"][:]).astype(np.int64)
    else:
        wanted = "(videos, bins, 3), nor (bins, 3) with offsets"
        raise InputError(f"{path}: probabilities: shape {shape} is not {wanted}")
    if len(steps) != videos or steps.sum() * KINDS != dataset.size or (steps < 1).any():
        raise InputError(f"{path}: offsets do not fit {videos} videos; make the file again")
    parts = file["parts"][:].astype(np.int64) if "parts" in file else None
    if parts is not None and parts.shape != (steps.sum(),):
        raise InputError(f"{path}: parts do not fit {steps.sum()} bins; make the file again")
    marks = [
        (file[key][:].astype(np.float64), file[f"{key[:-1]}_offsets"][:].astype(np.int64))
        for key in Marks._fields
        if key in file
    ]
    for each, offsets in marks:
        if len(offsets) != videos + 1 or offsets[-1] != len(each):
            line = f"offsets of cuts or bouts do not fit {videos} videos; make the file again"
            raise InputError(f"{path}: {line}")
    return Probabilities(
        digest=str(file.attrs.get("digest", "")),
        video_id=list(file["video_id"].asstr()[:]),
        duration_seconds=file["duration_seconds"][:].astype(np.float64),
        subset=list(map(sys.intern, file["subset"].asstr()[:])),
        steps=steps,
        dataset=dataset,
        parts=parts,
        marks=marks or None,
    )


def video_probabilities(path: Path, video_id: str) -> Float32 | None:
    """Return (T, 3) of one video, None where the file has no such video; or raise InputError."""
    with open_h5(path) as file:
        table = read_probabilities(file, path)
        return table.video(table.video_id.index(video_id)) if video_id in table.video_id else None
