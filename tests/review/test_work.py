"""When the served page learns, without any video being looked at."""

import json
import math
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import pytest

from actionspan.errors import InputError, JobError
from actionspan.review import page as page_module
from actionspan.review import work as work_module
from actionspan.review.command import beside
from actionspan.review.footage import Encoded
from actionspan.review.stretches import read_stretches
from actionspan.review.work import ReviewWork
from review.conftest import DONE, encode_all, result, save
from video.numbered import encode as encode_film
from worlds import warm
from worlds.waiting import eventually


@pytest.fixture
def work(start):
    """Twelve videos that nobody has looked at."""
    return start({f"v{number}": () for number in range(12)})


@pytest.fixture
def seen(start, monkeypatch):
    """Three videos that were looked at; what `learn` is asked."""
    asked = []

    def learn(command, **_):
        asked.append([Path(word).stem for word in command[4 : command.index("--annotations")]])
        process = MagicMock()
        process.__enter__.return_value = Mock(returncode=0, communicate=lambda: ("", ""))
        return process

    monkeypatch.setattr(subprocess, "Popen", learn)
    work = start({"a": (), "b": (), "c": ()})
    vars(work)["asked"] = asked
    work._round(0)
    return work


def test_it_learns_from_the_first_video_and_then_from_a_quarter_more(work):
    assert not work._enough()
    save(work, "v0")
    assert work._enough()
    work._tried = {f"v{number}" for number in range(8)}
    for number in range(1, 9):
        save(work, f"v{number}")
        assert not work._enough()
    save(work, "v9")
    assert work._enough()


def test_a_video_that_was_changed_again_can_be_learned_from_when_asked(work):
    save(work, "v0")
    work._learned_from, work._tried = {"v0": 1}, {"v0"}
    assert work.status()["new"] == 0
    save(work, "v0", 1)
    assert work.status()["new"] == 1
    assert not work._enough()  # not by itself


def test_a_start_without_anything_is_a_page_without_videos(work, tmp_path):
    assert 'id="learn"' in work.page.read_text()
    assert work.status()["said"] == ""
    # only videos of the folder are played
    (tmp_path / "private.mp4").write_text("private")
    assert work.video("v0").name == "v0.mp4"
    for other in ("other", str(tmp_path / "private"), "../../private", "v" * 5000):
        assert work.video(other) is None


@pytest.mark.parametrize("copies", [True, False])
def test_a_video_that_browsers_do_not_play_is_copied_unless_told_not_to(
    start, tmp_path, monkeypatch, copies
):
    path = encode_film(tmp_path / "old.mp4", 30, codec="mpeg4")
    work, notes = start({"old": ()}, copies=copies), []
    (one,) = encode_all([path])
    found = result(one, unplayable="MPEG-4 ASP in AVI")
    monkeypatch.setattr(work, "_propose", lambda *given: found)
    monkeypatch.setattr(work, "_write_page", lambda: notes.append(work._copies.note(found)))
    work._look()
    assert (work.video("old") != path) == copies
    assert ("on the way" in notes[0]) == copies
    assert (notes[-1] == "") == copies


def test_what_was_learned_before_is_said_after_a_new_start(start, tmp_path):
    folder = tmp_path / "out/model"
    folder.mkdir(parents=True)
    (folder / "learned.json").write_text(json.dumps({"sentence": "Two videos."}))
    (folder / "learned_from.json").write_text('{"v0": 3}')
    again = start({"v0": ()})
    assert again.status()["said"] == "Two videos."
    assert again._learned_from == {"v0": 3}


def test_what_could_not_be_learned_is_said_and_not_tried_again_by_itself(work):
    save(work, "v0")
    work.videos["v0"].unlink()
    (work._encoded["v0"],) = encode_all([work.videos["v0"]])
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
    work, monkeypatch, capsys, due, pages
):
    written = []
    monkeypatch.setattr(work, "_write_page", lambda: written.append(len(work._results)))
    work._page.due = due
    work._look()
    assert len(written) == pages
    assert written[-1] == 12
    assert len(capsys.readouterr().err.splitlines()) <= 10


def test_a_deleted_video_ends_learning_for_no_other(seen):
    for name in seen.videos:
        save(seen, name)
    seen.videos["b"].unlink()
    seen._round(0)
    assert seen.asked == [["a", "c"]]
    assert "b" in seen.status()["broken"]
    assert seen.status()["said"] == ""
    assert "b" in seen._results  # what was found in it stays in the page


def test_without_a_corrected_video_that_is_there_nothing_is_learned(seen):
    save(seen, "b")
    seen.videos["b"].unlink()
    seen._round(0)
    assert seen.asked == []
    assert seen.status()["said"] == "Not learned: the corrected videos cannot be read"


def test_an_error_of_one_round_ends_no_later_one(seen, monkeypatch, capsys):
    failing = Mock(side_effect=JobError("disk: the disk is full"))
    monkeypatch.setattr(work_module, "_RETRY", 0.01)
    save(seen, "a")
    with monkeypatch.context() as full:
        full.setattr(seen, "_write_page", failing)
        with seen:
            eventually(lambda: seen.status()["said"].startswith("Stopped: disk: the disk is full"))
            full.undo()
            eventually(lambda: seen.status()["said"] == "" and seen._page.version > 2)
            assert seen._thread.is_alive()
    assert "Traceback" not in capsys.readouterr().err


def test_a_file_in_the_place_of_the_corrected_one_is_not_learned_from(seen, start):
    rows = [["a", "1.000", "2.000", "wave", "added"]]
    save(seen, "a", rows=rows)
    save(seen, "b")
    assert seen.status()["new"] == 2
    seen.videos["a"].write_text("another film")
    seen._round(0)
    assert seen.asked == [["b"]]
    assert "not the file that was corrected" in seen.status()["broken"]["a"]
    assert "wave" in (seen.folder / "corrections.csv").read_text()  # nothing of it is lost
    # so it is after another start, until somebody looks at it and saves it
    with seen:
        pass
    again = start({"a": (), "b": (), "c": ()})
    again._round(0)
    assert again.corrections.done() == ["b"]
    save(again, "a", 1, rows=rows)
    assert again.corrections.done() == ["a", "b"]
    assert again.status()["broken"] == {}


def test_judged_events_are_learned_from_beside_a_video_that_is_done(seen, start):
    rejected = [["b", "1.000", "2.000", "", "rejected"]]
    save(seen, "b", state={"segments": [], "done": False}, rows=rejected)
    save(seen, "c", state={"segments": [], "done": False}, rows=[])
    assert seen.status()["new"] == 0
    seen._round(0)
    assert seen.asked == [], "nothing is tried on single events alone"
    save(seen, "a")
    assert seen.status()["new"] == 2
    seen._round(0)
    assert seen.asked == [["a", "b"]]
    assert read_stretches(seen.folder / "model/stretches.json") == {"b": [(0, 60, 1, [])]}
    assert seen.status()["new"] == 0
    # an event more is no reason to learn by itself, but can be asked for
    save(seen, "b", 1, {"segments": [], "done": False}, rejected * 2)
    seen._round(0)
    assert (seen.status()["new"], len(seen.asked)) == (1, 1)
    with seen:
        pass
    again = start({"a": (), "b": (), "c": ()})
    assert not again._enough()
    # Done, it is learned from as a whole
    save(again, "b", 2, rows=rejected)
    assert again._enough()
    again._round(0)
    assert seen.asked[-1] == ["a", "b"]
    assert read_stretches(seen.folder / "model/stretches.json") == {}


def test_proposals_have_the_size_and_time_of_the_file_that_was_encoded(tmp_path, monkeypatch):
    """Another file may have come into its place meanwhile."""
    path = tmp_path / "v0.mp4"
    path.write_text("first")
    work = ReviewWork(tmp_path / "out", {"v0": path})
    (one,) = encode_all([path])
    path.write_text("the second")
    monkeypatch.setattr(Encoded, "read", lambda _: ({}, {}))
    monkeypatch.setattr(work_module, "proposed_of", lambda *_: None)
    given = []
    monkeypatch.setattr(work_module, "result_of", lambda *words, **_: given.append(words))
    work._propose(None, one, SimpleNamespace(source={"bytes": 1}))
    ((_, _, _, source, before),) = given
    assert source["bytes"] == 5
    assert before is None  # pictures of yet another file


def test_a_copy_of_another_film_is_not_played_and_not_deleted(work):
    """It may be a person's own file, where the videos lie in a folder `videos` of --out."""
    path, copy = work.videos["v0"], work.folder / "videos/v0.mp4"
    copy.parent.mkdir()
    copy.write_text("old")
    os.utime(copy, (0, 0))
    assert work.video("v0") == path
    os.utime(copy, ns=(path.stat().st_mtime_ns,) * 2)
    assert work.video("v0") == copy
    assert copy.read_text() == "old"


def test_a_folder_is_open_once(work):
    second = "import sys; from pathlib import Path; from actionspan.review.work import ReviewWork\n"
    second += f"ReviewWork(Path({str(work.folder)!r}), {{}})"
    done = subprocess.run([warm.python(), "-c", second], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(f"already open at (pid {os.getpid()})")
    with pytest.raises(InputError, match="out: already open at"):
        ReviewWork(work.folder, work.videos, address="http://127.0.0.1:1/")
    with work:
        pass
    again = ReviewWork(work.folder, work.videos, address="http://127.0.0.1:2/")
    with pytest.raises(InputError, match=r"already open at http://127\.0\.0\.1:2/ \(pid \d+\)"):
        ReviewWork(work.folder, work.videos)
    assert again.corrections.all() == {}


def test_on_a_full_disk_it_starts_with_the_page_that_is_there(work, start, monkeypatch, capsys):
    save(work, "v0")
    work._held.close()
    full = Mock(side_effect=JobError("corrections.csv: the disk is full"))
    monkeypatch.setattr(page_module, "write_page", full)
    monkeypatch.setattr("actionspan.review.corrections.write_text", full)
    again = start(dict.fromkeys(work.videos, ()))
    assert again.corrections.all()["v0"]["state"] == DONE
    assert "the disk is full" in again.status()["said"]
    assert "corrections.csv: the disk is full" in capsys.readouterr().err
