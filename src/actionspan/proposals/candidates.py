"""Boundary probabilities to candidates (PGM of BSN)."""

import argparse
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import h5py
import numpy as np

from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.jobs.progress import progress
from actionspan.proposals.pgm import FEATURES, Candidates, candidates_of, count_candidates
from actionspan.proposals.settings import CandidateSettings
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.checksums import CheckedMap, map_checked
from actionspan.storage.writing import create_h5, digest, open_h5
from actionspan.temporal.probabilities import NAMES, read_probabilities


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--probabilities", type=Path, required=True, help="probabilities.h5")
    parser.add_argument("--out", type=Path, required=True, help="candidates.h5 to write")
    add_settings(parser, CandidateSettings)


def run(arguments: argparse.Namespace) -> None:
    """Make candidates.h5 from probabilities.h5."""
    settings = from_arguments(CandidateSettings, arguments)
    write_candidates(arguments.probabilities, arguments.out, settings)


_TOGETHER = 32  # videos in one write, as each has its own cost
_WIDTHS = {"segments": 2, "scores": 2, "features": FEATURES}


@dataclass(frozen=True, kw_only=True)
class CandidateTable:
    """All candidates of a file; the arrays are memory maps, so that opening costs nothing.

    Video v's candidates are rows `offsets[v]` to `offsets[v + 1]`, best first.
    """

    digest: str
    video_id: list[str]
    duration_seconds: Float64
    subset: list[str]
    offsets: Int64
    segments: Float32
    scores: Float32
    features: Float32

    def video(self, index: int) -> Candidates:
        """Return the candidates of one video."""
        segments, scores = self.boundaries(index)
        return Candidates(segments=segments, scores=scores, features=self._read("features", index))

    def boundaries(self, index: int) -> tuple[Float32, Float32]:
        """Return the segments (M, 2) and the scores (M, 2) of one video."""
        return self._read("segments", index), self._read("scores", index)

    def _read(self, name: str, index: int) -> Float32:
        """Read rows of a memory map from the file: a pass over a map would keep it in memory."""
        first, after = self.offsets[index : index + 2].tolist()
        array: Float32 = getattr(self, name)
        if not isinstance(array, CheckedMap):
            return array[first:after].copy()
        row_bytes = array.shape[1] * array.itemsize
        data = array.file.read(array.offset + first * row_bytes, (after - first) * row_bytes)
        return np.frombuffer(data, np.float32).reshape(-1, array.shape[1])


def write_candidates(probabilities_path: Path, out: Path, settings: CandidateSettings) -> None:
    """Make `candidates.h5` from `probabilities.h5`, which `temporal predict` wrote.

    Raises:
        InputError: The probabilities are missing, or a video's are not numbers in 0…1.
    """
    with open_h5(probabilities_path) as source:
        # count each video's candidates
        probabilities = read_probabilities(source, probabilities_path)
        video_ids = probabilities.video_id
        counts = np.zeros(len(video_ids), np.int64)
        for index, values in enumerate(probabilities):
            if not ((values >= 0) & (values <= 1)).all():  # nor NaN
                line = f"{video_ids[index]}: probabilities are not all in 0…1; make the file again"
                raise InputError(f"{probabilities_path}: {line}")
            counts[index] = count_candidates(values, settings)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        # write them into arrays of that size
        with create_h5(out, digest(settings, probabilities.digest)) as file:
            for name in NAMES[1:]:
                source.copy(name, file)
            file["offsets"] = offsets
            for name, width in _WIDTHS.items():
                file.create_dataset(name, (int(offsets[-1]), width), np.float32)
            videos = progress(probabilities, "candidates", len(video_ids))
            made = (candidates_of(values, settings) for values in videos)
            for first in range(0, len(video_ids), _TOGETHER):
                part = list(islice(made, _TOGETHER))
                rows = slice(offsets[first], offsets[first + len(part)])
                for name in _WIDTHS:
                    values = np.concatenate([getattr(each, name) for each in part])
                    assert len(values) == rows.stop - rows.start
                    file[name][rows] = values


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
                subset=list(map(sys.intern, file["subset"].asstr()[:])),
                offsets=file["offsets"][:],
                **{name: _memory_map(path, file[name]) for name in _WIDTHS},
            )
        except KeyError as error:
            line = f"no candidates in it ({error}); `proposals candidates` makes them"
            raise InputError(f"{path}: {line}") from None


def _memory_map(path: Path, dataset: h5py.Dataset) -> Float32:
    if not dataset.size:
        return np.zeros(dataset.shape, dataset.dtype)
    offset = dataset.id.get_offset()
    assert offset is not None, f"{dataset.name} is not contiguous"
    return map_checked(path, np.float32, offset, dataset.shape)
