"""Signals of videos that are kept as windows: one sequence a video again."""

import h5py
import numpy as np
import pytest

from actionspan.dataset.tables import Annotation
from actionspan.evaluation.baseline import actionness, frame_differences
from actionspan.temporal.probabilities import Prediction, write_probabilities


def video(name):
    return Annotation(video_id=name, subset="validation", duration_seconds=9.0)


@pytest.fixture
def windowed(tmp_path):
    """`a` has 6 steps in two windows of 4, `b` has 3 steps and a window that reaches beyond."""
    text = h5py.string_dtype()
    path = tmp_path / "features.h5"
    with h5py.File(path, "w") as file:
        file["features"] = np.zeros((3, 4, 2), np.float32)
        file["frame_difference"] = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 8, 7, 0]], np.float32)
        file["video_id"] = np.array(["a", "a", "b"], dtype=text)
        file["subset"] = np.array(["validation"] * 3, dtype=text)
        file["duration_seconds"] = [9.0] * 3
        file["first_step"] = [0, 2, 0]
        file["length"] = [6, 6, 3]
    return path


def test_frame_differences_of_windows_are_merged(windowed):
    b, a = frame_differences(windowed, [video("b"), video("a")])
    assert a.tolist() == [1, 2, 4, 5, 7, 8]  # the mean of 3 and 5, of 4 and 6
    assert b.tolist() == [9, 8, 7]


def test_actionness_of_videos_of_any_length(tmp_path, capsys):
    path = tmp_path / "probabilities.h5"
    values = [np.full((2, 3), [0.1, 0.2, 0.3], np.float32), np.full((1, 3), 0.5, np.float32)]
    made = map(Prediction, values)
    write_probabilities(path, "x", ["a", "b"], [9.0, 9.0], ["validation"] * 2, [2, 1], made)
    b, missing, a = actionness(path, [video("b"), video("c"), video("a")])
    np.testing.assert_allclose(a, [0.2, 0.2], rtol=1e-6)
    assert b.tolist() == [0.5]
    assert not missing.any()
    assert "probabilities.h5: without features: c" in capsys.readouterr().err
