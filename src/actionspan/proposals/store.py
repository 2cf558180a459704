"""`candidates.h5`: the candidates of all videos in flat arrays, written and read by blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from actionspan.errors import InputError
from actionspan.progress import progress
from actionspan.proposals.bsp import FEATURES
from actionspan.proposals.candidates import Candidates, count_candidates, video_candidates
from actionspan.proposals.settings import CandidateSettings
from actionspan.storage import create_h5, digest, open_h5

BLOCK = 64  # videos held in memory at once


@dataclass(frozen=True, kw_only=True)
class CandidateTable:
    """All candidates of a file; the arrays are memory maps, so that opening costs nothing.

    Video v's candidates are rows `offsets[v]` to `offsets[v + 1]`, best first.
    """

    digest: str
    video_id: list[str]
    duration_seconds: NDArray[np.float64]
    subset: list[str]
    offsets: NDArray[np.int64]
    segments: NDArray[np.float32]
    scores: NDArray[np.float32]
    features: NDArray[np.float32]

    def video(self, index: int) -> Candidates:
        """Return the candidates of one video."""
        first, after = self.offsets[index : index + 2].tolist()
        return Candidates(
            segments=_read_rows(self.segments, first, after),
            scores=_read_rows(self.scores, first, after),
            features=_read_rows(self.features, first, after),
        )


def write_candidates(probabilities_path: Path, out: Path, settings: CandidateSettings) -> None:
    """Make `candidates.h5` of `probabilities.h5`.

    Args:
        probabilities_path: (V, T, 3) probabilities with `video_id`, `duration_seconds`, `subset`.
        out: The file to write.
        settings: How to make candidates.

    Raises:
        InputError: The probabilities are missing, or a video's are not numbers in 0…1.
    """
    with open_h5(probabilities_path) as source:
        names = ("probabilities", "video_id", "duration_seconds", "subset")
        for name in names:
            if name not in source:
                raise InputError(f"{probabilities_path}: no {name}; `temporal predict` writes it")
        probabilities = source["probabilities"]
        if probabilities.ndim != 3 or probabilities.shape[1] < 1 or probabilities.shape[2] != 3:
            raise InputError(
                f"{probabilities_path}: probabilities: shape {probabilities.shape} is not "
                "(videos, bins, 3)"
            )
        video_ids = source["video_id"].asstr()[:]
        counts = [np.zeros(0, np.int64)]
        for first in range(0, len(video_ids), BLOCK):
            block = probabilities[first : first + BLOCK]
            _check(block, video_ids[first:], probabilities_path)
            counts.append(count_candidates(block, settings))
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
        with create_h5(out, digest(settings, source.attrs.get("digest", ""))) as file:
            for name in names[1:]:
                source.copy(name, file)
            file["offsets"] = offsets
            total = int(offsets[-1])
            file.create_dataset("segments", (total, 2), np.float32)
            file.create_dataset("scores", (total, 2), np.float32)
            file.create_dataset("features", (total, FEATURES), np.float32)
            videos = _blocks(probabilities)
            for index, values in enumerate(progress(videos, "candidates", len(video_ids))):
                found = video_candidates(values, settings)
                rows = slice(offsets[index], offsets[index + 1])
                assert len(found.segments) == rows.stop - rows.start
                file["segments"][rows] = found.segments
                file["scores"][rows] = found.scores
                file["features"][rows] = found.features


def _blocks(probabilities: h5py.Dataset) -> Iterator[NDArray[np.float32]]:
    """Yield one video's probabilities after another, reading many at once."""
    for first in range(0, len(probabilities), BLOCK):
        yield from probabilities[first : first + BLOCK]


def _check(block: NDArray[np.float32], video_ids: Any, path: Path) -> None:
    """Raise InputError for the first video whose probabilities are not in 0…1."""
    good = ((block >= 0) & (block <= 1)).all(axis=(1, 2))  # NaN compares false
    if not good.all():
        raise InputError(
            f"{path}: {video_ids[int(good.argmin())]}: probabilities are not all in 0…1; "
            "make the file again"
        )


def open_candidates(path: Path) -> CandidateTable:
    """Open `candidates.h5`.

    Raises:
        InputError: The file is missing or holds no candidates.
    """
    with open_h5(path) as file:
        try:
            return CandidateTable(
                digest=str(file.attrs.get("digest", "")),
                video_id=list(file["video_id"].asstr()[:]),
                duration_seconds=file["duration_seconds"][:],
                subset=list(file["subset"].asstr()[:]),
                offsets=file["offsets"][:],
                segments=_memory_map(path, file["segments"]),
                scores=_memory_map(path, file["scores"]),
                features=_memory_map(path, file["features"]),
            )
        except KeyError as error:
            raise InputError(
                f"{path}: no candidates in it ({error}); `proposals candidates` makes them"
            ) from None


def _read_rows(array: NDArray[np.float32], first: int, after: int) -> NDArray[np.float32]:
    """Return rows of a memory map by reading the file.

    A pass over a map would keep the whole file in this process's memory.
    """
    if not isinstance(array, np.memmap):
        return array[first:after].copy()
    assert array.filename is not None
    width, size = array.shape[1], array.itemsize
    start = array.offset + first * width * size
    values = np.fromfile(array.filename, np.float32, (after - first) * width, offset=start)
    return values.reshape(-1, width)


def _memory_map(path: Path, dataset: h5py.Dataset) -> NDArray[np.float32]:
    """Map a contiguous dataset into memory, read-only."""
    if not dataset.size:
        return np.zeros(dataset.shape, dataset.dtype)
    offset = dataset.id.get_offset()
    assert offset is not None, f"{dataset.name} is not contiguous"
    return np.memmap(path, np.float32, "r", offset, dataset.shape)
