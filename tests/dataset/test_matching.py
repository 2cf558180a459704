"""Annotations joined with videos: what is kept, what is a line, and the split."""

import math
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats.records import RawInstance, Reading, Record
from actionspan.annotations.formats.times import Frame, VideoEnd
from actionspan.annotations.tables import Instance
from actionspan.dataset.matching import (
    IndexSettings,
    check_instance,
    index_annotations,
    index_videos,
    read_annotations,
    split_subsets,
)
from worlds.videos import video_of

SETTINGS = IndexSettings()


def video(name, seconds=10.0, error=""):
    return video_of(name, seconds, 10.0, path=Path(f"videos/{name}.mp4"), error=error)


def record(name, *segments, row="7", **known):
    instances = [RawInstance(row=row, start=a, end=b, label="run") for a, b in segments]
    return Record(file="a.csv", row=row, video_id=name, instances=instances, **known)


def lines(index):
    return [bad.line() for bad in index.rejections]


def index_of(videos, records):
    return index_videos(videos, Reading(records=records), SETTINGS)


def check(start, end, label="run", duration=10.0, overshoot=1.0):
    raw = RawInstance(row="1", start=start, end=end, label=label)
    return check_instance(raw, duration, overshoot)


@pytest.mark.parametrize(
    ("start", "end", "kept"),
    [
        (1, 2, (1, 2)),
        ("1.5", " 2e0 ", (1.5, 2)),
        (0, 10, (0, 10)),
        (9, 10.9, (9, 10)),  # up to a second beyond the end is cut
        (-0.04, 2, (0, 2)),  # a frame, rounded
    ],
)
def test_good_segments(start, end, kept):
    assert check(start, end) == (Instance(start=kept[0], end=kept[1], label="run"), "")


NO_TIMES = (math.nan, "", "0:61", "1_0", True, [1])


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (2, 2, "a point, which has no length"),
        (3, 2, "start 3 is not before end 2"),
        *(
            (time, 2, f"start '{time}' is not a time: seconds, m:ss or h:mm:ss")
            for time in NO_TIMES
        ),
        (1, "inf", "end 'inf' is not a time: seconds, m:ss or h:mm:ss"),
        (1, None, "end 'None' is not a time: seconds, m:ss or h:mm:ss"),
        (10**400, 2, "start '1000"),
        (1, 11.5, "segment 1…11.5 s is outside the video, 0…10 s"),
        (-1, 2, "start -1 is before the video, which begins at 0"),
        (-0.5, 2, "start -0.5 is before the video, which begins at 0"),
        ("1,5", 2, "start '1,5' is not a time: write '1.5', or put semicolons between the columns"),
        (0, 99, "segment 0…99 s is outside the video, 0…10 s"),
        (10.2, 10.8, "segment 10.2…10.8 s is outside the video, 0…10 s"),
        (-0.04, 0, "segment -0.04…0 s is outside the video, 0…10 s"),
    ],
)
def test_bad_segments(start, end, reason):
    instance, found = check(start, end)
    assert instance is None
    assert found.startswith(reason)


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        *((label, "no label") for label in ("", "  ", None, ["x"])),
        ("caf\udce9", "label 'caf\\xe9' is not UTF-8 text; save the file as UTF-8"),
        ("a\nb", "label 'a\\nb' holds a control character"),
    ],
)
def test_bad_labels(label, reason):
    assert check(1, 2, label) == (None, reason)


@given(st.floats(), st.floats(), st.floats(0.1, 1e6), st.floats(0, 10))
def test_kept_instances_lie_inside_their_video(start, end, duration, overshoot):
    instance, reason = check(start, end, duration=duration, overshoot=overshoot)
    assert (instance is None) == bool(reason)
    if instance:
        assert 0 <= instance.start < instance.end <= duration


def test_join_sorts_and_fills_in():
    records = [record("b", (5, 6), (1, 2), subset="validation"), record("c")]
    index = index_of([video("c"), video("b"), video("a")], records)
    assert [known.video_id for known in index.videos] == ["a", "b", "c"]
    assert index.videos[0].subset == "testing"  # no annotation names it
    assert index.videos[1].subset == "validation"
    assert index.videos[2].subset == subset_of("c")
    assert [(one.start, one.end) for one in index.annotations[1].instances] == [(1, 2), (5, 6)]
    assert index.annotations[0].instances == ()
    assert (index.annotated, index.rejections) == (2, [])


def test_each_bad_thing_is_one_line():
    records = [
        record("a", (1, 2), (3, 2), row="2"),
        record("a", (1, 2), row="4"),
        record("broken", (1, 2), row="5"),
        record("gone", (1, 2), (2, 3), row="6"),
    ]
    index = index_of([video("a"), video("broken", error="the file is empty")], records)
    assert lines(index) == [
        "videos/broken.mp4: the file is empty",
        "a.csv: row 2: start 3 is not before end 2 (video 'a')",
        "a.csv: row 4: a second entry of video 'a'; the first, 2, counts",
        "a.csv: row 6: no video file has the id 'gone' (2 instances left out)",
    ]
    assert [known.video_id for known in index.videos] == ["a"]


NFC, NFD = (unicodedata.normalize(form, "größe") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        *[("v_abc", "abc"), ("abc", "v_abc"), ("abc", "abc.mp4"), ("v_abc", "abc.MKV")],
        *[("a.b", "a.b.avi"), ("a.b", "a.b"), ('it\'s a "q"', 'it\'s a "q"')],
        *[(NFD, NFC), (NFC, NFD)],
    ],
)
def test_ids_are_matched_as_people_write_them(stem, name):
    index = index_of([video(stem)], [record(name, (1, 2))])
    assert index.rejections == []
    assert len(index.annotations[0].instances) == 1
    assert index.annotations[0].video_id == stem


def test_an_exact_id_is_preferred_and_two_names_of_one_video_are_a_second_entry():
    index = index_of([video("a"), video("v_a")], [record("v_a", (1, 2)), record("a", (3, 4))])
    assert [known.instances[0].start for known in index.annotations] == [3, 1]
    index = index_of([video("v_a")], [record("a", row="2"), record("v_a", row="3")])
    assert lines(index) == ["a.csv: row 3: a second entry of video 'v_a'; the first, 2, counts"]


def subset_of(video_id, fraction=0.25):
    return split_subsets({video_id: True}, fraction)[video_id]


@given(st.lists(st.text(min_size=1, max_size=8), unique=True, min_size=1, max_size=30))
def test_the_split_depends_on_the_id_alone(names):
    assert {subset_of(name, 0.0) for name in names} == {"training"}
    assert {subset_of(name, 1.0) for name in names} == {"validation"}
    for name in names:  # a larger fraction only moves videos into validation
        if subset_of(name, 0.2) == "validation":
            assert subset_of(name, 0.3) == "validation"
    whole = split_subsets(dict.fromkeys(names, True), 0.25)
    alone = {name: subset_of(name) for name in names}
    assert whole == alone or len(set(alone.values())) == 1


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), st.booleans(), max_size=12),
    st.sampled_from([1e-9, 0.1, 0.5, 0.9, 1 - 1e-9]),
)
def test_neither_subset_lacks_a_video_in_which_something_happens(videos, fraction):
    subsets = split_subsets(videos, fraction)
    assert set(subsets) == set(videos)
    active = [name for name, happens in videos.items() if happens]
    if len(active) > 1:
        assert {subsets[name] for name in active} == {"training", "validation"}
    moved = [name for name in videos if subsets[name] != subset_of(name, fraction)]
    assert len(moved) <= 1


def test_a_subset_that_the_annotations_fill_is_left_alone():
    videos = {f"video{number}": True for number in range(6)}
    assert set(split_subsets(videos, 1e-9, {"validation"}).values()) == {"training"}
    assert set(split_subsets(videos, 1 - 1e-9, {"training"}).values()) == {"validation"}


def test_six_videos_that_all_hash_to_training_have_one_to_score():
    names = [name for name in map("clip{}".format, range(99)) if subset_of(name) == "training"][:6]
    index = index_of([video(name) for name in names], [record(name, (1, 2)) for name in names])
    subsets = [known.subset for known in index.annotations]
    assert (subsets.count("training"), subsets.count("validation")) == (5, 1)
    assert [known.subset for known in index.videos] == subsets


def test_the_split_has_about_the_wanted_size():
    subsets = [subset_of(f"video{i}") for i in range(4000)]
    assert subsets.count("validation") == pytest.approx(1000, abs=100)


@pytest.mark.parametrize("subset", [None, "training", "validation"])
def test_a_video_of_which_no_row_is_left_is_not_learned_as_empty(subset):
    records = [
        record("sound", (3, 2), (20, 30), row="4", subset=subset),
        record("half", (3, 2), (5, 6), row="8", subset="training"),
        record("quiet", row="9", subset="training"),
    ]
    index = index_of([video("sound"), video("half"), video("quiet")], records)
    found = {known.video_id: known.subset for known in index.annotations}
    assert found == {"half": "training", "quiet": "training", "sound": "testing"}
    assert "a.csv: row 4: no row of video 'sound' is left; nothing learns from it" in lines(index)
    assert len(lines(index)) == 4


def test_an_index_without_video_files():
    records = [
        record("b", (1, 2), seconds=10.0, frames=300),
        record("a", frames=100, fps=25.0, subset="training"),
        record("c", (1, 2)),
        record("a", seconds=3.0, row="9"),
    ]
    index = index_annotations(Reading(records=records), SETTINGS)
    names = ("video_id", "path", "fps", "frames", "duration_seconds")
    found = [tuple(getattr(known, name) for name in names) for known in index.videos]
    assert found == [("a", Path(), 25.0, 100, 4.0), ("b", Path(), 30.0, 300, 10.0)]
    assert lines(index) == [
        "a.csv: row 7: no duration of 'c': give it here, in a table of videos, or as a video file",
        "a.csv: row 9: a second entry of video 'a'; the first, 7, counts",
    ]


@pytest.mark.full
def test_activitynet_without_videos(shared_data):
    folder = shared_data / "activitynet"
    info = folder / "video_info_new.csv"
    reading = read_annotations([folder / "anet_anno_action.json"], info, SETTINGS)
    assert sum(len(record.instances) for record in reading.records) == 22152
    index = index_annotations(reading, SETTINGS)
    subsets = [known.subset for known in index.annotations]
    counts = [subsets.count(name) for name in ("training", "validation", "testing")]
    # 8 training and 2 validation videos have no other instance than those of no length
    assert (len(index.videos), counts) == (19228, [9649 - 8, 4728 - 2, 4851 + 10])
    validation = [known for known in index.annotations if known.subset == "validation"]
    # 3 of the 7,293 instances have no length
    assert sum(len(known.instances) for known in validation) == 7293 - 3
    reasons = [bad.reason.split()[0] for bad in index.rejections]
    assert (reasons.count("a"), reasons.count("no"), len(reasons)) == (12, 10, 22)


def test_thumos14_without_videos(shared_data):
    path = shared_data / "thumos14" / "thumos14_test_groundtruth.csv"
    index = index_annotations(read_annotations([path], None, SETTINGS), SETTINGS)
    assert len(index.videos) == 213
    # the ground truth itself names segments that begin after the end of these three videos
    assert len(index.rejections) == 26
    found = {re.search(r"video_test_(\d+)'\)$", bad.reason)[1] for bad in index.rejections}
    assert found == {"0000270", "0000814", "0001081"}


def test_frames_and_the_end_of_a_video_are_times_once_the_video_is_known():
    known = record("a", (Frame(5), Frame(15)), (2, VideoEnd()))
    tool = record("b", (Frame(5), Frame(15)), fps=5.0)  # counted at a rate of its own
    late = record("c", (Frame(101), Frame(103)))
    index = index_of([video("a"), video("b"), video("c")], [known, tool, late])
    found = {each.video_id: each.instances for each in index.annotations}
    assert {name: [(one.start, one.end) for one in each] for name, each in found.items()} == {
        "a": [(0.5, 1.5), (2, 10)],
        "b": [(1, 3)],
        "c": [],
    }
    assert "segment 10.1…10.3 s is outside the video, 0…10 s" in lines(index)[0]
    alone = record("a", (Frame(5), VideoEnd()), seconds=10.0, frames=50)
    timed = index_annotations(Reading(records=[alone]), SETTINGS)
    assert timed.annotations[0].instances == (Instance(start=1, end=10, label="run"),)
