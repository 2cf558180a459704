"""When the served page learns, without any video being looked at."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from actionspan.propose.results import Result, Shown
from actionspan.review.command import beside
from actionspan.review.work import ReviewWork
from video.numbered import encode as encode_film

STATE = {"segments": [], "done": True}


@pytest.fixture
def work(tmp_path):
    videos = {f"v{number}": tmp_path / f"v{number}.mp4" for number in range(12)}
    return ReviewWork(tmp_path / "out", videos, threads=1)


def finish(work, *numbers, version=0):
    for number in numbers:
        work.corrections.save(f"v{number}", version, STATE, [])


def test_it_learns_from_the_first_video_and_then_from_a_quarter_more(work):
    assert not work._enough()
    finish(work, 0)
    assert work._enough()
    finish(work, *range(1, 8))
    work._tried = {f"v{number}" for number in range(8)}
    assert not work._enough()
    finish(work, 8)
    assert not work._enough()
    finish(work, 9)
    assert work._enough()


def test_a_video_that_was_changed_again_can_be_learned_from_when_asked(work):
    finish(work, 0)
    work._learned_from, work._tried = {"v0": 1}, {"v0"}
    assert work.status()["new"] == 0
    finish(work, 0, version=1)
    assert work.status()["new"] == 1
    assert not work._enough()  # not by itself


def test_a_start_without_anything_is_a_page_without_videos(work):
    text = work.page.read_text()
    assert 'id="learn"' in text
    assert work.status()["said"] == ""
    assert work.video("v0").name == "v0.mp4"
    assert work.video("other") is None


@pytest.mark.parametrize("copies", [True, False])
def test_a_video_that_browsers_do_not_play_is_copied_unless_told_not_to(
    tmp_path, monkeypatch, copies
):
    path = encode_film(tmp_path / "old.avi", 30, codec="mpeg4")
    work = ReviewWork(tmp_path / "out", {"old": path}, threads=1, copies=copies)
    encoded = SimpleNamespace(video=SimpleNamespace(error="", video_id="old"))
    monkeypatch.setattr("actionspan.review.work.encode", lambda *given: encoded)
    notes = []

    def written():
        notes.append(work._page_video(result, Shown()).note)

    result = Result(
        video_id="old",
        path=str(path),
        duration_seconds=1.2,
        labelled=False,
        proposals=[],
        events=[],
        curves={},
        model="",
        source={},
        unplayable="MPEG-4 ASP in AVI",
    )
    monkeypatch.setattr(work, "_propose", lambda *given: result)
    monkeypatch.setattr(work, "_write_page", written)
    work._look()
    assert (work.video("old") != path) == copies
    assert "on the way" in notes[0] if copies else "on the way" not in notes[0]
    assert (notes[-1] == "") == copies


def test_what_was_learned_before_is_said_after_a_new_start(tmp_path):
    folder = tmp_path / "out"
    (folder / "model").mkdir(parents=True)
    (folder / "model/learned.json").write_text(json.dumps({"sentence": "Two videos."}))
    (folder / "model/learned_from.json").write_text('{"v0": 3}')
    again = ReviewWork(folder, {"v0": tmp_path / "v0.mp4"}, threads=1)
    assert again.status()["said"] == "Two videos."
    assert again._learned_from == {"v0": 3}


def test_what_could_not_be_learned_is_said_and_not_tried_again_by_itself(work, monkeypatch):
    monkeypatch.setattr(work, "_propose", lambda *given: None)
    monkeypatch.setattr(work, "_write_page", lambda: None)
    finish(work, 0)  # the file of the video is not there
    work._encoded["v0"] = SimpleNamespace(video=SimpleNamespace(video_id="v0"))
    work._results["v0"] = None
    work._learn()
    assert work.status()["said"].startswith("Not learned: actionspan learn:")
    assert not work._enough()
    assert work.status()["new"] == 1  # it can be asked for


@pytest.mark.parametrize(
    ("word", "first", "folder"),
    [
        ("my.videos", "my.videos/a.mp4", "my.videos-review"),
        ("film.one.mp4", "film.one.mp4", "film.one-review"),
        ("*.mp4", "a.mp4", "a-review"),
    ],
)
def test_all_that_is_made_lies_beside_what_is_reviewed(tmp_path, monkeypatch, word, first, folder):
    (tmp_path / "my.videos").mkdir()
    monkeypatch.chdir(tmp_path)
    assert beside(Path(word), Path(first)) == tmp_path / folder


@pytest.mark.parametrize(("due", "pages"), [(0.0, 13), (math.inf, 1)])
def test_the_page_of_many_videos_is_written_when_it_is_due_and_at_the_end(
    work, monkeypatch, due, pages
):
    def encode(path, folder, how):
        return SimpleNamespace(video=SimpleNamespace(error="", video_id=path.stem))

    written = []
    monkeypatch.setattr("actionspan.review.work.encode", encode)
    monkeypatch.setattr(work, "_propose", lambda *given: SimpleNamespace(unplayable=""))
    monkeypatch.setattr(work, "_write_page", lambda: written.append(len(work._results)))
    work._page_due = due
    work._look()
    assert len(written) == pages
    assert written[-1] == 12
