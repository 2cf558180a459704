"""Labels against a count of fine points, closed forms, and the real ActivityNet annotations."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.temporal.labels import boundary_labels, boundary_overlaps, boundary_regions
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
    assert overlaps.shape == (steps, 3)
    counted = brute_force(segments, duration, steps, rule, ratio)
    np.testing.assert_allclose(overlaps, counted, atol=2 / FINE)
    np.testing.assert_array_equal(
        boundary_labels(segments, duration, **options), (overlaps > 0.5 + 1e-9).astype(np.float32)
    )


@given(video=videos(), rule=st.sampled_from(["bsn", "mtn"]), ratio=st.floats(0, 0.5))
def test_the_order_of_instances_does_not_matter(video, rule, ratio):
    segments, duration = video
    options = {"rule": rule, "boundary_ratio": ratio}
    labels = boundary_labels(segments, duration, **options)
    np.testing.assert_array_equal(labels, boundary_labels(segments[::-1], duration, **options))


def positives(labels):
    return [np.flatnonzero(column).tolist() for column in labels.T]


def test_labels_of_one_instance_by_hand():
    # d = 50 bins: boundary regions 5 bins wide, [18, 23] and [68, 73] in bins; action [20.5, 70.5].
    labels = boundary_labels(np.array([[20.5, 70.5]]), 100.0)
    assert positives(labels) == [[*range(18, 23)], [*range(21, 70)], [*range(68, 73)]]
    # those of mtn are one bin wide whatever the instance
    start, _, end = positives(boundary_labels(np.array([[20.4, 70.4]]), 100.0, rule="mtn"))
    assert (start, end) == ([20], [70])
    # an instance outside the video is cut to it, and none gives no positive
    outside, whole = (np.array([each]) for each in ([-5.0, 200.0], [0.0, 100.0]))
    np.testing.assert_array_equal(boundary_labels(outside, 100.0), boundary_labels(whole, 100.0))
    assert not boundary_labels(np.empty((0, 2)), 100.0).any()


def test_the_boundary_width_is_the_whole_width_and_one_bin_at_least():
    # TRAP: the paper's ±d/10 would be twice as wide as the reference's 0.1·d in all.
    long = boundary_regions(np.array([[0.2, 0.7]]), 100, "bsn", 0.1)[0]
    np.testing.assert_allclose(long[:, 1] - long[:, 0], [0.05, 0.5, 0.05])
    short = boundary_regions(np.array([[0.2, 0.23]]), 100, "bsn", 0.1)[0]
    np.testing.assert_allclose(short[:, 1] - short[:, 0], [0.01, 0.03, 0.01])


def test_exactly_half_a_bin_is_no_positive():
    # TRAP: g > 0.5 is strict; bins of 1/4 make every number here exact.
    overlaps = boundary_overlaps(np.array([[1.0, 2.5]]), 4.0, steps=4)
    assert overlaps[:, 1].tolist() == [0, 1, 0.5, 0]
    assert boundary_labels(np.array([[1.0, 2.5]]), 4.0, steps=4)[:, 1].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("duration", [1.0, 7.0, 100.0])
def test_exactly_half_a_bin_is_no_positive_in_rounded_decimals_either(duration):
    segments = np.array([[(i + 0.5) * duration / 100, 0.9 * duration] for i in range(80)])
    for row, segment in enumerate(segments):
        assert np.flatnonzero(boundary_labels(segment[None], duration)[:, 1])[0] == row + 1


def test_two_instances_do_not_add_up_within_a_bin():
    # Each covers 0.4 of bin 1: the maximum over instances, not their sum.
    two = np.array([[1.0, 1.4], [1.6, 2.0]])
    np.testing.assert_allclose(boundary_overlaps(two, 4.0, steps=4)[1, 1], 0.4)
    assert not boundary_labels(two, 4.0, steps=4)[:, 1].any()


@given(st.floats(0, 1), st.floats(0, 1))
def test_mtn_actionness_is_one_minus_start_minus_end_inside_the_instance_only(one, two):
    # TRAP: 1 - g_s - g_e for every region, as paper 001 prints it, calls background an action.
    start, end = sorted((one, two))
    g = boundary_overlaps(np.array([[start, end]]), 1.0, rule="mtn")
    centres = (np.arange(100) + 0.5) / 100
    inside = (centres >= start) & (centres <= end)
    expected = np.where(inside, np.clip(1 - g[:, 0] - g[:, 2], 0, 1), 0)
    # In the first and last bin the region may reach out of the video, which the formula ignores.
    np.testing.assert_allclose(g[1:-1, 1], expected[1:-1], atol=1e-9)
    if end - start < 0.01:
        assert not g[:, 1].any()


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


def test_the_labels_need_no_torch():
    code = (
        "import sys; from actionspan.temporal import boundary_labels; "
        "import actionspan.temporal.train; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
