"""Instances and background of annotated videos: where they lie, how many, and what is held out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.dataset.tables import Annotation, Instance
from actionspan.errors import InputError
from actionspan.recognition.clip_lists import ClipSettings, held_out_names
from actionspan.recognition.segment_clips import (
    Segment,
    rows_of_segment,
    subsets_of_videos,
    typical_seconds,
    video_segments,
)

ALL = ClipSettings(background_ratio=float("inf"))


def annotated(*spans, duration=20.0, subset="training", name="v"):
    return Annotation(
        video_id=name,
        subset=subset,
        duration_seconds=duration,
        instances=tuple(Instance(start=a, end=b, label=label) for a, b, label in spans),
    )


def test_gaps_keep_the_margin_and_are_cut_into_equal_stretches():
    known = annotated((8.0, 10.0, "jump"), (3.5, 5.5, "run"))
    assert video_segments(known, 3.0, ALL) == [
        Segment(0.0, 3.0, "background"),
        Segment(3.5, 5.5, "run"),
        Segment(6.0, 7.5, "background"),
        Segment(8.0, 10.0, "jump"),
        Segment(10.5, 12.875, "background"),
        Segment(12.875, 15.25, "background"),
        Segment(15.25, 17.625, "background"),
        Segment(17.625, 20.0, "background"),
    ]


def test_a_wider_margin_swallows_gaps():
    known = annotated((8.0, 10.0, "jump"), (3.5, 5.5, "run"))
    wide = ClipSettings(background_ratio=float("inf"), background_margin=3.5)
    found = [one for one in video_segments(known, 100.0, wide) if one.label == "background"]
    assert found == [Segment(13.5, 20.0, "background")]


def test_without_background_instances_alone_remain():
    known = annotated((8.0, 10.0, "jump"), (3.5, 5.5, "run"))
    off = ClipSettings(background=False)
    assert video_segments(known, 3.0, off) == [Segment(3.5, 5.5, "run"), Segment(8.0, 10.0, "jump")]
    assert video_segments(annotated(), 3.0, off) == []


spans = st.lists(
    st.tuples(st.floats(0, 19), st.floats(0.1, 6), st.sampled_from(["run", "Ambiguous"])).map(
        lambda one: (one[0], min(20.0, one[0] + one[1]), one[2])
    ),
    max_size=6,
)


@given(spans, st.floats(0.5, 8), st.floats(0, 2))
def test_background_is_exactly_what_is_far_from_every_instance(found, longest, margin):
    """Also from those that are ambiguous, which are clips of no class."""
    known = annotated(*found)
    settings = ClipSettings(background_ratio=float("inf"), background_margin=margin)
    segments = video_segments(known, longest, settings)
    assert sum(one.label == "run" for one in segments) == sum(label == "run" for *_, label in found)
    assert all(one.label in ("run", "background") for one in segments)
    background = [one for one in segments if one.label == "background"]
    assert all(one.end - one.start <= longest + 1e-9 for one in background)
    for second in np.linspace(0.0003, 19.9997, 400):
        inside = sum(one.start <= second < one.end for one in background)
        if any(a - margin < second < b + margin for a, b, _ in found):
            assert inside == 0
        else:
            assert inside == 1


@pytest.mark.parametrize(("ratio", "count"), [(0.5, 1), (1.0, 2), (1.5, 3), (100.0, 6)])
def test_the_ratio_limits_background_and_always_picks_the_same(ratio, count):
    known = annotated((8.0, 10.0, "jump"), (3.5, 5.5, "run"))
    everything = video_segments(known, 3.0, ALL)
    settings = ClipSettings(background_ratio=ratio)
    found = video_segments(known, 3.0, settings)
    assert found == video_segments(known, 3.0, settings)
    assert set(found) <= set(everything)
    assert sum(one.label == "background" for one in found) == count


def test_a_video_without_instances_has_background():
    (one,) = video_segments(annotated(), 3.0, ClipSettings())
    assert one.label == "background"
    assert len(video_segments(annotated(), 3.0, ALL)) == 7


def test_different_videos_get_background_from_different_places():
    videos = [annotated(name=str(number)) for number in range(9)]
    starts = {video_segments(video, 1.0, ClipSettings())[0].start for video in videos}
    assert len(starts) > 3


def test_the_typical_instance_is_the_median_of_training():
    known = [
        annotated((0, 1, "a"), (1, 4, "b"), (4, 15, "Ambiguous")),
        annotated((0, 2, "a")),
        annotated((0, 19, "a"), (0, 18, "a"), subset="validation"),
    ]
    assert typical_seconds(known) == 2.0
    with pytest.raises(InputError, match="no training video has an instance"):
        typical_seconds(known[2:])


SECONDS = np.arange(10) + 0.5


@pytest.mark.parametrize(
    ("segment", "rows"),
    [
        (Segment(2.0, 5.0, "a"), (2, 3, 4)),
        (Segment(2.5, 4.5, "a"), (2, 3)),
        (Segment(0.0, 99.0, "a"), tuple(range(10))),
        (Segment(3.6, 3.8, "a"), (3,)),
        (Segment(3.9, 4.2, "a"), (4,)),
        (Segment(3.6, 3.8, "background"), ()),
        (Segment(9.6, 9.9, "a"), (9,)),
        (Segment(12.0, 12.5, "a"), ()),
    ],
)
def test_rows_are_those_inside_or_the_nearest(segment, rows):
    assert rows_of_segment(segment, SECONDS) == rows


def test_only_training_videos_of_the_data_set_are_split():
    known = [annotated(name=f"t{n}") for n in range(8)]
    known += [annotated(name="v", subset="validation"), annotated(name="x", subset="testing")]
    subsets = subsets_of_videos(known, 0.25)
    assert set(subsets) == {f"t{n}" for n in range(8)}
    assert sorted(subsets.values()) == ["training"] * 6 + ["validation"] * 2
    assert subsets == subsets_of_videos(known[::-1], 0.25)


@given(st.sets(st.text(max_size=5), max_size=30), st.floats(0, 0.99))
def test_what_is_held_out_is_the_share_but_never_all(names, fraction):
    ordered = sorted(names)
    held = held_out_names(ordered, fraction)
    assert set(held) <= names
    assert held == held_out_names(ordered[::-1], fraction)
    if fraction == 0 or len(names) < 2:
        assert held == []
    else:
        assert 1 <= len(held) < len(names)
        assert abs(len(held) - fraction * len(names)) <= 1


def test_one_name_more_moves_few_others():
    names = [str(number) for number in range(100)]
    before, after = set(held_out_names(names, 0.25)), set(held_out_names([*names, "new"], 0.25))
    assert len(before ^ after) <= 2
