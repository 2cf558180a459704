"""What is known of each step, by hand; and parts of the training videos that anyone finds alike."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.features.store import UNSHARED
from actionspan.temporal.labels import (
    COLUMNS,
    INSIDE,
    NO_PART,
    PART,
    divide,
    divide_steps,
    video_targets,
)


def test_columns_of_a_video_by_hand():
    labels = np.arange(24, dtype=np.float32).reshape(8, 3)
    targets = video_targets(labels, 2)
    assert targets.shape == (8, COLUMNS)
    assert targets.dtype == np.float32
    np.testing.assert_array_equal(targets[:, :3], labels)
    np.testing.assert_array_equal(targets[:, [INSIDE, PART]], [[1, 2]] * 8)
    assert (video_targets(labels, NO_PART)[:, PART] == -1).all()


@given(st.sets(st.text(min_size=1), min_size=1, max_size=40), st.integers(2, 6), st.randoms())
def test_parts_are_even_and_the_order_of_videos_is_nothing_to_them(names, parts, random):
    shuffled = sorted(names)
    random.shuffle(shuffled)
    divided = divide(shuffled, parts)
    assert divided == divide([*names, *shuffled], parts)
    assert set(divided) == names
    sizes = Counter(divided.values())
    assert set(sizes) <= set(range(parts))
    sizes = [sizes[part] for part in range(parts)]
    assert max(sizes) - min(sizes) <= 1


def test_parts_stay_what_they_are():
    """Another division would change what every trained model left out."""
    found = divide((f"video_{number:03d}" for number in range(7)), 3)
    assert list(found.values()) == [0, 1, 2, 0, 1, 2, 0]
    assert "".join(name[-1] for name in found) == "3152406"


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"),
        st.lists(st.sampled_from([UNSHARED, 0, 1, 2, 7]), min_size=1, max_size=20).map(np.array),
        min_size=2,
    ),
    st.integers(2, 5),
)
def test_shared_footage_is_of_one_part_and_other_steps_of_their_videos(footage, parts):
    own, divided = divide(footage, parts), divide_steps(footage, parts)
    steps = sum(map(len, footage.values()))
    for shown in (0, 1, 2, 7):
        places = {name: each == shown for name, each in footage.items() if (each == shown).any()}
        found = {int(part) for name, where in places.items() for part in divided[name][where]}
        small = sum(where.sum() for where in places.values()) < steps / parts
        theirs = {own[name] for name in places}
        assert found <= theirs
        assert len(found) <= 1 if small else found == theirs
    for name, each in footage.items():
        assert divided[name].shape == each.shape
        assert set(divided[name][each == UNSHARED]) <= {own[name]}
    again = divide_steps(dict(reversed(footage.items())), parts)
    assert all(np.array_equal(again[name], divided[name]) for name in footage)


@pytest.mark.parametrize(("steps", "stretches"), [(24, 3), (100, 3), (20, 2), (15, 1), (1, 1)])
def test_a_single_video_is_divided_into_stretches_long_enough(steps, stretches):
    """Else the member that leaves it out would have learned nothing, and be one of three."""
    (parts,) = divide_steps({"a": np.full(steps, UNSHARED)}, 3).values()
    assert (np.diff(parts) >= 0).all()
    assert sorted(set(parts)) == list(range(stretches))
    assert min(np.bincount(parts)) >= min(steps, 8) - 1


def test_footage_goes_where_the_fewest_steps_are():
    names = [f"video_{number:03d}" for number in range(4)]
    own = divide(names, 4)
    lengths = dict(zip(names, (40, 10, 20, 30), strict=True))
    footage = {name: np.full(lengths[name], UNSHARED) for name in names}
    for name in names[2:]:
        footage[name][:5] = 3
    divided = divide_steps(footage, 4)
    for name in names[2:]:
        assert set(divided[name][:5]) == {own["video_002"]}, "15 steps are left there, and 25"
