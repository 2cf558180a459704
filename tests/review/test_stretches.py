"""Stretches around judged events: what they hold, and how their footage is cut out."""

from dataclasses import replace

import numpy as np
import pytest

from actionspan.annotations.tables import Instance
from actionspan.errors import InputError
from actionspan.review.judging import Figures
from actionspan.review.learning import learn
from actionspan.review.stretches import Stretch, cut_out, read_stretches, stretches_of
from actionspan.storage.writing import create_h5
from review.footage import SECONDS

LISTED = [[10, 20], [22, 30], [40, 50], [48, 58]]


def row(start, end, status, label="wave", *more):
    return ["a", f"{start}", f"{end}", label, status, *more]


REJECTED = row(22, 30, "rejected")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # to the neighbours, or to the ends of the video
        ([row(10, 20, "accepted")], [(0, 22, 1, [(10, 20, "wave")])]),
        ([REJECTED], [(20, 40, 1, [])]),
        # next to each other
        ([REJECTED, row(10, 20, "accepted", "")], [(0, 40, 2, [(10, 20, "action")])]),
        # moved: the listed event is no neighbour of itself
        ([row(23, 32, "moved")], [(20, 40, 1, [(23, 32, "wave")])]),
        # a neighbour that overlaps ends no event
        ([row(40, 50, "accepted")], [(30, 50, 1, [(40, 50, "wave")])]),
        # an event of the person's own, which nobody proposed
        ([row(33, 36, "added", "wave", "Ann")], [(30, 40, 1, [(33, 36, "wave")])]),
        # apart
        (
            [row(10, 20, "rejected"), row(48, 58, "accepted")],
            [(0, 22, 1, []), (48, 60, 1, [(48, 58, "wave")])],
        ),
        # no segments of the video
        ([["a", "", "", "", "none"], row("x", 3, "rejected"), row(9, 3, "rejected")], []),
        ([row(70, 80, "accepted"), row("nan", "inf", "rejected")], []),
    ],
)
def test_a_stretch_reaches_to_the_events_that_nobody_judged(rows, expected):
    assert stretches_of(rows, LISTED, SECONDS) == expected


def test_without_listed_events_it_is_the_whole_video():
    assert stretches_of([row(1, 2, "added")], [], SECONDS) == [(0, 60, 1, [(1, 2, "wave")])]


@pytest.mark.parametrize("text", ["[]", '{"a": 3}', '{"a": [[1]]}', "{"])
def test_a_damaged_file_is_one_line(tmp_path, text):
    (tmp_path / "stretches.json").write_text(text)
    with pytest.raises(InputError, match=r"stretches\.json: ") as raised:
        read_stretches(tmp_path / "stretches.json")
    assert "\n" not in str(raised.value)


def test_the_features_of_a_stretch_have_a_time_axis_of_their_own(footage, tmp_path):
    one = footage[0][0]
    raw, facts = one.read()
    marked = tmp_path / "marked.h5"
    with create_h5(marked, "") as file:
        file.attrs.update(description="", settings="{}")
        group = file.create_group("video0")
        for name, values in {**raw, **facts}.items():
            if name != "cuts":
                group[name] = values
        group["cuts"] = [[5.0, 0.5], [12.0, 0.75]]
        group["bouts"] = [[2.0, 11.0, 7.0], [20.0, 30.0, 6.0], [13.0, 14.0, 5.0]]
    given = [(replace(one, shard=marked), Stretch(10, 15, 2, [(11, 13, "wave")]))]
    given.append((given[0][0], Stretch(20.01, 20.02, 1, [])))  # between two snippets
    (cut,), truth = cut_out(given, tmp_path / "cut.h5")
    assert (cut.video.video_id, cut.video.duration_seconds) == ("video0@10.000-15.000", 5)
    assert truth == {cut.video.video_id: (Instance(start=1, end=3, label="wave"),)}
    rgb, inside = cut.read()
    assert np.array_equal(rgb["rgb"], raw["rgb"][20:30])
    assert np.array_equal(inside["flow_magnitude"], facts["flow_magnitude"][20:30])
    assert inside["time"] == pytest.approx(np.arange(0.25, 5, 0.5))
    assert inside["cuts"].tolist() == [[2, 0.75]]
    assert inside["bouts"].tolist() == [[0, 1, 7], [3, 4, 5]]


def test_single_events_are_trained_on_and_not_tried(footage, trained, tmp_path):
    videos, truth = footage
    first, last = truth["video2"][0], truth["video2"][-1]
    judged = Stretch(0, last.start, 1, [(first.start, first.end, "wave")])
    stretches = [(videos[2], each) for each in (judged, Stretch(last.start, 60, 1, []))]
    whole = {name: truth[name] for name in ("video0", "video1")}
    learned = learn(videos[:2], whole, tmp_path / "out", stretches=stretches)
    parts = [f"video2@0.000-{last.start:.3f}", f"video2@{last.start:.3f}-60.000"]
    (everything, *others) = map(sorted, trained)
    assert everything == ["video0", "video1", *parts]
    assert sorted(others) == [["video0", *parts], ["video1", *parts]]
    assert all([known[part] for part in parts] == [1, 0] for known in trained)
    assert learned.figures["own"].instances == sum(map(len, whole.values()))


@pytest.mark.full
def test_a_round_with_single_events_names_them(footage, tmp_path):
    videos, truth = footage
    first = truth["video2"][0]
    stretch = Stretch(0, first.end + 1, 1, [(first.start, first.end, "wave")])
    whole = {name: truth[name] for name in ("video0", "video1")}
    learned = learn(videos[:2], whole, tmp_path, stretches=[(videos[2], stretch)], processes=1)
    assert learned.sentence().startswith(
        "2 corrected videos, 5 instances, 2 labels, 1 single event"
    )
    assert isinstance(learned.figures["own"], Figures)
    assert learned.figures["own"].instances == 5
    alone = learn(
        videos[:2], {"video0": truth["video0"]}, tmp_path, stretches=[(videos[2], stretch)]
    )
    assert (alone.uses, alone.single_events) == ("included", 0)
