"""Which videos to correct next: entropy by minute, of what `propose` or a run has written."""

import json
from dataclasses import replace

import pytest

from actionspan.annotations.tables import VIDEO_COLUMNS, write_videos
from actionspan.dataset.next import entropy, worth_of
from actionspan.dataset.video_facts import bad_video
from worlds.command import actionspan


def test_entropy_is_a_bit_where_nothing_is_known_and_none_where_all_is():
    assert [entropy(chance) for chance in (0.0, 0.5, 1.0)] == [0, 1, 0]
    assert entropy(0.25) == pytest.approx(2 - 0.75 * 1.584962500721156)  # 2 − ¾ log₂ 3
    assert entropy(0.9) == pytest.approx(entropy(0.1))


def test_the_worth_of_a_video_is_bits_by_minutes():
    worth = worth_of("a", [0.5, 0.5, 1.0], 30)
    assert (worth.bits, worth.bits_per_minute, worth.events) == (2, 4, 3)
    assert worth_of("a", [], 30).bits_per_minute == 0
    assert worth_of("a", [0.5], 0).bits_per_minute == 0


def rows(*chances):
    return [{"score": chance, "segment": [0, 1]} for chance in chances]


@pytest.fixture
def proposed(tmp_path):
    """What `actionspan propose` leaves of three videos."""
    folder = tmp_path / "proposals"
    (folder / "videos").mkdir(parents=True)
    for name, chances, seconds in (("a", [0.5], 60), ("b", [0.5], 20), ("c", [0.99, 1], 20)):
        found = {"duration_seconds": seconds, "events": rows(*chances), "curves": {"start": []}}
        (folder / "videos" / f"{name}.json").write_text(json.dumps(found))
    return folder


def ranked(capsys, *words):
    """Return the videos that the command names, with their bits a minute."""
    assert actionspan("dataset", "next", *words, "--json") == 0
    return [(row["video"], row["bits_per_minute"]) for row in json.loads(capsys.readouterr().out)]


def refusal(capsys, *words):
    """Return the line of a command that ends in one."""
    assert actionspan("dataset", "next", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_propose_wrote_is_ranked(proposed, capsys):
    expected = [("b", 3.0), ("a", 1.0), ("c", pytest.approx(3 * entropy(0.99)))]
    assert ranked(capsys, proposed) == expected
    assert ranked(capsys, proposed, "--top", 1) == expected[:1]
    (proposed / "known.csv").write_text("video,start,end,label\nv_b,1,2,run\na.mp4,,,\n")
    known = proposed / "known.csv"
    assert ranked(capsys, proposed, "--annotations", known) == expected[2:]
    known.write_text("video,start,end,label\nb,2,1,run\na,1,2,run\n")  # b has no row that is one
    assert [video for video, _ in ranked(capsys, proposed, "--annotations", known)] == ["b", "c"]
    assert actionspan("dataset", "next", proposed) == 0
    assert capsys.readouterr().out == (
        "bits/min  events  minutes  video\n"
        "    3.00       1      0.3  b\n"
        "    1.00       1      1.0  a\n"
        "    0.24       2      0.3  c\n"
    )


def test_a_run_leaves_out_what_it_learned_from(tmp_path, capsys):
    subsets = {"a": "training", "b": "validation", "c": "testing", "d": "testing"}
    videos = [
        replace(bad_video(tmp_path / f"{name}.mp4", ""), subset=subset, duration_seconds=60.0)
        for name, subset in subsets.items()
    ]
    write_videos(tmp_path / "dataset" / "videos.tsv", videos, VIDEO_COLUMNS)
    events = {"a": rows(0.5), "b": rows(0.5), "c": rows(0.5, 0.5), "d": [], "gone": rows(0.5)}
    path = tmp_path / "proposals" / "span" / "events.json"
    line = "events.json: no such file; models with events here: none"
    assert line in refusal(capsys, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": "x", "results": events}))
    assert ranked(capsys, tmp_path) == [("c", 2.0), ("d", 0.0)]
    known = tmp_path / "known.csv"
    known.write_text("video,start,end,label\nc,,,\n")
    assert ranked(capsys, tmp_path, "--annotations", known) == [("a", 1.0), ("b", 1.0), ("d", 0.0)]
    assert "models with events here: span" in refusal(capsys, tmp_path, "--model", "stream")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"events": rows(1.5)}, "video 'a', event 1: its score is not a chance from 0 to 1"),
        ({"events": [3]}, "event 1: its score is not a chance"),
        ({"events": None}, "not what `actionspan propose` writes of a video"),
        ({"duration_seconds": "x"}, "not what `actionspan propose` writes of a video"),
        ({"curves": {"motion": [1]}}, "untrained motion grouping (--model none) knows no chances"),
    ],
)
def test_what_gives_no_chances_is_a_line(proposed, capsys, change, message):
    path = proposed / "videos" / "a.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    line = refusal(capsys, proposed)
    assert f"{path}: " in line
    assert message in line


def test_other_folders_and_a_finished_set_are_lines(proposed, capsys):
    line = "neither a run (dataset/videos.tsv) nor what"
    assert line in refusal(capsys, proposed / "none")
    known = proposed / "known.csv"
    known.write_text("video,start,end,label\na,,,\nb,,,\nc,,,\n")
    line = "all of 3 videos are annotated"
    assert line in refusal(capsys, proposed, "--annotations", known)
    assert "top" in refusal(capsys, proposed, "--top", "0")


def test_an_event_of_unknown_chance_is_worth_a_bit(proposed, capsys):
    path = proposed / "videos/c.json"
    found = json.loads(path.read_text())
    events = [{**row, "rank": rank} for rank, row in enumerate(rows(1, 0.5), start=1)]
    path.write_text(json.dumps({**found, "events": events}))
    assert ranked(capsys, proposed)[0] == ("c", 6)  # 2 bits in 20 seconds
