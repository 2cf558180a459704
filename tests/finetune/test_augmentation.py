"""What is drawn for a video, and that boxes are the same at every size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.finetune.snippets import NONE, Augmentation, draw

sizes = st.integers(8, 700)
numbers = st.integers(0, 10**6)


@given(numbers, numbers, numbers, sizes, sizes)
def test_a_drawn_box_is_within_the_picture_and_large(seed, epoch, place, height, width):
    drawn = draw(seed, epoch, place)
    assert 0.8 <= drawn.height <= 1
    assert 0.8 <= drawn.width <= 1
    for side, size in zip(drawn.box(height, width), (height, width), strict=True):
        assert 0 <= side.start < side.stop <= size
        assert side.stop - side.start >= 0.8 * size - 1


@given(sizes, sizes)
def test_the_box_of_the_whole_picture_is_all_of_it(height, width):
    assert NONE.box(height, width) == (slice(0, height), slice(0, width))
    assert not NONE.flip


@given(numbers, sizes, sizes)
def test_a_box_is_the_same_place_at_half_the_size(seed, height, width):
    drawn = draw(seed, 1, 0)
    small, large = drawn.box(height, width), drawn.box(2 * height, 2 * width)
    for one, other in zip(small, large, strict=True):
        assert abs(2 * one.start - other.start) <= 1
        assert abs(2 * one.stop - other.stop) <= 1


def test_a_draw_follows_from_its_three_numbers_alone():
    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(*each) for each in [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)]}) == 4


def test_draws_are_spread_evenly():
    drawn = [draw(7, epoch, place) for epoch in range(20) for place in range(100)]
    for key in ("height", "width"):
        sides = np.array([getattr(each, key) for each in drawn])
        counts, _ = np.histogram(sides, 10, (0.8, 1.0))
        assert abs(counts - 200).max() < 60, "4 standard deviations"
    assert abs(sum(each.flip for each in drawn) - 1000) < 90, "4 standard deviations"
    slack = np.array([each.left / (1 - each.width) for each in drawn])
    assert abs(slack.mean() - 0.5) < 0.03
    heights, widths = (np.array([getattr(x, k) for x in drawn]) for k in ("height", "width"))
    assert abs(np.corrcoef(heights, widths)[0, 1]) < 0.1, "sides are drawn apart"


@pytest.mark.parametrize("length", [0.001, 0.2])
def test_the_smallest_box_has_a_pixel(length):
    box = Augmentation(top=1 - length, left=0.0, height=length, width=length).box(9, 9)
    assert all(side.stop - side.start >= 1 and side.stop <= 9 for side in box)


@pytest.mark.parametrize(
    "wrong",
    [{"top": -0.1}, {"left": 1.0}, {"height": 0.0}, {"width": 1.2}, {"top": 0.5, "height": 0.6}],
)
def test_a_box_outside_the_picture_is_refused(wrong):
    with pytest.raises(ValueError, match="a box within 0 … 1 of each side"):
        Augmentation(**wrong)
