"""Candidates that a network finds itself: which are kept, and the way to proposals.json."""

import h5py
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.proposals.candidates import open_candidates, write_candidates
from actionspan.proposals.pgm import bsp_features, candidates_of, count_of, generate_candidates
from actionspan.proposals.settings import CandidateSettings
from actionspan.temporal.probabilities import Prediction, write_probabilities

SEGMENTS = np.array([[0.1, 0.5], [0.2, 0.21], [0.0, 1.0], [0.3, 0.304], [0.6, 0.9]], np.float32)
SCORES = np.array([0.2, 0.9, 0.5, 0.8, 0.5], np.float32)


def prediction(segments=SEGMENTS, scores=SCORES):
    random = np.random.default_rng(0)
    return Prediction(random.random((100, 3), np.float32), segments, scores)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (CandidateSettings(), [1, 2, 4, 0]),  # the fourth is shorter than a step
        (CandidateSettings(candidates=2), [1, 2]),
        (CandidateSettings(shortest=2, longest=40), [4, 0]),
    ],
)
def test_the_best_of_the_allowed_segments_are_kept(settings, kept):
    made = prediction()
    found = candidates_of(made, settings)
    np.testing.assert_array_equal(found.segments, SEGMENTS[kept])
    np.testing.assert_array_equal(found.scores, np.stack([SCORES[kept]] * 2, axis=1))
    expected = bsp_features(made.probabilities[:, 1], SEGMENTS[kept])
    np.testing.assert_array_equal(found.features, expected)
    assert count_of(made, settings) == len(kept)


def test_without_segments_candidates_are_pgms():
    made = Prediction(prediction().probabilities)
    settings = CandidateSettings(candidates=50)
    segments, scores = generate_candidates(made.probabilities, settings)
    found = candidates_of(made, settings)
    np.testing.assert_array_equal(found.segments, segments.astype(np.float32))
    np.testing.assert_array_equal(found.scores, scores.astype(np.float32))
    assert count_of(made, settings) == len(segments)


def write(path, made):
    names = [f"video {index}" for index in range(len(made))]
    count = len(names)
    write_probabilities(path, "x", names, [9.0] * count, ["training"] * count, [100] * count, made)


def test_the_file_has_the_candidates_of_each_video(tmp_path):
    nothing = prediction(SEGMENTS[:0], SCORES[:0])
    write(
        tmp_path / "probabilities.h5", [prediction(), nothing, prediction(SEGMENTS[:3], SCORES[:3])]
    )
    words = ["--probabilities", tmp_path / "probabilities.h5", "--out", tmp_path / "candidates.h5"]
    assert main(["proposals", "candidates", *map(str, words)]) == 0
    table = open_candidates(tmp_path / "candidates.h5")
    assert table.offsets.tolist() == [0, 4, 4, 7]
    expected = candidates_of(prediction(), CandidateSettings())
    for name in ("segments", "scores", "features"):
        np.testing.assert_array_equal(getattr(table.video(0), name), getattr(expected, name))


@pytest.mark.parametrize(("name", "value"), [("segments", 1.5), ("segment_scores", np.nan)])
def test_segments_outside_the_video_are_one_line(tmp_path, name, value):
    path = tmp_path / "probabilities.h5"
    write(path, [prediction()])
    with h5py.File(path, "r+") as file:
        file[name][2:3] = value
    with pytest.raises(InputError, match=f"video 0: {name} are not all in"):
        write_candidates(path, tmp_path / "candidates.h5", CandidateSettings())
