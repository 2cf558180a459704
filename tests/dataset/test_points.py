"""Events that are points in time: a length where one is given, else one line that counts them."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats.records import RawInstance, Record
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.formats.rejections import Rejection, report
from actionspan.annotations.formats.times import POINT, around
from actionspan.dataset import completing
from actionspan.dataset.matching import IndexSettings, index_annotations, read_annotations
from actionspan.errors import InputError
from actionspan.evaluation.files import read_ground_truth
from dataset.conftest import encode_video
from worlds.command import actionspan

SAMPLES = Path(__file__).parents[1] / "annotations" / "samples"
HINT = "without a length; give one by --points SECONDS (dataset.point_seconds of a run)"


def labelled(path, label):
    """Return the segments of a label over all videos."""
    records = read_annotation_file(path).records
    return [each[:2] for record in records for each in record.parsed() if each[2] == label]


FILES = {
    "kicks.csv": "video,time,label\na,3.2,kick\n",
    "kicks.tsv": "Media file name\tTime (s)\tBehavior\tsubset\nx/a.mp4\t3,2\tkick\tval\n",
    "equal.csv": "video,start,end,label\na,3.2,3.2,kick\n",
    "equal.json": (
        '{"database": {"a": {"annotations": [{"segment": [3.2, 3.2], "label": "kick"}]}}}'
    ),
    "stop_is_not_given.csv": (
        "Media file name,Behavior,Behavior type,Start (s),Stop (s)\na.mp4,kick,POINT,3.2,NA\n"
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_point_is_given_a_length_around_it(tmp_path, capsys, name):
    (tmp_path / name).write_text(FILES[name])
    assert actionspan("dataset", "convert", tmp_path / name, tmp_path / "o.csv", "--points=1") == 0
    assert labelled(tmp_path / "o.csv", "kick") == [(pytest.approx(2.7), pytest.approx(3.7))]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "name", ["boris.boris", "boris_tabular.tsv", "boris_aggregated.csv", "boris_old.csv"]
)
def test_point_events_of_boris_beside_state_events(tmp_path, name):
    out = tmp_path / "out.csv"
    assert actionspan("dataset", "convert", SAMPLES / name, out, "--points", 1) == 0
    assert labelled(out, "sniff") == [(pytest.approx(2.7), pytest.approx(3.7))]
    assert (1.04, 2.5) in labelled(out, "groom")


def test_without_a_length_points_are_counted_in_one_line(tmp_path, capsys):
    path = tmp_path / "kicks.csv"
    path.write_text("video,start,end,label\na,1,1,kick\na,2,2,kick\na,x,2,run\na,1,2,run\n")
    assert actionspan("dataset", "convert", path, tmp_path / "out.csv") == 0
    assert capsys.readouterr().err.splitlines() == [
        f"left out {path}: 2 points {HINT}",
        f"left out {path}: row 4: start 'x' is not a time: seconds, m:ss or h:mm:ss",
    ]
    assert actionspan("dataset", "convert", path, tmp_path / "out.csv", "--points=-1") == 2
    assert capsys.readouterr().err.count("--points -1.0: 0 seconds or more") == 1
    # and a video of points alone is not one where nothing happens
    path.write_text("video,time,label\na,1,kick\n")
    assert actionspan("dataset", "convert", path, tmp_path / "out.csv") == 2
    assert "no video is left" in capsys.readouterr().err


def test_a_table_of_segments_may_have_a_column_of_times_too(tmp_path):
    (tmp_path / "a.csv").write_text("video,time,start,end,label\na,09:30,1,2,run\n")
    assert labelled(tmp_path / "a.csv", "run") == [(1, 2)]


@given(st.floats(0, 100), st.floats(0.01, 50), st.floats(0.1, 100))
def test_an_event_around_a_point_lies_in_the_video(time, length, seconds):
    start, end = around(time, length, seconds)
    assert start <= time <= end
    assert end - start <= length * (1 + 1e-9) + 1e-9
    if time <= seconds:
        assert (start, end) == (max(time - length / 2, 0), min(time + length / 2, seconds))


def test_a_point_outside_its_video_is_not_moved_into_it():
    for time in (-1.0, 12.0):
        raw = RawInstance(start=time, end=time, label="kick", length=6.0)
        with pytest.raises(ValueError, match=r"before the video|outside the video, 0…10 s"):
            raw.checked(10.0)
    raw = RawInstance(start=9.5, end=9.5, label="kick", length=6.0)
    assert raw.checked(10.0) == (6.5, 10, "kick")


def test_a_run_gives_points_a_length_by_its_setting(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("video,start,end,label,duration\na,0.2,0.2,kick,9\na,8.9,8.9,kick,9\n")
    settings = IndexSettings(point_seconds=1)
    index = index_annotations(read_annotations([path], None, settings), settings)
    (annotation,) = index.annotations
    found = [(one.start, one.end) for one in annotation.instances]
    assert found == [(0, pytest.approx(0.7)), (pytest.approx(8.4), 9)]
    index = index_annotations(read_annotations([path], None, IndexSettings()), IndexSettings())
    rows = [bad.row for bad in index.rejections if bad.reason.startswith(POINT)]
    assert rows == ["2", "3"]  # the table names each


def test_of_many_points_a_run_says_one_line(tmp_path, capsys):
    points = [Rejection("a.csv", str(row), f"{POINT} (video 'a')") for row in range(2, 20)]
    others = [Rejection("a.csv", str(row), "no label") for row in range(20, 27)]
    report([*others, *points], "skip", tmp_path / "rejected.tsv")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"rejected a.csv: 18 points {HINT}"
    assert len(lines) == 6
    assert lines[-1].startswith("rejected 3 more: ")


def test_neither_points_nor_what_a_model_proposes_are_truth(tmp_path):
    row = '{"segment": [1.0, 2.0], "score": 0.5, "label": "jump"}'
    (tmp_path / "events.json").write_text(f'{{"results": {{"a": [{row}]}}}}')
    (tmp_path / "kicks.csv").write_text("video,time,label\na,1,kick\n")
    point = "a point, which has no length; `actionspan dataset"
    for path, message in (
        (tmp_path / "kicks.csv", point),
        (SAMPLES / "boris_old.csv", point),
        (tmp_path / "events.json", "proposals or events, which are not ground truth"),
    ):
        with pytest.raises(InputError, match=message):
            read_ground_truth(path, "all")


def test_a_duration_beside_a_time_may_be_the_events(tmp_path):
    """Onset and length are common; the video's duration is not meant then."""
    (tmp_path / "kicks.csv").write_text("video,time,duration,label\na,1.0,3,jump\n")
    with pytest.raises(InputError, match=r"kicks.csv: .*start"):
        read_annotation_file(tmp_path / "kicks.csv", points=1.0)


@pytest.fixture
def kicks(tmp_path):
    """A video of 2 s, and a file that says of one point in it."""
    (tmp_path / "videos").mkdir()
    encode_video(tmp_path / "videos" / "a.mp4")
    (tmp_path / "kicks.csv").write_text("video,time,label\na,1,kick\n")
    return tmp_path


def test_commands_for_events_take_points(kicks, capsys):
    source, how = kicks / "kicks.csv", ("--videos", kicks / "videos", "--points", 0.5)
    assert actionspan("budget", source, *how) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert row == "a,kick,0,2,1,30,0.5,0.5,0.25"
    assert actionspan("agree", source, source, *how, "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["kappa"] == 1
    assert actionspan("frames", source, *how, "--out", kicks / "frames") == 0
    table = (kicks / "frames" / "a.csv").read_text().splitlines()
    assert sum(line.endswith(",1") for line in table) == 6  # two of them in part
    assert actionspan("clips", source, *how, "--lists", "--out", kicks / "lists") == 0
    assert (kicks / "lists" / "a.csv").read_text().startswith("0.75")


def test_corrections_may_have_points_too(kicks):
    (kicks / "more.csv").write_text("video,time,label\nb,1,kick\n")
    words = ("dataset", "merge", kicks / "kicks.csv", kicks / "more.csv")
    assert actionspan(*words, "--out", kicks / "out.csv", "--points", 0.5) == 0
    assert labelled(kicks / "out.csv", "kick") == [(0.75, 1.25), (0.75, 1.25)]


def test_propose_and_learn_take_points(kicks, monkeypatch):
    videos = kicks / "videos"
    truth = completing.Truth(kicks / "kicks.csv", {"a": videos / "a.mp4"}, points=8)
    assert [(one.start, one.end) for one in truth.within("a", 2.0)] == [(0, 2)]
    reader = Mock(side_effect=InputError("enough"))
    monkeypatch.setattr(completing, "Truth", reader)
    words = ("--annotations", kicks / "kicks.csv", "--points", 0.5, "--out", kicks / "out")
    assert actionspan("propose", videos, *words, "--model", "none") == 2
    assert actionspan("learn", videos, *words) == 2
    assert [each.kwargs["points"] for each in reader.call_args_list] == [0.5, 0.5]


def test_two_ways_to_write_a_time_are_one_point():
    raw = RawInstance(start="1:00", end=60, label="kick", length=1.0)
    record = Record(video_id="a", seconds=60.2, instances=[raw])
    assert record.parsed() == [(59.5, 60.2, "kick")]
