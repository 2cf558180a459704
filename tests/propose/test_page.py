"""`actionspan propose` writes a page of all that it found."""

import json
import os
import shutil
from pathlib import Path

import pytest

from actionspan.errors import InputError
from actionspan.propose import working
from actionspan.propose.page import write_result_page
from actionspan.propose.result_folder import ResultFolder
from actionspan.propose.results import Result, Shown
from actionspan.video.playable import playback_fault
from propose.conftest import data, propose, propose_here
from video.numbered import encode

NONE = ("--model", "none", "--quiet")


@pytest.fixture(scope="module")
def found(films, tmp_path_factory) -> Path:
    """A folder with the page of a film, and of another by a later call from elsewhere."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(films[0].parent, folder / "my films")
    table = folder / "truth.csv"
    table.write_text("video,start,end,label\nfirst film,0.5,2.5,count\n")
    with propose_here(), pytest.MonkeyPatch.context() as patch:
        propose(folder / "found", folder / "my films/first film.mp4", *NONE)
        assert [video["id"] for video in data(folder / "found", "index-data")["videos"]] == [
            "first film"
        ]
        patch.chdir(folder / "my films")
        propose(folder / "found", "second.mp4", "first film.mp4", *NONE, "--annotations", table)
    return folder / "found"


def test_a_page_shows_all_videos_of_the_folder(found):
    index = data(found, "index-data")
    assert index["title"] == "found"
    first, second = index["videos"]
    assert (first["file"], first["rate"]) == ("../my%20films/first%20film.mp4", 25)
    assert (second["file"], second["rate"]) == ("../my%20films/second.mp4", 30)
    stored = json.loads((found / "videos/first film.json").read_text())
    shown = data(found, "video-0")
    segments = [row["segment"] for row in stored["proposals"]]
    assert [row[:2] for row in shown["proposals"]] == segments
    chances = [row["score"] for row in stored["events"]]
    assert [row[3] for row in shown["events"]] == pytest.approx(chances, rel=1e-5)
    assert shown["curves"]["motion"] == stored["curves"]["motion"]


def test_a_page_shows_the_truth_and_its_recall(found):
    first, second = data(found, "index-data")["videos"]
    assert data(found, "video-0")["truth"] == [[0.5, 2.5, "count", None]]
    assert (second["recall"], second["truths"]) == (None, 0)
    # the share of the thresholds 0.5, 0.55 … 0.95 that the best proposal reaches
    best = max(
        (min(end, 2.5) - max(start, 0.5)) / (max(end, 2.5) - min(start, 0.5))
        for start, end, *_ in data(found, "video-0")["proposals"]
    )
    reached = sum(best >= 0.5 + 0.05 * step for step in range(10))
    assert first["recall"] == pytest.approx(reached / 10)


def test_a_page_lists_what_is_listed_and_keeps_a_video_that_is_gone(here, films, tmp_path):
    gone, out = Path(shutil.copy(films[2], tmp_path)), tmp_path / "found"
    here(out, gone, *NONE)
    gone.unlink()
    here(out, films[1], *NONE, "--top", 1)
    second, third = data(out, "index-data")["videos"]
    assert (second["rate"], second["events"]) == (30, 1)
    assert (third["id"], third["rate"]) == ("third", None)


def test_a_video_that_browsers_do_not_play_is_copied_once(here, tmp_path, monkeypatch):
    video = encode(tmp_path / "old.avi", 60, codec="mpeg4")
    os.utime(video, (4e9, 4e9))  # a camera's clock may be ahead
    out = tmp_path / "found"
    copy = out / "videos" / "old.mp4"
    here(out, video, *NONE, "--no-copies")
    assert len(data(out, "video-0")["thumbnails"]) > 3
    (entry,) = data(out, "index-data")["videos"]
    assert f"actionspan report video --video {video} --out {copy}" in entry["note"]
    here(out, video, *NONE)
    (entry,) = data(out, "index-data")["videos"]
    assert (entry["file"], entry["note"]) == ("videos/old.mp4", "")
    assert playback_fault(copy) == ""
    inode = copy.stat().st_ino
    here(out, video, *NONE)
    assert copy.stat().st_ino == inode, "it is made once"

    def broken(*_: object) -> None:
        raise InputError("no encoder")

    # a copy that cannot be made costs the page its picture, and the call nothing
    copy.unlink()
    monkeypatch.setattr(working, "make_copy", broken)
    call = here(out, video, *NONE)
    assert call.status == 0
    assert call.errors == [f"{video}: no encoder; the page cannot play it"]


def test_a_file_that_is_where_a_copy_belongs_is_never_overwritten(here, tmp_path):
    (tmp_path / "videos").mkdir()
    own = encode(tmp_path / "videos" / "old.mp4", 60, codec="mpeg4")
    before = own.read_bytes()
    here(tmp_path, own, *NONE)
    assert own.read_bytes() == before
    assert "cannot play" in data(tmp_path, "index-data")["videos"][0]["note"]
    # nor a user's other file of that name
    (tmp_path / "videos" / "new.mp4").write_bytes(b"mine")
    here(tmp_path, encode(tmp_path / "new.avi", 60, codec="mpeg4"), *NONE)
    assert (tmp_path / "videos" / "new.mp4").read_bytes() == b"mine"


def test_a_model_that_was_learned_here_brings_its_thresholds(tmp_path):
    points = {"walk": [[0.4, 0.8, 0.5]]}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/learned.json").write_text(json.dumps({"thresholds": points}))
    rows = {"proposals": [], "events": [{"segment": [0, 1], "score": 0.5, "label": "walk"}]}
    folder = ResultFolder(tmp_path / "found", "digest")
    known = {"labelled": True, "curves": {}, "model": "digest", "source": {}, "shown": "x"}
    folder.put(Result(video_id="v", path="v.mp4", duration_seconds=5.0, **rows, **known))
    for name, expected in (("mine", points), ("other", {})):
        write_result_page(folder, Shown(), {}, {}, tmp_path / name / "model.safetensors")
        assert data(folder.folder, "index-data")["thresholds"] == expected
