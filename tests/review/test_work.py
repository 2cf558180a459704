"""When the served page learns, without any video being looked at."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from actionspan.dataset.tables import Video
from actionspan.errors import InputError, JobError
from actionspan.propose.results import Result, Shown, source_of
from actionspan.review.command import beside
from actionspan.review.footage import Encoded
from actionspan.review.work import ReviewWork
from video.numbered import encode as encode_film

STATE = {"segments": [], "done": True}


def encode_all(paths, folder, how):
    """Encode nothing; the digest of a video is its text."""
    for path in paths:
        error = "" if path.exists() else "no such file"
        sha256 = path.read_bytes().hex() if path.exists() else ""
        facts = {"video_id": path.stem, "path": path, "error": error, "sha256": sha256}
        facts |= {"fps": 25.0, "frames": 50, "duration_seconds": 2.0, "width": 8, "height": 8}
        source = source_of(path) if path.exists() else {}
        yield Encoded(video=Video(**facts), shard=path, source=source)


@pytest.fixture
def work(tmp_path):
    videos = {f"v{number}": tmp_path / f"v{number}.mp4" for number in range(12)}
    return ReviewWork(tmp_path / "out", videos)


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
    work = ReviewWork(tmp_path / "out", {"old": path}, copies=copies)
    monkeypatch.setattr("actionspan.review.work.encode_all", encode_all)
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
    again = ReviewWork(folder, {"v0": tmp_path / "v0.mp4"})
    assert again.status()["said"] == "Two videos."
    assert again._learned_from == {"v0": 3}


def test_what_could_not_be_learned_is_said_and_not_tried_again_by_itself(work, monkeypatch):
    monkeypatch.setattr(work, "_propose", lambda *given: None)
    monkeypatch.setattr(work, "_write_page", lambda: None)
    finish(work, 0)
    (work._encoded["v0"],) = encode_all([work.videos["v0"]], None, None)  # it is not there
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
    written = []
    monkeypatch.setattr("actionspan.review.work.encode_all", encode_all)
    for path in work.videos.values():
        path.touch()
    monkeypatch.setattr(work, "_propose", lambda *given: SimpleNamespace(unplayable=""))
    monkeypatch.setattr(work, "_write_page", lambda: written.append(len(work._results)))
    work._page_due = due
    work._look()
    assert len(written) == pages
    assert written[-1] == 12


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Three videos that were looked at, of which nothing is encoded; what `learn` is asked."""
    asked = []

    class Learned:
        returncode, args = 0, None

        def __init__(self, command, **_):
            asked.append(command[4 : command.index("--annotations")])

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def communicate(self):
            return "", ""

        def terminate(self):
            pass

    monkeypatch.setattr("actionspan.review.work.encode_all", encode_all)
    monkeypatch.setattr("actionspan.review.work.subprocess.Popen", Learned)
    videos = {}
    for name in ("a", "b", "c"):
        videos[name] = tmp_path / f"{name}.mp4"
        videos[name].write_text(name)
    work = ReviewWork(tmp_path / "out", videos)
    vars(work)["asked"] = asked
    monkeypatch.setattr(work, "_propose", proposed)
    work._round(0)
    return work


def proposed(bundle, one, before):
    return Result(
        video_id=one.video.video_id,
        path=str(one.video.path),
        duration_seconds=2.0,
        labelled=False,
        proposals=[],
        events=[],
        curves={},
        model=str(len(one.video.sha256)),
        source=one.source,
    )


def test_a_deleted_video_ends_learning_for_no_other(seen):
    for name in seen.videos:
        seen.corrections.save(name, 0, STATE, [[name, "", "", "", "none"]])
    seen.videos["b"].unlink()
    seen._round(0)
    assert seen.asked == [[str(seen.videos["a"]), str(seen.videos["c"])]]
    assert "b" in seen.status()["broken"]
    assert seen.status()["said"] == ""
    assert "b" in seen._results  # what was found in it stays in the page


def test_without_a_corrected_video_that_is_there_nothing_is_learned(seen):
    seen.corrections.save("b", 0, STATE, [["b", "", "", "", "none"]])
    seen.videos["b"].unlink()
    seen._round(0)
    assert seen.asked == []
    assert seen.status()["said"] == "Not learned: the corrected videos cannot be read"


def test_an_error_of_one_round_ends_no_later_one(seen, monkeypatch, capsys):
    def failing():
        raise JobError("disk: the disk is full")

    monkeypatch.setattr("actionspan.review.work._RETRY", 0.01)
    seen.corrections.save("a", 0, STATE, [["a", "", "", "", "none"]])
    with monkeypatch.context() as full:
        full.setattr(seen, "_write_page", failing)
        with seen:
            until(lambda: seen.status()["said"].startswith("Stopped: disk: the disk is full"))
            full.undo()
            until(lambda: seen.status()["said"] == "" and seen._version > 2)
            assert seen._thread.is_alive()
    assert "Traceback" not in capsys.readouterr().err


def until(true):
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def test_a_file_in_the_place_of_the_corrected_one_is_not_learned_from(seen):
    rows = [["a", "1.000", "2.000", "wave", "added"]]
    seen.corrections.save("a", 0, STATE, rows)
    seen.corrections.save("b", 0, STATE, [["b", "", "", "", "none"]])
    assert seen._not_learned() == ["a", "b"]
    seen.videos["a"].write_text("another film")
    seen._round(0)
    assert seen.asked == [[str(seen.videos["b"])]]
    assert "not the file that was corrected" in seen.status()["broken"]["a"]
    assert "wave" in (seen.folder / "corrections.csv").read_text()  # nothing of it is lost
    # so it is after another start, until somebody looks at it and saves it
    with seen:
        pass
    again = ReviewWork(seen.folder, seen.videos)
    again._propose = proposed
    again._round(0)
    assert again.corrections.done() == ["b"]
    again.corrections.save("a", 1, STATE, rows)
    assert again.corrections.done() == ["a", "b"]
    assert again.status()["broken"] == {}


def test_proposals_have_the_size_and_time_of_the_file_that_was_encoded(work, monkeypatch):
    """Another file may have come into its place meanwhile."""
    path = work.videos["v0"]
    path.write_text("first")
    (one,) = encode_all([path], None, None)
    path.write_text("the second")
    monkeypatch.setattr(Encoded, "read", lambda _: ({}, {}))
    monkeypatch.setattr("actionspan.review.work.proposed_of", lambda *_: None)
    given = []
    monkeypatch.setattr("actionspan.review.work.result_of", lambda *words: given.append(words))
    work._propose(None, one, SimpleNamespace(source={"bytes": 1}))
    ((_, _, _, source, before),) = given
    assert source["bytes"] == 5
    assert before is None  # pictures of yet another file


def test_a_copy_of_another_film_is_not_played_and_not_deleted(work):
    """It may be a person's own file, where the videos lie in a folder `videos` of --out."""
    path, copy = work.videos["v0"], work.folder / "videos/v0.mp4"
    path.write_text("new")
    copy.parent.mkdir()
    copy.write_text("old")
    os.utime(copy, (0, 0))
    assert work.video("v0") == path
    os.utime(copy, ns=(path.stat().st_mtime_ns,) * 2)
    assert work.video("v0") == copy
    assert copy.read_text() == "old"


def test_only_videos_of_the_folder_are_played(work, tmp_path):
    (tmp_path / "private.mp4").write_text("private")
    assert work.video(str(tmp_path / "private")) is None
    assert work.video("../../private") is None
    assert work.video("v" * 5000) is None


def test_a_folder_is_open_once(work, tmp_path):
    second = "import sys; from pathlib import Path; from actionspan.review.work import ReviewWork\n"
    second += f"ReviewWork(Path({str(work.folder)!r}), {{}})"
    done = subprocess.run([sys.executable, "-c", second], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(f"already open at (pid {os.getpid()})")
    with pytest.raises(InputError, match="out: already open at"):
        ReviewWork(work.folder, work.videos, address="http://127.0.0.1:1/")
    with work:
        pass
    again = ReviewWork(work.folder, work.videos, address="http://127.0.0.1:2/")
    with pytest.raises(InputError, match=r"already open at http://127\.0\.0\.1:2/ \(pid \d+\)"):
        ReviewWork(work.folder, work.videos)
    assert again.corrections.all() == {}


def test_on_a_full_disk_it_starts_with_the_page_that_is_there(work, monkeypatch, capsys):
    finish(work, 0)
    with work:
        pass

    def full(*_):
        raise JobError("corrections.csv: the disk is full")

    monkeypatch.setattr("actionspan.review.work.write_page", full)
    monkeypatch.setattr("actionspan.review.corrections.write_text", full)
    again = ReviewWork(work.folder, work.videos)
    assert again.corrections.all()["v0"]["state"] == STATE
    assert "the disk is full" in again.status()["said"]
    assert "corrections.csv: the disk is full" in capsys.readouterr().err


def test_twenty_videos_print_few_lines(tmp_path, monkeypatch, capsys):
    videos = {f"v{number}": tmp_path / f"v{number}.mp4" for number in range(40)}
    monkeypatch.setattr("actionspan.review.work.encode_all", encode_all)
    work = ReviewWork(tmp_path / "out", videos)
    monkeypatch.setattr(work, "_propose", proposed)
    work._look()
    assert len(capsys.readouterr().err.splitlines()) <= 10
