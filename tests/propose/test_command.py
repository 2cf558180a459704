"""`actionspan propose` on small films without a model: its files, its lines, and later calls."""

import json
import os
import shutil
import signal
import subprocess
import sys
from argparse import ArgumentParser
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import pytest

from actionspan import load_model
from actionspan.cli import main
from actionspan.errors import InputError, JobError
from actionspan.jobs import shards
from actionspan.jobs.apart import Outcome
from actionspan.propose import MotionProposer, working
from actionspan.propose.command import add_arguments, named_videos
from actionspan.propose.result_folder import ResultFolder
from actionspan.propose.results import Shown
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import snippets
from propose.conftest import propose, results
from tiers import first_tier
from video.numbered import encode, mostly_still

NONE = ("--model", "none")


@pytest.fixture
def copies(films, tmp_path) -> list[Path]:
    """The films, for tests that change them."""
    shutil.copytree(films[0].parent, tmp_path / "my films")
    return [tmp_path / "my films" / path.name for path in films]


def test_one_video_gives_its_files_and_a_line(here, films, tmp_path):
    path, out = films[0], tmp_path / "out"
    call = here(out, path, *NONE)
    assert (call.status, call.errors) == (0, [])
    assert call.said == [f"{out}: proposals of 1 video; open {out}/index.html"]
    tables = ("proposals.json", "proposals.csv", "events.json", "events.csv")
    beside = (f"{path.stem}{suffix}" for suffix in (".vtt", ".svg", ".jpg"))
    assert {file.name for file in out.iterdir()} == {"index.html", "videos", *tables, *beside}
    rows = results(out)[path.stem]
    in_python = load_model("none").propose(path)
    assert rows
    assert [row["segment"] for row in rows] == [
        [round(time, 3) for time in row["segment"]] for row in in_python.rows()
    ]
    assert all(0 <= row["segment"][0] < row["segment"][1] <= 4 + 1e-6 for row in rows)
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert in_python.probabilities is None
    assert in_python.motion.shape == (100,)
    picture = out / f"{path.stem}.svg"
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert "motion" in picture.read_text()


def test_several_videos_at_once_give_the_same_files(films, tmp_path):
    """In processes; the first is no video, so that one is broken before the model is there."""
    broken = tmp_path / "a broken.mp4"
    broken.write_bytes(b"no video")
    folders = {}
    for jobs in (1, 3):
        call = propose(tmp_path / f"{jobs}", broken, *films, *NONE, "--jobs", jobs, "--json", "-q")
        assert call.status == 1
        assert len(call.errors) == 1
        assert str(broken) in call.errors[0]
        assert [json.loads(line)["video"] for line in call.said] == list(map(str, films))
        folders[jobs] = {
            path.name: path.read_bytes()
            for path in call.out.iterdir()
            if path.suffix in (".json", ".csv", ".vtt", ".svg")
        }
    assert len(folders[1]) == 4 + 2 * len(films)
    assert folders[1] == folders[3]


def test_a_second_call_does_only_what_is_new(here, copies, tmp_path):
    first, second, third = copies
    out = tmp_path / "out"
    assert here(out, first, second, *NONE).status == 0
    picture = out / f"{first.stem}.svg"
    written = picture.stat().st_mtime_ns
    call = here(out, second, third, *NONE)
    assert call.every_error[0].startswith(third.name)
    assert not any(second.name in line for line in call.every_error)
    assert "proposals of 2 videos, 1 done before, 3 in the folder; open" in call.said[0]
    assert list(results(out)) == sorted(path.stem for path in copies)
    assert picture.stat().st_mtime_ns == written
    # fewer events need no network either
    assert "3 done before" in here(out, *copies, *NONE, "--top", 1).said[0]
    assert {len(rows) for rows in results(out, "events").values()} == {1}
    assert (out / f"{first.stem}.vtt").read_text().count("-->") == 1
    # a video that was replaced is another one, and --overwrite does them all
    shutil.copy(third, first)
    assert "done before" not in here(out, first, *NONE).said[0]
    assert results(out)[first.stem] == results(out)[third.stem]
    assert "done before" not in here(out, second, third, "--overwrite", *NONE).said[0]


def test_files_that_were_damaged_later_are_made_again(here, films, tmp_path):
    """Each is cut in its turn; nothing is decoded while the video's own file is whole."""
    out, words = tmp_path / "found", (films[2], *NONE)
    here(out, *words)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    made = {path: path.read_bytes() for path in files}
    assert {path.suffix for path in files} == {".vtt", ".svg", ".jpg", ".json", ".csv", ".html"}
    for path in files:
        path.write_bytes(made[path][: len(made[path]) // 2])
        call = here(out, *words)
        assert {path: path.read_bytes() for path in files} == made
        assert ("1 done before" in call.said[0]) == (path.parent == out)
    # a digit in place of another leaves valid JSON
    stored = out / "videos" / f"{films[2].stem}.json"
    content = json.loads(made[stored])
    content["proposals"][0]["score"] /= 2
    for damage in (json.dumps(content) + "\n", "", "{", "[]", '{"video_id": 3}'):
        stored.write_text(damage)
        assert ResultFolder(out, "any").finished(films[2]) is None
    here(out, *words)
    assert {path: path.read_bytes() for path in files} == made


def test_a_folder_holds_the_proposals_of_one_model(here, films, tmp_path):
    first, second = films[1:]
    out = tmp_path / "out"
    here(out, first, *NONE)
    before = results(out)
    call = here(out, second, "--model", "demo")
    assert call.status == 2
    wrong = f"--out {out}: holds proposals of another model (1 video)"
    advice = "choose another folder, or --overwrite to replace them"
    assert call.errors[-1] == f"actionspan propose: {wrong}: {advice}"
    assert results(out) == before
    assert here(out, second, "--model", "demo", "--overwrite").status == 0
    assert list(results(out)) == [second.stem]
    assert not (out / f"{first.stem}.svg").exists()


@pytest.mark.full
def test_a_least_score_leaves_the_others_out(here, films, tmp_path):
    words = (films[0], *NONE)
    here(tmp_path, *words)
    (rows,) = results(tmp_path).values()
    bar = rows[len(rows) // 2]["score"]
    call = here(tmp_path, *words, "--min-score", bar)
    kept = [row for row in rows if row["score"] >= bar]
    assert 0 < len(kept) < len(rows)
    assert list(results(tmp_path).values()) == [kept]
    assert "no event" not in call.said[0]
    call = here(tmp_path, *words, "--min-score", 1000)
    assert "proposals of 1 video, 1 done before; open" in call.said[0]  # ranks stay


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


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"shortest": 1, "longest": 4}, [0, 2]),
        ({"shortest": 1.5}, [2, 7]),
        ({"between": (6, 7)}, []),  # a touch is no overlap
        ({"between": (5, 8)}, [2, 7]),
    ],
)
def test_a_list_may_be_of_a_length_and_of_a_part_of_the_video(limits, kept):
    rows = [{"segment": list(each), "score": 0.5} for each in ((0, 1), (2, 6), (7, 19))]
    for listed in (Shown(**limits).events(rows), Shown(**limits).proposals(rows)):
        assert [row["segment"][0] for row in listed] == kept


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--shortest 4 --longest 3", "--shortest 4: must be at most --longest"),
        ("--between 7 7", "--between 7: must be before its end"),
        ("--longest inf", "inf: seconds, 0 or more"),
        ("--between -1 3", "-1: seconds, 0 or more"),
        ("--min-score walk=high", "walk=high: a score, or LABEL=SCORE"),
    ],
)
def test_limits_that_leave_nothing_are_one_line(words, line, capsys):
    try:
        status = main(["propose", "v.mp4", *words.split()])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(("video", "is_said"), [(mostly_still, True), (encode, False)])
def test_the_share_that_is_still_is_said(here, tmp_path, video, is_said):
    path = tmp_path / "v.mp4"
    video(path) if is_said else video(path, 60)
    flags = [snippet.still for snippet in snippets(path, FrameSettings(mover_side=0))]
    share = round(sum(flags) / len(flags), 3)
    call = here(tmp_path / "out", path, *NONE, "--no-page", "--json")
    assert not (tmp_path / "out/index.html").exists()
    assert json.loads(call.said[0])["still"] == share
    assert (f"{path}: still for {share:.0%} of its time" in call.errors) == is_said
    assert (share > 0.2) == is_said


def test_a_picture_that_stands_still_is_at_rest(tmp_path):
    """A screen recording or a web-cam sends no frame while nothing changes."""
    path = tmp_path / "held.mp4"
    stamps = [40 * number + 4000 * (number >= 100) for number in range(200)]
    encode(path, 200, stamps=stamps, tick=Fraction(1, 1000))
    proposed = MotionProposer().propose(path)
    middles = (np.arange(100) + 0.5) * proposed.duration_seconds / 100
    inside = (middles > 4.4) & (middles < 7.4)
    assert inside.sum() > 20
    assert (proposed.motion[inside] == 0).all()
    assert np.median(proposed.motion[~inside]) > 0.01
    best = proposed.segments[0]
    assert best[1] <= 4.4 or best[0] >= 7.4


def test_words_name_videos_folders_and_patterns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("b.mp4", "a.mkv", "notes.txt", "sub/c.mp4", "d1.mp4", "other/b.avi"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    named = [Path(word) for word in (".", "sub/*.mp4", "gone.mp4", "other/b.avi")]
    videos, passed = named_videos(named)
    assert list(map(str, videos.values())) == ["a.mkv", "b.mp4", "d1.mp4", "sub/c.mp4"]
    assert list(videos) == ["a", "b", "d1", "c"]
    assert passed == 2
    assert capsys.readouterr().err.splitlines() == [
        "gone.mp4: no such file",
        "other/b.avi: b.mp4 has the same name; rename one",
    ]
    assert list(named_videos([Path("[bd]*.mp4")])[0]) == ["b", "d1"]
    Path("none").mkdir()
    for word, message in (("*.gif", "no file matches"), ("none", "no video here: no file ends")):
        with pytest.raises(InputError, match=message):
            named_videos([Path(word)])


def test_what_cannot_be_asked_for_is_one_line(here, films, tmp_path):
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "broken.mp4").write_bytes(films[0].read_bytes()[:3000])
    out, film, notes = tmp_path / "out", films[0], tmp_path / "notes"
    not_a_folder = "not a folder to write to: not a directory"
    for folder, words, line in (
        (out, (film, "--top", 0), "--top 0: at least 1"),
        (out, (film, "--threads", 0), "--threads 0: at least 1"),
        (out, (film, "--threads", -1), "--threads -1: at least 1"),
        (out, (tmp_path / "*.mp3",), f"{tmp_path / '*.mp3'}: no file matches"),
        (out, (film, "--annotations", film), f"{film}: "),
        (out, (tmp_path / "broken.mp4",), "no proposals: the video could not be read"),
        (notes, (film,), f"--out {notes}: {not_a_folder}"),
        (notes / "out", (film,), f"--out {notes / 'out'}: {not_a_folder}"),
    ):
        call = here(folder, *words, *NONE)
        assert call.status == 2
        assert call.errors[-1].startswith(f"actionspan propose: {line}")
        assert len(call.errors) == 1 + (words[0].name == "broken.mp4")
        assert not out.exists()
    assert notes.read_text() == "mine"


def test_as_many_processes_work_as_are_asked_for_or_as_cores_and_memory_allow(
    here, films, tmp_path, monkeypatch
):
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(shards, "workers_within", lambda *sizes: asked.append(sizes) or 1)
        assert here(tmp_path / "default", *films[:2], *NONE).status == 0
    assert asked == [(2, 10**9)]

    def stub(work, items, *, processes=1, **_):
        asked.append(processes)
        yield from ()

    monkeypatch.setattr(working, "work_apart", stub)
    found, videos = ResultFolder(tmp_path / "out", "a model"), {path.stem: path for path in films}
    for jobs in (1, 3, 16):
        asked.clear()
        given = working.each_video(
            found, videos, None, Shown(), working.Loading(), copies=False, quiet=True, jobs=jobs
        )
        with pytest.raises(RuntimeError):  # the stub does nothing
            list(given)
        assert asked[0] == min(jobs, len(films))


@pytest.mark.parametrize("ending", first_tier([signal.SIGINT, signal.SIGTERM], signal.SIGINT))
def test_a_call_that_is_stopped_goes_on_and_leaves_nothing_else(here, films, tmp_path, ending):
    words = [sys.executable, "-m", "actionspan", "propose", *map(str, films), *NONE]
    words += ["--out", str(tmp_path / "out")]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    command = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    lines = iter(command.stderr.readline, "")
    next(line for line in lines if line.startswith(films[1].name))
    command.send_signal(ending)
    remaining = command.stderr.read()
    assert command.wait(60) == {signal.SIGINT: 130, signal.SIGTERM: 143}[ending]
    assert "Traceback" not in remaining
    first = films[0].stem
    assert first in results(tmp_path / "out")
    assert f'"id":"{first}"' in (tmp_path / "out/index.html").read_text()
    left = [path.name for path in (tmp_path / "out").rglob("*") if "partial" in path.name]
    assert left + list((tmp_path / "temporary").iterdir()) == []
    # the next call goes on, and ends as one that was left alone
    again = here(tmp_path / "out", *films, *NONE)
    assert again.status == 0
    assert films[0].name not in "".join(again.every_error)
    assert here(tmp_path / "whole", *films, *NONE).status == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def test_no_video_is_blamed_where_the_model_cannot_be_loaded(monkeypatch):
    """Twice it dies before it has loaded: by the second time, the video's turn is over."""
    died = Outcome(passing=True, reason="killed by SIGKILL")
    monkeypatch.setattr(working, "work_apart", lambda *_, **__: iter([(0, died)] * 2))
    single = working._Single(Mock(), load=True, quiet=True)
    with pytest.raises(JobError, match="the model cannot be loaded: killed by SIGKILL"):
        single.failed(working._Propose(Path("a.mp4"), False))
