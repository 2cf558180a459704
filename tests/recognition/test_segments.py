"""Clips of untrimmed videos: where instances and background lie, and the snippets they hold."""

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import write_annotations
from actionspan.errors import InputError
from actionspan.jobs.shards import ShardWork
from actionspan.recognition.clip_lists import ClipSettings, held_out_names
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.segments import (
    Segment,
    rows_of_segment,
    segments_of_shard,
    subsets_of_videos,
    typical_seconds,
    video_segments,
)
from recognition.conftest import HEIGHT, STACK, WIDTH
from worlds import scored

ALL = ClipSettings(height=HEIGHT, width=WIDTH, background_ratio=float("inf"))


def annotated(*spans, name="v", subset="training", duration=20.0):
    return scored.annotated(name, *spans, subset=subset, duration=duration)


KNOWN = annotated((8.0, 10.0, "jump"), (3.5, 5.5, "run"))


def test_gaps_keep_the_margin_and_are_cut_into_equal_stretches():
    assert video_segments(KNOWN, 3.0, ALL) == [
        Segment(0.0, 3.0, "background"),
        Segment(3.5, 5.5, "run"),
        Segment(6.0, 7.5, "background"),
        Segment(8.0, 10.0, "jump"),
        Segment(10.5, 12.875, "background"),
        Segment(12.875, 15.25, "background"),
        Segment(15.25, 17.625, "background"),
        Segment(17.625, 20.0, "background"),
    ]


def test_without_background_instances_alone_remain():
    off = ClipSettings(background=False)
    assert video_segments(KNOWN, 3.0, off) == [Segment(3.5, 5.5, "run"), Segment(8.0, 10.0, "jump")]
    assert video_segments(annotated(), 3.0, off) == []


spans = st.lists(
    st.tuples(st.floats(0, 19), st.floats(0.1, 6), st.sampled_from(["run", "Ambiguous"])).map(
        lambda one: (one[0], min(20.0, one[0] + one[1]), one[2])
    ),
    max_size=6,
)


@given(spans, st.floats(0.5, 8), st.floats(0, 2))
def test_background_is_exactly_the_rest_far_from_every_instance(found, longest, margin):
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
    settings = ClipSettings(background_ratio=ratio)
    found = video_segments(KNOWN, 3.0, settings)
    assert found == video_segments(KNOWN, 3.0, settings)
    assert set(found) <= set(video_segments(KNOWN, 3.0, ALL))
    assert sum(one.label == "background" for one in found) == count


def test_a_video_without_instances_has_background_from_a_place_of_its_own():
    videos = [annotated(name=str(number)) for number in range(9)]
    found = [video_segments(video, 1.0, ClipSettings()) for video in videos]
    assert {tuple(one.label for one in each) for each in found} == {("background",)}
    assert len({one.start for (one,) in found}) > 3


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
def test_the_share_is_held_out_but_never_all(names, fraction):
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


@pytest.fixture
def annotations(tmp_path):
    spans = ((2.0, 5.0, "run"), (9.1, 9.3, "jump"))
    subsets = {"one": "training", "shown": "validation", "other": "testing"}
    known = [annotated(*spans, duration=12.0, subset=s, name=name) for name, s in subsets.items()]
    known.append(annotated((40, 43, "x"), duration=12.0, name="two"))
    write_annotations(tmp_path / "annotations.json", known)
    return tmp_path / "annotations.json"


def test_clips_hold_the_snippets_of_their_segments(write_videos, annotations, tmp_path):
    frames, flow = write_videos({"one": 12, "shown": 12, "other": 12, "unnamed": 4})
    out, how = tmp_path / "clips.h5", ShardWork(processes=2)
    assert segments_of_shard(frames, flow, annotations, out, ALL, how) == {}
    store = ClipStore([out])
    assert store.classes == ["jump", "run", "background"]
    assert store.channels["flow"] == 2 * STACK
    found = {}
    for place, clip in enumerate(store.clips):
        values = [store.read("rgb", place, k)[10, 10, 0] for k in range(clip.positions)]
        codes = [store.read("flow", place, k)[10, 10] for k in range(clip.positions)]
        rows = [round((int(value) - 20) / 10) for value in values]
        assert [code.tolist() for code in codes] == [[128 + row, 128] * STACK for row in rows]
        found[clip.clip_id] = (store.classes[clip.label], rows)
    assert found == {
        "one.000": ("background", [0]),  # up to 1.5 s; snippets are at 0.5 s, 1.5 s, …
        "one.001": ("run", [2, 3, 4]),
        "one.002": ("background", [5, 6]),
        "one.003": ("background", [7, 8]),
        "one.004": ("jump", [9]),
        "one.005": ("background", [10, 11]),
    }
    with h5py.File(out) as file:
        assert file["one.001/time"][:].tolist() == [2.5, 3.5, 4.5]


def test_a_training_video_is_held_out_whole_and_an_instance_beyond_it_rejected(
    write_videos, annotations, tmp_path, capsys
):
    frames, flow = write_videos({"one": 12, "two": 12})
    errors = segments_of_shard(frames, flow, annotations, tmp_path / "clips.h5", ALL)
    assert list(errors.values()) == ["two: no frame lies in an instance of x"]
    assert "rejected two." in capsys.readouterr().err
    store = ClipStore([tmp_path / "clips.h5"])
    subsets = {(clip.clip_id.split(".")[0], clip.subset) for clip in store.clips}
    assert {name for name, _ in subsets} == {"one", "two"}
    assert sorted(subset for _, subset in subsets) == ["training", "validation"]


def test_a_shard_without_training_videos_is_an_empty_store(write_videos, annotations, tmp_path):
    one, other = (tmp_path / f"{number}.h5" for number in (1, 2))
    segments_of_shard(*write_videos({"shown": 3}, "a"), annotations, one, ALL)
    segments_of_shard(*write_videos({"one": 12}, "b"), annotations, other, ALL)
    assert ClipStore([one, other]).clips == ClipStore([other]).clips


def test_annotations_without_an_instance_are_named(write_videos, tmp_path):
    path = tmp_path / "none.json"
    write_annotations(path, [annotated(name="one")])
    with pytest.raises(InputError, match=r"none.json: no training video has an instance"):
        segments_of_shard(*write_videos({"one": 3}), path, tmp_path / "o.h5", ALL)


def test_frames_of_another_shard_are_refused(write_videos, annotations, tmp_path):
    frames, _ = write_videos({"two": 3}, "a")
    _, flow = write_videos({"one": 3}, "b")
    with pytest.raises(InputError, match=r"frames_a.h5: lacks one, which .*flow_b.h5 holds"):
        segments_of_shard(frames, flow, annotations, tmp_path / "o.h5", ALL)
