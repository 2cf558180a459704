"""Soft-NMS: closed forms, one video after the other, invariants, what it refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.arrays import overlap
from actionspan.proposals import soft_nms
from actionspan.proposals.settings import SuppressionSettings
from actionspan.proposals.suppression import TOGETHER, soft_nms_of_many, suppress_rows

EDGES = st.integers(0, 20).map(lambda tick: tick / 20)
ROW = st.tuples(EDGES, EDGES, st.sampled_from([0.0, 0.2, 0.5, 0.8]) | st.floats(0, 1)).map(
    lambda row: (*sorted(row[:2]), row[2])
)
ROWS = st.lists(ROW.filter(lambda row: row[0] < row[1]), min_size=1, max_size=12)
SETTINGS = st.builds(
    SuppressionSettings,
    low_threshold=st.sampled_from([0.0, 0.3, 0.65]),
    slope=st.sampled_from([0.0, 0.25]),
    epsilon=st.sampled_from([0.05, 0.75]),
    keep=st.integers(1, 15),
)


def run(rows, *arguments, **keywords):
    table = np.array(rows, float).reshape(-1, 3)
    kept, scores = soft_nms(table[:, :2], table[:, 2], *arguments, **keywords)
    return [
        (*table[row, :2].tolist(), score) for row, score in zip(kept, scores.tolist(), strict=True)
    ]


def test_decays_by_the_gaussian_of_tiou_above_a_threshold_that_rises_with_the_width():
    rows = [(0.0, 0.1, 0.9), (0.0, 0.09, 0.8), (0.5, 0.6, 0.3)]
    decayed = pytest.approx(0.8 * math.exp(-(0.9**2) / 0.75))
    assert run(rows) == [rows[0], rows[2], (0.0, 0.09, decayed)]
    equal = SuppressionSettings(low_threshold=0.5, slope=0.0)
    assert run([(0.0, 1.0, 0.9), (0.0, 0.5, 0.8)], equal)[1][2] == 0.8, "equal is not above"


def test_the_width_is_a_share_of_the_duration_or_of_the_full_width():
    wide = [(0.0, 60.0, 0.9), (0.0, 48.0, 0.8)]
    assert run(wide, duration=60.0)[1][2] == 0.8
    assert run(wide, duration=600.0)[1][2] < 0.8
    thumos = SuppressionSettings(
        low_threshold=0.5, slope=0.3, epsilon=0.5, keep=1500, full_width_seconds=10.0
    )
    # tIoU 0.6 is below the threshold 0.5 + 0.3 · 4 / 10 = 0.62, but above 0.5 + 0.3 · 4 / 60
    near = [(0.0, 4.0, 0.9), (0.0, 2.4, 0.8)]
    assert run(near, thumos, duration=60.0) == near
    assert run(near, replace(thumos, full_width_seconds=None), duration=60.0)[1][2] < 0.8


def one_by_one(segments, scores, settings, duration):
    """Soft-NMS of one video as it is written down, in the same arithmetic."""
    order = np.lexsort((segments[:, 1], segments[:, 0], -scores))
    start, end, left = segments[order, 0], segments[order, 1], scores[order].copy()
    bars = settings.low_threshold + settings.slope * ((end - start) / duration)
    kept, found = [], []
    for _ in range(min(settings.keep, len(order))):
        best = int(left.argmax())
        kept.append(int(order[best]))
        found.append(float(left[best]))
        left[best] = -1.0
        iou = overlap(start, end, start[best], end[best])
        near = ((iou > bars[best]) & (left >= 0)).nonzero()[0]
        left[near] *= np.exp(-(iou[near] ** 2) / settings.epsilon)
    return kept, found


@given(ROWS, SETTINGS, st.randoms())
def test_the_order_of_rows_is_nothing_and_a_longer_list_begins_with_the_shorter(
    rows, settings, random
):
    found = run(rows, settings)
    assert found == run(random.sample(rows, len(rows)), settings)
    assert found == run(rows, replace(settings, keep=100))[: settings.keep]


@given(st.lists(st.just([]) | ROWS, max_size=2 * TOGETHER + 1), SETTINGS)
def test_videos_beside_each_other_change_nothing(videos, settings):
    tables = [np.array(rows, float).reshape(-1, 3) for rows in videos]
    many = soft_nms_of_many([(table[:, :2], table[:, 2], 2.0) for table in tables], settings)
    for table, (kept, scores) in zip(tables, many, strict=True):
        alone, its_scores = one_by_one(table[:, :2], table[:, 2], settings, 2.0)
        assert kept.tolist() == alone
        assert scores.tolist() == its_scores


@given(
    st.randoms(use_true_random=False),
    st.sampled_from([0.1, 1.0, 2.0]),
    st.sampled_from([0.1, 1.0]),
    st.sampled_from([1, 2, 7, 45]),
    SETTINGS,
)
def test_long_lists_are_taken_as_short_ones(random, width, spread, keep, setting):
    """45 are more steps than arrays stay as they are."""
    tables = []
    for count in (0, 3, 30, 80):
        start = np.array([random.uniform(0, 2 - width) for _ in range(count)]).round(1)
        scores = np.array([1 - spread * random.random() for _ in range(count)]).round(2)
        tables.append((np.stack([start, start + width], axis=1), scores))
    settings = replace(setting, keep=keep)
    many = soft_nms_of_many([(*table, 2.0) for table in tables], settings)
    for table, (kept, scores) in zip(tables, many, strict=True):
        assert (kept.tolist(), scores.tolist()) == one_by_one(*table, settings, 2.0)


@pytest.mark.parametrize("keep", [2, 40])
def test_what_was_given_up_as_too_low_is_taken_after_all(keep):
    crowd = [(0.0, 1.0, 0.9 - 1e-5 * place) for place in range(12 * keep)]
    far = [(1 + place / 50, 1 + (place + 1) / 50, 0.5) for place in range(keep - 1)]
    found = run(crowd + far, SuppressionSettings(keep=keep), duration=2.0)
    assert found == [crowd[0], *far]


@pytest.mark.parametrize(
    ("segments", "scores", "duration", "message"),
    [
        ([[0, 1], [2, 1]], [0.5, 0.5], 1.0, r"row 1: segment \[2.0, 1.0\]"),
        ([[0, math.nan]], [0.5], 1.0, "row 0: segment"),
        ([[-math.inf, 0]], [0.5], 1.0, "row 0: segment"),
        ([[0, 1]], [math.nan], 1.0, "row 0: score nan"),
        ([[0, 1]], [math.inf], 1.0, "row 0: score inf"),
        ([[0, 1]], [-0.1], 1.0, "row 0: score -0.1"),
        ([[0, 1], [1, 2]], [0.5], 1.0, "scores: shape"),
        ([[0, 1, 2], [1, 2, 3]], [0.5] * 3, 1.0, "segments: shape"),
        ([[0, 1]], [0.5], 0.0, "duration"),
    ],
)
def test_what_is_no_list_of_segments_with_scores_is_refused(segments, scores, duration, message):
    with pytest.raises(ValueError, match=message):
        soft_nms(segments, scores, duration=duration)


def test_many_rounds_of_decay_end_at_zero_and_not_below():
    rows = [(0.0, 1.0, 1.0)] * 300
    setting = SuppressionSettings(slope=0.0, epsilon=1e-3, keep=300)
    scores = [row[2] for row in run(rows, setting)]
    assert scores[0] == 1
    assert min(scores) == 0
    kept, _ = soft_nms(np.array(rows)[:, :2], np.ones(300), setting)
    assert sorted(kept.tolist()) == list(range(300))
    assert run([]) == []


def test_segments_without_length_overlap_nothing():
    """The public sample of detections has some."""
    rows = [(1.0, 1.0, 0.9), (1.0, 1.0, 0.8), (0.0, 2.0, 0.7)]
    setting = SuppressionSettings(low_threshold=0.0)
    assert run(rows, setting, duration=2.0) == rows
    assert suppress_rows([{"score": 1.0, "segment": [0, 0]}], None, setting)[0]["score"] == 1.0
