"""`actionspan propose` writes a page of all that it found."""

import json
import os
import re
from argparse import ArgumentParser
from pathlib import Path

import pytest

from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.jobs.apart import Outcome
from actionspan.propose.command import add_arguments
from actionspan.propose.page import write_result_page
from actionspan.propose.results import Result, ResultFolder, Shown
from actionspan.video.playable import why_not_playable
from video.numbered import encode

ANNOTATIONS = "video,start,end,label\nfirst film,0.5,2.5,count\n"


def propose(out: Path, *words: object) -> int:
    return main(["propose", *map(str, words), "--model", "none", "--quiet", "--out", str(out)])


def data(out: Path, name: str):
    text = (out / "index.html").read_text()
    (found,) = re.findall(rf'<script type="application/json" id="{name}">(.*?)</script>', text)
    return json.loads(found)


@pytest.fixture
def videos(tmp_path) -> list[Path]:
    (tmp_path / "my films").mkdir()
    return [
        encode(tmp_path / "my films" / "first film.mp4", 100),
        encode(tmp_path / "my films" / "second.mkv", 60, rate=30),
    ]


def test_a_page_shows_all_videos_of_the_folder(tmp_path, videos, monkeypatch):
    out = tmp_path / "found"
    assert propose(out, videos[0]) == 0
    assert [video["id"] for video in data(out, "index-data")["videos"]] == ["first film"]
    # a later call from elsewhere adds its own
    monkeypatch.chdir(tmp_path / "my films")
    assert propose(out, "second.mkv") == 0
    index = data(out, "index-data")
    assert index["title"] == "found"
    first, second = index["videos"]
    assert (first["file"], first["rate"]) == ("../my%20films/first%20film.mp4", 25)
    assert (second["file"], second["rate"]) == ("videos/second.mp4", 30)
    assert (first["recall"], first["truths"]) == (None, 0)
    stored = json.loads((out / "videos/first film.json").read_text())
    shown = data(out, "video-0")
    assert [row[:2] for row in shown["proposals"]] == [
        row["segment"] for row in stored["proposals"]
    ]
    assert [row[3] for row in shown["events"]] == [
        pytest.approx(row["score"], rel=1e-5) for row in stored["events"]
    ]
    assert shown["curves"]["motion"] == stored["curves"]["motion"]


def test_a_page_shows_the_truth_and_its_recall(tmp_path, videos):
    table = tmp_path / "truth.csv"
    table.write_text(ANNOTATIONS)
    out = tmp_path / "found"
    assert propose(out, *videos, "--annotations", table) == 0
    first, second = data(out, "index-data")["videos"]
    assert data(out, "video-0")["truth"] == [[0.5, 2.5, "count", None]]
    assert second["recall"] is None
    # the share of the thresholds 0.5, 0.55 … 0.95 that the best proposal reaches
    best = max(
        (min(end, 2.5) - max(start, 0.5)) / (max(end, 2.5) - min(start, 0.5))
        for start, end, *_ in data(out, "video-0")["proposals"]
    )
    reached = sum(best >= 0.5 + 0.05 * step for step in range(10))
    assert first["recall"] == pytest.approx(reached / 10)


def test_a_page_lists_what_is_listed(tmp_path, videos):
    out = tmp_path / "found"
    assert propose(out, videos[0], "--top", 1) == 0
    assert len(data(out, "video-0")["events"]) == 1


def test_no_page_where_none_is_wanted(tmp_path, videos, capsys):
    assert (
        main(["propose", str(videos[0]), "--model", "none", "--out", str(tmp_path), "--no-page"])
        == 0
    )
    assert not (tmp_path / "index.html").exists()
    assert capsys.readouterr().out == f"{tmp_path}: proposals of 1 video\n"


def test_a_video_that_is_gone_stays_on_the_page(tmp_path, videos):
    out = tmp_path / "found"
    assert propose(out, *videos) == 0
    videos[0].unlink()
    assert propose(out, videos[1]) == 0
    first, second = data(out, "index-data")["videos"]
    assert (first["id"], first["rate"]) == ("first film", None)
    assert second["rate"] == 30


def test_a_page_has_pictures_and_says_what_makes_a_copy_that_plays(tmp_path):
    video = encode(tmp_path / "old.avi", 60, codec="mpeg4")
    out = tmp_path / "found"
    assert propose(out, video, "--no-copies") == 0
    assert len(data(out, "video-0")["thumbnails"]) > 3
    (entry,) = data(out, "index-data")["videos"]
    copy = out / "videos" / "old.mp4"
    assert f"actionspan report video --video {video} --out {copy}" in entry["note"]
    assert main(["report", "video", "--video", str(video), "--out", str(copy)]) == 0
    assert propose(out, video) == 0
    (entry,) = data(out, "index-data")["videos"]
    assert (entry["file"], entry["note"]) == ("videos/old.mp4", "")


def broken(*_: object) -> None:
    raise InputError("no encoder")


def here(work, items, **_: object):
    """Work in this process."""
    for number, item in enumerate(items):
        try:
            work(item)
            yield number, Outcome(None)
        except InputError as error:
            yield number, Outcome(None, str(error))


def test_a_video_that_browsers_do_not_play_is_copied(tmp_path, monkeypatch, capsys):
    video = encode(tmp_path / "old.avi", 60, codec="mpeg4")
    out = tmp_path / "found"
    copy = out / "videos" / "old.mp4"
    assert propose(out, video) == 0
    assert (data(out, "index-data")["videos"][0]["file"], why_not_playable(copy)) == (
        "videos/old.mp4",
        "",
    )
    made = copy.stat().st_mtime_ns
    assert propose(out, video) == 0
    assert copy.stat().st_mtime_ns == made, "it is made once"
    # a copy that cannot be made costs the page its picture, and the call nothing
    copy.unlink()
    monkeypatch.setattr("actionspan.propose.working.make_copy", broken)
    monkeypatch.setattr("actionspan.propose.working.work_apart", here)
    assert propose(out, video) == 0
    assert "old.avi: no encoder; the page cannot play it" in capsys.readouterr().err


@pytest.mark.full
def test_a_file_that_is_where_a_copy_belongs_is_never_overwritten(tmp_path):
    (tmp_path / "videos").mkdir()
    own = encode(tmp_path / "videos" / "old.mp4", 60, codec="mpeg4")
    before = own.read_bytes()
    assert propose(tmp_path, own) == 0
    assert own.read_bytes() == before
    assert "cannot play" in data(tmp_path, "index-data")["videos"][0]["note"]
    # nor a user's other file of that name
    (tmp_path / "videos" / "new.mp4").write_bytes(b"mine")
    assert propose(tmp_path, encode(tmp_path / "new.avi", 60, codec="mpeg4")) == 0
    assert (tmp_path / "videos" / "new.mp4").read_bytes() == b"mine"


def test_a_camera_whose_clock_is_ahead_gets_its_copy_once(tmp_path):
    video = encode(tmp_path / "old.avi", 60, codec="mpeg4")
    os.utime(video, (4e9, 4e9))
    out = tmp_path / "found"
    assert propose(out, video) == 0
    (entry,) = data(out, "index-data")["videos"]
    assert (entry["file"], entry["note"]) == ("videos/old.mp4", "")


@pytest.mark.full
def test_files_that_were_damaged_later_are_made_again(tmp_path, videos, capsys):
    """Each is cut in its turn; nothing is decoded while the video's own file is whole."""
    out, words = tmp_path / "found", (videos[0], "--model", "none", "--out", tmp_path / "found")
    assert main(["propose", *map(str, words)]) == 0
    files = sorted(path for path in out.rglob("*") if path.is_file())
    made = {path: path.read_bytes() for path in files}
    assert {path.suffix for path in files} == {".vtt", ".svg", ".jpg", ".json", ".csv", ".html"}
    for path in files:
        path.write_bytes(made[path][: len(made[path]) // 2])
        capsys.readouterr()
        assert main(["propose", *map(str, words)]) == 0
        assert {path: path.read_bytes() for path in files} == made
        assert ("1 done before" in capsys.readouterr().out) == (path.parent == out)
    # a digit in place of another leaves valid JSON
    stored = out / "videos" / "first film.json"
    content = json.loads(made[stored])
    content["proposals"][0]["score"] /= 2
    stored.write_text(json.dumps(content) + "\n")
    assert propose(out, videos[0]) == 0
    assert {path: path.read_bytes() for path in files} == made


def test_the_least_score_may_be_of_a_label():
    rows = [
        {"segment": [0, 1], "score": 0.5, "label": "walk"},
        {"segment": [2, 3], "score": 0.5, "label": "run"},
        {"segment": [4, 5], "score": 0.2},
    ]

    def kept(*words: str) -> list[float]:
        parser = ArgumentParser()
        add_arguments(parser)
        given = parser.parse_args(["v.mp4", *(f"--min-score={word}" for word in words)])
        return [row["segment"][0] for row in Shown(minimum=dict(given.min_score)).events(rows)]

    assert kept() == [0, 2, 4]
    assert kept("0.3") == [0, 2]
    assert kept("walk=0.6") == [2, 4]
    assert kept("0.6", "walk=0.4") == [0]
    assert kept("a=b=0.1", "0.6") == []
    # a proposal's score is no chance, so a label's bar is not for it
    assert Shown(minimum={"walk": 0.6}).proposals(rows) == rows
    assert Shown(minimum={"": 0.3}).proposals(rows) == rows[:2]


def test_a_least_score_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["propose", "v.mp4", "--min-score", "walk=high"])
    assert "walk=high: a score, or LABEL=SCORE" in capsys.readouterr().err


def test_a_model_that_was_learned_here_brings_its_thresholds(tmp_path):
    points = {"walk": [[0.4, 0.8, 0.5]]}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/learned.json").write_text(json.dumps({"thresholds": points}))
    rows = {"proposals": [], "events": [{"segment": [0, 1], "score": 0.5, "label": "walk"}]}
    folder = ResultFolder(tmp_path / "found", "digest")
    known = {"labelled": True, "curves": {}, "model": "digest", "source": {}, "shown": "x"}
    folder.put(Result(video_id="v", path="v.mp4", duration_seconds=5.0, **rows, **known))
    write_result_page(folder, Shown(), {}, {}, tmp_path / "mine/model.safetensors")
    assert data(tmp_path / "found", "index-data")["thresholds"] == points
    write_result_page(folder, Shown(), {}, {}, tmp_path / "other/model.safetensors")
    assert data(tmp_path / "found", "index-data")["thresholds"] == {}
