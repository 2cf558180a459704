"""Labels against a count of fine points; parts of the videos."""

import csv
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.features.store import UNSHARED
from actionspan.temporal.labels import boundary_labels, boundary_overlaps, divide, divide_steps
from tiers import examples

FINE = 200  # points a bin in the brute-force count


def brute_force(segments, duration, steps, rule, ratio):
    """g by counting points: for each bin, region and instance apart, then the maximum."""
    points = (np.arange(steps * FINE) + 0.5) / (steps * FINE) * duration
    best = np.zeros((steps, 3))
    bin_seconds = duration / steps
    for start, end in segments:
        start, end = np.clip([start, end], 0, duration)
        if rule == "bsn":
            half, inset = max(bin_seconds, ratio * (end - start)) / 2, 0.0
        else:
            half = inset = bin_seconds / 2
        regions = [(side - half, side + half) for side in (start, end)]
        regions.insert(1, (start + inset, end - inset))
        for kind, (low, high) in enumerate(regions):
            inside = (points >= low) & (points <= high)
            best[:, kind] = np.maximum(best[:, kind], inside.reshape(steps, FINE).mean(axis=1))
    return best


@st.composite
def videos(draw):
    duration = draw(st.floats(0.5, 5000))
    fractions = draw(st.lists(st.tuples(st.floats(-0.1, 1.1), st.floats(-0.1, 1.1)), max_size=6))
    return np.sort(np.array(fractions).reshape(-1, 2), axis=1) * duration, duration


@given(
    video=videos(),
    steps=st.sampled_from([7, 100]),
    rule=st.sampled_from(["bsn", "mtn"]),
    ratio=st.floats(0, 0.5),
)
@examples(150)
def test_overlap_is_the_brute_force_count(video, steps, rule, ratio):
    segments, duration = video
    options = {"steps": steps, "rule": rule, "boundary_ratio": ratio}
    overlaps = boundary_overlaps(segments, duration, **options)
    counted = brute_force(segments, duration, steps, rule, ratio)
    np.testing.assert_allclose(overlaps, counted, atol=2 / FINE)
    np.testing.assert_array_equal(
        boundary_labels(segments, duration, **options), (overlaps > 0.5 + 1e-9).astype(np.float32)
    )


@pytest.mark.parametrize("duration", [1.0, 7.0, 100.0])
def test_exactly_half_a_bin_is_no_positive(duration):
    """TRAP: g > 0.5 is strict, also where decimals are rounded."""
    segments = np.array([[(i + 0.5) * duration / 100, 0.9 * duration] for i in range(80)])
    for row, segment in enumerate(segments):
        assert np.flatnonzero(boundary_labels(segment[None], duration)[:, 1])[0] == row + 1


@pytest.mark.parametrize(
    ("segments", "duration", "options", "named"),
    [
        ([[3.0, 1.0]], 10.0, {}, r"segment \[3.0, 1.0\]"),
        ([[0.0, float("nan")]], 10.0, {}, "nan"),
        ([[0.0, 1.0]], 0.0, {}, "duration_seconds 0.0"),
        ([[0.0, 1.0]], 10.0, {"rule": "tem"}, "'tem': one of bsn, mtn"),
    ],
)
def test_a_wrong_argument_is_named(segments, duration, options, named):
    with pytest.raises(ValueError, match=named):
        boundary_labels(np.array(segments), duration, **options)


@pytest.mark.full
def test_positives_on_the_real_training_videos(shared_data):
    folder = shared_data / "activitynet"
    known = json.loads((folder / "anet_anno_action.json").read_text())
    with (folder / "video_info_new.csv").open() as file:
        training = [row["video"] for row in csv.DictReader(file) if row["subset"] == "training"]
    labels = []
    for one in map(known.get, training):
        segments = np.array([each["segment"] for each in one["annotations"]])
        labels.append(boundary_labels(segments, one["duration_second"]))
    stacked = np.stack(labels)
    assert stacked.shape == (9649, 100, 3)
    start, action, end = stacked.mean(axis=(0, 1))
    assert round(100 * start, 1) == 5.7
    assert round(100 * action) == 65
    assert round(100 * end, 1) == pytest.approx(5.7, abs=0.3)


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
