"""Cuts and bouts of a video, and when bouts say something."""

import numpy as np
import pytest

from actionspan.video.marks import Marks, marks_of


@pytest.mark.parametrize(
    ("cuts", "seconds", "moving"), [(0, 60, 1), (2, 10, 1), (3, 10, 0), (4, 60, 1), (5, 60, 0)]
)
def test_bouts_of_edited_footage_do_not_count(cuts, seconds, moving):
    """It has more than two cuts, and more than one in 15 s."""
    marks = Marks(np.ones((cuts, 2)), np.array([[1.0, 4.0, 7.0]]))
    assert marks.is_edited(seconds) == (not moving)
    assert marks.moves(seconds).tolist() == [[1.0, 4.0]] * moving


def test_what_nobody_looked_for_is_not_there():
    marks = marks_of({"time": np.zeros(3), "cuts": np.array([[1, 0.5]])})
    assert [len(each) for each in marks] == [1, 0]
    assert [each.shape[1] for each in marks] == [2, 3]
