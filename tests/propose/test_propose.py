"""`actionspan propose` gives what the workflow gives, to the bit, and goes on past broken files."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import torch

from actionspan import load_model
from actionspan.cli import main
from actionspan.demo.data_set import plan_demo, render_demo
from actionspan.demo.scenario import DemoSettings, demo_video_names
from actionspan.errors import InputError
from actionspan.jobs import shards
from actionspan.networks.i3d import I3D
from actionspan.proposals.bundle_files import bundle_path
from actionspan.proposals.model_bundle import load_bundle
from actionspan.propose import MotionProposer, Proposer, proposed, working
from actionspan.propose.results import ResultFolder, Shown
from actionspan.storage.model_files import read_model, write_model
from actionspan.workflow.runs import flags as flag_line
from tiers import first_tier
from video.numbered import encode

DEMO = DemoSettings(videos=4, shortest_seconds=5.0, longest_seconds=6.0)
FRAMES = {"snippet_frames": 16, "stack": 1, "short_side": 128, "mover_side": 64}
FLOW = {"algorithm": "dis", "preset": "ultrafast", "bound": 20.0}
ENCODERS = {
    "source": "pooled",
    "rgb_encoder": "efficientnet_lite0",
    "flow_encoder": "efficientnet_lite0",
    "input_size": 64,
    "batch_size": 4,
}
CANDIDATES = {"peak_ratio": 0.5, "candidates": 200}
RANKING = {"boundary_power": 0.5}
SUPPRESSION = {"keep": 20}
SELECTION = {"proposals": 15}
EVENTS = {"events": 4, "bar": 0.0}
MODELS = ("mtn", "span")


@dataclass(frozen=True)
class Trained:
    """The files of a tiny run."""

    folder: Path
    videos: tuple[Path, ...]
    annotations: Path

    @property
    def model(self) -> Path:
        return self.folder / "mtn"

    def proposals(self, table: str = "proposals") -> dict[str, list]:
        return in_milliseconds(results(self.folder, table))

    def validation(self) -> list[Path]:
        """Return the videos that no network learned from."""
        database = json.loads(self.annotations.read_text())["database"]
        return [path for path in self.videos if database[path.stem]["subset"] == "validation"]


def flags(settings: dict) -> list[str]:
    return flag_line(settings).split()


def train(folder: Path, frames: dict, encoders: dict, *density: str, demo=DEMO) -> Trained:
    """Every stage of the workflow, called as its rules call them."""
    render_demo(folder / "demo", demo, 1)
    videos = tuple(folder / "demo" / name for name in demo_video_names(DEMO.videos))

    def stage(words: str, *more: object) -> None:
        made = [f"{folder}/{word[1:]}" if word.startswith("@") else word for word in words.split()]
        assert main([*made, *map(str, more)]) == 0

    stage("dataset probe --out @shard.txt --videos", *videos)
    stage("dataset index --shards @shard.txt --annotations @demo/annotations.json --out @dataset")
    stage("video frames --shard @shard.txt --out @frames.h5", *flags(frames))
    stage("video flow --frames @frames.h5 --out @flow.h5", *flags(FLOW))
    stage("features extract --frames @frames.h5 --flow @flow.h5 --out @raw.h5", *flags(encoders))
    known = "--annotations @dataset/annotations.json"
    stage(
        f"features rescale --shards @raw.h5 --videos @dataset/videos.tsv {known} "
        "--out @features.h5 --components 4"
    )
    stage(
        f"temporal train --features @features.h5 {known} --out @temporal "
        "--model mtn --hidden 16 --epochs 1"
    )
    stage(
        "temporal predict --model @temporal/model.safetensors "
        "--features @features.h5 --out @prob.h5",
    )
    candidates = "proposals candidates --probabilities @prob.h5 --out @candidates.h5"
    stage(candidates, *flags(CANDIDATES))
    stage(
        f"proposals train --candidates @candidates.h5 {known} "
        "--out @pem.safetensors --epochs 2 --hidden 16"
    )
    stage(
        f"proposals classifier --features @features.h5 {known} "
        "--out @classifier.safetensors --folds 2"
    )
    stage(
        "proposals generate --candidates @candidates.h5 --evaluator @pem.safetensors "
        "--classifier @classifier.safetensors --features @features.h5 "
        "--out-json @proposals.json --out-csv @proposals.csv",
        *flags(RANKING | SUPPRESSION),
    )
    stage(
        "proposals bundle --features @features.h5 --temporal @temporal/model.safetensors "
        "--evaluator @pem.safetensors --classifier @classifier.safetensors "
        "--out @mtn/model.safetensors",
        *flags(CANDIDATES | RANKING | SUPPRESSION),
    )
    stage(
        f"features sequences --shards @raw.h5 --videos @dataset/videos.tsv {known} "
        "--out @sequences.h5 --components 4 --window 8 --window-stride 4"
    )
    stage(
        f"temporal train --features @sequences.h5 {known} --out @span --model span "
        "--hidden 16 --epochs 1 --members 2"
    )
    stage(
        "temporal predict --model @span/model.safetensors --features @sequences.h5 --out @span.h5"
    )
    stage(
        f"proposals density --probabilities @span.h5 {known} --out @density.safetensors "
        "--epochs 1 --hidden 8",
        *density,
    )
    stage(
        "proposals select --probabilities @span.h5 --density @density.safetensors "
        "--classifier @classifier.safetensors --features @features.h5 --out-json @span.json "
        "--out-csv @span.csv --out-events-json @events.json --out-events-csv @events.csv",
        *flags(SELECTION | EVENTS),
    )
    stage(
        "proposals bundle --features @sequences.h5 --temporal @span/model.safetensors "
        "--density @density.safetensors --classifier @classifier.safetensors "
        "--classifier-features @features.h5 "
        "--out @span/bundle.safetensors",
        *flags(SELECTION | EVENTS),
    )
    return Trained(folder, videos, folder / "demo" / "annotations.json")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Trained:
    return train(tmp_path_factory.mktemp("trained"), FRAMES, ENCODERS)


def propose(out: Path, *words: object) -> int:
    return main(["propose", *map(str, words), "--out", str(out)])


def results(out: Path, table: str = "proposals") -> dict[str, list]:
    return json.loads((out / f"{table}.json").read_text())["results"]


def in_milliseconds(results: dict[str, list]) -> dict[str, list]:
    """What the workflow found, with times as `propose` writes them."""
    return {
        video: [{**row, "segment": [round(time, 3) for time in row["segment"]]} for row in rows]
        for video, rows in results.items()
    }


def errors(shown: str) -> list[str]:
    """The lines on standard error that are not about progress."""
    lines = shown.splitlines()
    return [line for line in lines if "real time" not in line and not line.endswith(": done")]


def test_one_video_gives_the_bits_of_the_workflow(trained, tmp_path, capsys):
    path = trained.videos[1]
    assert propose(tmp_path, path, "--model", trained.model) == 0
    expected = trained.proposals()[path.stem]
    assert len(expected) > 1
    assert results(tmp_path) == {path.stem: expected}
    assert (
        capsys.readouterr().out == f"{tmp_path}: proposals of 1 video; open {tmp_path}/index.html\n"
    )


@pytest.mark.full
def test_a_model_with_clips_gives_the_bits_of_the_workflow(tmp_path):
    torch.manual_seed(0)
    torch.save(I3D(classes=5).state_dict(), tmp_path / "i3d.pt")
    clips = {"clip_rate": 12.5, "clip_side": 48}
    encoder = {"clip_encoder": "i3d", "clip_weights": tmp_path / "i3d.pt", "clip_size": 32}
    trained = train(tmp_path / "trained", FRAMES | clips | {"clips": True}, ENCODERS | encoder)
    (tmp_path / "i3d.pt").unlink()  # the model holds what was in it
    path = trained.videos[1]
    assert propose(tmp_path / "out", path, "--model", trained.model) == 0
    expected = trained.proposals()[path.stem]
    assert len(expected) > 1
    assert results(tmp_path / "out") == {path.stem: expected}
    bundle = load_bundle(trained.model)
    assert bundle.frames.clips
    assert list(bundle.transform.streams) == ["rgb", "flow", "clip"]


def test_a_model_of_motion_gives_the_bits_of_the_workflow(tmp_path):
    """In footage that is cut, where half of the instances lie on cuts."""
    frames, motion = FRAMES | {"mover_side": 0}, ENCODERS | {"source": "motion", "mover": False}
    cut = replace(DEMO, seed=10)
    moved = train(tmp_path / "trained", frames, motion, "--on-cuts=0.5", demo=cut)
    new = moved.validation()
    assert propose(tmp_path, *new, "--model", moved.folder / "span/bundle.safetensors") == 0
    expected = moved.proposals("span")
    assert results(tmp_path) == {path.stem: expected[path.stem] for path in new}
    mtn = moved.folder / "mtn"
    assert propose(tmp_path / "mtn", *new, "--model", mtn) == 0
    expected = moved.proposals()
    assert results(tmp_path / "mtn") == {path.stem: expected[path.stem] for path in new}
    assert load_bundle(moved.folder / "span/bundle.safetensors").transform.channels == 3
    # both shots are among what it proposes
    (plan,) = [each for each in plan_demo(cut) if each.subset == "validation"]
    (rows,) = results(tmp_path).values()
    ends = np.array([row["segment"] for row in rows])
    assert (np.abs(ends - plan.shots[1].start) < 0.05).any(axis=0).all()


def test_a_new_video_gives_the_bits_of_the_workflow_by_span(trained, tmp_path):
    """A new one: the workflow shows training videos to the member that did not learn them."""
    new = trained.validation()
    assert new
    assert propose(tmp_path, *new, "--model", trained.folder / "span/bundle.safetensors") == 0
    for table, expected in (("proposals", "span"), ("events", "events")):
        found = results(tmp_path, table)
        made = trained.proposals(expected)
        assert found == {path.stem: made[path.stem] for path in new}
        assert all("label" in row for rows in found.values() for row in rows)
    assert max(map(len, results(tmp_path).values())) == SELECTION["proposals"]
    with (tmp_path / "events.csv").open() as file:
        table = [(row["video_id"], float(row["start_seconds"])) for row in csv.DictReader(file)]
    assert table == [
        (video, row["segment"][0])
        for video, rows in results(tmp_path, "events").items()
        for row in rows
    ]


def test_only_span_sees_what_moves(trained):
    """In a model of the papers squares only decide which snippets are still, as in its features."""
    span, mtn = (load_bundle(trained.folder / name) for name in ("span/bundle.safetensors", "mtn"))
    assert list(span.transform.streams) == ["rgb", "flow", "mover"]
    assert list(mtn.transform.streams) == list(span.classified.streams) == ["rgb", "flow"]
    assert (span.frames.mover_side, span.encoders.mover) == (64, True)
    assert (mtn.frames.mover_side, mtn.encoders.mover) == (64, False)


def test_span_in_python_has_events_with_chances(trained):
    torch.set_num_threads(1)
    (path, *_) = trained.validation()
    proposed = load_model(trained.folder / "span/bundle.safetensors").propose(path)
    assert proposed.events.shape == (len(proposed.chances), 2)
    assert 1 <= len(proposed.events) <= EVENTS["events"]
    assert ((proposed.chances >= 0) & (proposed.chances <= 1)).all()
    assert (np.diff(proposed.scores) <= 0).all()
    assert (proposed.segments[:, 0] < proposed.segments[:, 1]).all()
    assert (proposed.segments >= 0).all()
    assert (proposed.segments <= proposed.duration_seconds + 1e-6).all()
    assert len(proposed.probabilities) != 100, "a step for each snippet"


@pytest.mark.full
@pytest.mark.parametrize("model", first_tier(MODELS, "span"))
def test_top_is_the_most_events_and_chapters_of_a_video(trained, tmp_path, model):
    (path, *_) = trained.validation()
    file = trained.model if model == "mtn" else trained.folder / "span/bundle.safetensors"
    counts = {}
    for top in ([], ["--top", 2], ["--top", 1]):
        out = tmp_path / f"{len(counts)}"
        assert propose(out, path, "--model", file, *top) == 0
        (events,) = json.loads((out / "events.json").read_text())["results"].values()
        counts[len(counts)] = events
        chapters = (out / f"{path.stem}.vtt").read_text().count("-->")
        assert 1 <= chapters <= len(events), "events may overlap a little, chapters may not"
    assert counts[1] == counts[0][:2]
    assert counts[2] == counts[0][:1]
    assert len(counts[2]) == 1
    scores = [row["score"] for row in counts[0]]
    assert scores == sorted(scores, reverse=True)


def test_no_events_at_all_cannot_be_asked_for(trained, tmp_path, capsys):
    words = [trained.videos[0], "--model", trained.model, "--top", 0]
    assert propose(tmp_path, *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "actionspan propose: --top 0: at least 1"


@pytest.mark.full
def test_all_videos_at_once_give_the_workflows_files(trained, tmp_path):
    assert propose(tmp_path, *trained.videos, "--model", trained.model / "model.safetensors") == 0
    assert results(tmp_path) == trained.proposals()
    assert list(results(tmp_path)) == list(trained.proposals())
    assert (tmp_path / "proposals.csv").read_text().count("\n") == 1 + sum(
        map(len, trained.proposals().values())
    )


def test_a_video_comes_with_a_table_chapters_and_a_picture(trained, tmp_path):
    path = trained.videos[0]
    assert propose(tmp_path, path, "--model", trained.model) == 0
    assert {file.name for file in tmp_path.iterdir()} == {
        "proposals.json",
        "proposals.csv",
        "events.json",
        "events.csv",
        "index.html",
        "videos",
        f"{path.stem}.vtt",
        f"{path.stem}.svg",
        f"{path.stem}.jpg",
    }
    rows = results(tmp_path)[path.stem]
    with (tmp_path / "proposals.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [
        (float(row["start_seconds"]), float(row["end_seconds"]), float(row["score"]))
        for row in table
    ] == [(*row["segment"], pytest.approx(row["score"], rel=1e-5)) for row in rows]
    assert (tmp_path / f"{path.stem}.vtt").read_text().startswith("WEBVTT\n\n00:")
    assert ElementTree.parse(tmp_path / f"{path.stem}.svg").getroot().tag.endswith("svg")


@pytest.mark.full
def test_a_model_in_python_gives_what_the_command_gives(trained, tmp_path):
    path = trained.videos[1]
    torch.set_num_threads(1)
    model = load_model(trained.model)
    assert isinstance(model, Proposer)
    first, again = model.propose(path), model.propose(str(path))
    assert propose(tmp_path, path, "--model", trained.model) == 0
    # the file holds the arrays, best first
    found = in_milliseconds({path.stem: first.rows()})
    assert json.loads(json.dumps(found)) == results(tmp_path)
    assert first.segments.shape == (len(first.scores), 2)
    assert first.probabilities.shape == (100, 3)
    assert first.motion is None
    # a second call starts from nothing that the first left behind
    for name in ("segments", "scores", "probabilities"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    duration = json.loads(trained.annotations.read_text())["database"][path.stem]["duration"]
    assert first.duration_seconds == pytest.approx(duration)


@pytest.mark.parametrize("make", [MotionProposer, lambda: load_model("demo")])
def test_a_video_that_is_opened_is_not_opened_again(trained, tmp_path, make):
    path = Path(shutil.copy(trained.videos[0], tmp_path))
    opened = proposed.open_video(path)
    path.unlink()
    found, expected = make().propose(opened), make().propose(trained.videos[0])
    assert found.duration_seconds == expected.duration_seconds
    np.testing.assert_array_equal(found.segments, expected.segments)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_the_first_video_is_opened_while_the_model_is_loaded(trained, tmp_path, monkeypatch):
    opened = threading.Event()
    open_video = proposed.open_video

    def told(video):
        found = open_video(video)
        opened.set()
        return found

    def loaded(*_):
        assert opened.wait(60)
        return MotionProposer()

    monkeypatch.setattr(proposed, "open_video", told)
    monkeypatch.setattr(working, "_loaded", loaded)
    working._load()
    folder = ResultFolder(tmp_path, "a model")
    working._work(folder, Shown(), working._Task(trained.videos[0]))
    assert folder.finished(trained.videos[0])


def test_motion_in_python_needs_no_model(trained):
    proposed = MotionProposer().propose(trained.videos[1])
    assert proposed.probabilities is None
    assert proposed.motion.shape == (100,)
    assert proposed.segments.shape == (len(proposed.scores), 2)
    assert (proposed.segments <= proposed.duration_seconds + 1e-6).all()


def test_a_missing_file_is_an_input_error_in_python(trained, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "none.pt")
    with pytest.raises(InputError, match=r"none\.mp4"):
        load_model(str(trained.model)).propose(tmp_path / "none.mp4")


@pytest.mark.full
def test_annotations_are_drawn(trained, tmp_path):
    with_action = trained.videos[0]
    database = json.loads(trained.annotations.read_text())["database"]
    assert database[with_action.stem]["annotations"]
    words = [with_action, "--model", trained.model]
    assert propose(tmp_path / "plain", *words) == 0
    assert propose(tmp_path / "truth", *words, "--annotations", trained.annotations) == 0
    plain, truth = (
        (tmp_path / name / f"{with_action.stem}.svg").read_text() for name in ("plain", "truth")
    )
    assert "<!-- truth -->" in truth
    assert "<!-- truth -->" not in plain
    assert results(tmp_path / "plain") == results(tmp_path / "truth")


def test_a_broken_file_among_good_ones_is_reported_and_the_rest_done(trained, tmp_path, capsys):
    broken, missing = tmp_path / "broken.mp4", tmp_path / "missing.mp4"
    broken.write_bytes(b"no video at all")
    good = trained.videos[2]
    out = tmp_path / "out"
    assert propose(out, broken, good, missing, "--model", trained.model) == 1
    shown = capsys.readouterr()
    assert [line.split(": ")[0] for line in errors(shown.err)] == [str(missing), str(broken)]
    assert "proposals of 1 video, 2 could not be read" in shown.out
    assert results(out) == {good.stem: trained.proposals()[good.stem]}
    assert not list(out.glob("broken*"))


def test_only_broken_files_is_exit_2_and_no_output(trained, tmp_path, capsys):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(trained.videos[0].read_bytes()[:3000])
    assert propose(tmp_path / "out", broken, "--model", trained.model) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "actionspan propose: no proposals: the video could not be read"
    )
    assert not (tmp_path / "out").exists()


def test_a_folder_is_its_videos(trained, tmp_path, capsys):
    folder = tmp_path / "my videos"
    folder.mkdir()
    for path in trained.videos[:2]:
        shutil.copy(path, folder)
    (folder / "notes.txt").write_text("not a video")
    (folder / "broken.mp4").write_bytes(b"")
    assert propose(tmp_path / "out", folder, "--model", "none") == 1
    assert list(results(tmp_path / "out")) == sorted(path.stem for path in trained.videos[:2])
    assert errors(capsys.readouterr().err) == [f"{folder / 'broken.mp4'}: the file is empty"]


def test_a_pattern_that_the_shell_left_is_expanded(trained, tmp_path, capsys):
    pattern = trained.videos[0].parent / "demo_00[01].*"
    assert propose(tmp_path / "out", pattern, "--model", "none") == 0
    assert list(results(tmp_path / "out")) == ["demo_000", "demo_001"]
    assert propose(tmp_path / "none", tmp_path / "*.mp4", "--model", "none") == 2
    assert f"{tmp_path / '*.mp4'}: no file matches" in capsys.readouterr().err


def test_a_folder_without_videos_is_one_line(tmp_path, capsys):
    assert propose(tmp_path / "out", tmp_path, "--model", "none") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"actionspan propose: {tmp_path}: no video here: no file ends with")
    assert not (tmp_path / "out").exists()


def test_a_second_call_does_only_what_is_new(trained, tmp_path, capsys):
    first, second, third = trained.videos[:3]
    words = ["--model", trained.model]
    assert propose(tmp_path / "out", first, second, *words) == 0
    capsys.readouterr()
    picture = tmp_path / "out" / f"{first.stem}.svg"
    written = picture.stat().st_mtime_ns
    assert propose(tmp_path / "out", second, third, *words) == 0
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.err.splitlines()][:1] == [third.name]
    assert second.name not in shown.err
    assert "proposals of 2 videos, 1 done before, 3 in the folder; open" in shown.out
    assert list(results(tmp_path / "out")) == sorted(path.stem for path in (first, second, third))
    assert picture.stat().st_mtime_ns == written
    # fewer events need no network either
    assert propose(tmp_path / "out", first, second, third, *words, "--top", 1) == 0
    assert "3 done before" in capsys.readouterr().out
    assert {len(rows) for rows in results(tmp_path / "out", "events").values()} == {1}
    assert (tmp_path / "out" / f"{first.stem}.vtt").read_text().count("-->") == 1
    # a video that was replaced is another one, and --overwrite does them all
    copy = tmp_path / first.name
    shutil.copy(third, copy)
    assert propose(tmp_path / "out", copy, *words) == 0
    assert "done before" not in capsys.readouterr().out
    replaced = results(tmp_path / "out")
    assert replaced[first.stem] == replaced[third.stem]
    assert propose(tmp_path / "out", second, third, "--overwrite", *words) == 0
    assert "done before" not in capsys.readouterr().out


@pytest.mark.full
def test_a_damaged_result_is_made_again(trained, tmp_path, capsys):
    path = trained.videos[0]
    words = [path, "--model", "none"]
    assert propose(tmp_path, *words) == 0
    expected = results(tmp_path)
    for damage in ("", "{", "[]", '{"video_id": 3}'):
        (tmp_path / "videos" / f"{path.stem}.json").write_text(damage)
        capsys.readouterr()
        assert propose(tmp_path, *words) == 0
        assert "done before" not in capsys.readouterr().out
        assert results(tmp_path) == expected


@pytest.mark.full
def test_a_folder_holds_the_proposals_of_one_model(trained, tmp_path, capsys):
    first, second = trained.videos[:2]
    assert propose(tmp_path / "out", first, "--model", "none") == 0
    before = results(tmp_path / "out")
    words = [second, "--model", trained.model]
    assert propose(tmp_path / "out", *words) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"actionspan propose: --out {tmp_path / 'out'}: holds proposals of another model "
        "(1 video): choose another folder, or --overwrite to replace them"
    )
    assert results(tmp_path / "out") == before
    assert propose(tmp_path / "out", *words, "--overwrite") == 0
    assert list(results(tmp_path / "out")) == [second.stem]
    assert not (tmp_path / "out" / f"{first.stem}.svg").exists()


@pytest.mark.parametrize("place", ["a file", "in a file"])
def test_a_folder_that_cannot_be_written_is_told_before_the_work(trained, tmp_path, capsys, place):
    (tmp_path / "notes").write_text("mine")
    out = tmp_path / "notes" if place == "a file" else tmp_path / "notes" / "out"
    assert propose(out, trained.videos[0], "--model", "none") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"actionspan propose: --out {out}: not a folder to write to: not a directory"
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize("ending", first_tier([signal.SIGINT, signal.SIGTERM], signal.SIGINT))
def test_a_call_that_is_stopped_goes_on_and_leaves_nothing_else(trained, tmp_path, ending):
    words = [sys.executable, "-m", "actionspan", "propose", *map(str, trained.videos)]
    words += ["--model", "none", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    command = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    lines = iter(command.stderr.readline, "")
    next(line for line in lines if line.startswith(trained.videos[1].name))
    command.send_signal(ending)
    remaining = command.stderr.read()
    assert command.wait(60) == {signal.SIGINT: 130, signal.SIGTERM: 143}[ending]
    assert "Traceback" not in remaining
    first = trained.videos[0].stem
    assert first in results(tmp_path / "out")
    assert f'"id":"{first}"' in (tmp_path / "out/index.html").read_text()
    left = [path.name for path in (tmp_path / "out").rglob("*") if "partial" in path.name]
    assert left + list((tmp_path / "temporary").iterdir()) == []
    # the next call goes on, and ends as one that was left alone
    again = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    assert f"{first}.mp4" not in again.stderr
    assert propose(tmp_path / "whole", *trained.videos, "--model", "none") == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")


@pytest.mark.full
def test_events_are_printed_as_json_as_soon_as_they_are_known(trained, tmp_path, capsys):
    words = [*trained.videos[:2], "--model", trained.model, "--json", "--top", 2, "-q"]
    assert propose(tmp_path, *words) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    printed = [json.loads(line) for line in shown.out.splitlines()]
    assert [row["video"] for row in printed] == list(map(str, trained.videos[:2]))
    events = results(tmp_path, "events")
    assert [row["events"] for row in printed] == [events[path.stem] for path in trained.videos[:2]]


@pytest.mark.full
def test_a_least_score_leaves_the_others_out(trained, tmp_path, capsys):
    words = [trained.videos[0], "--model", "none"]
    assert propose(tmp_path, *words) == 0
    (rows,) = results(tmp_path).values()
    bar = rows[len(rows) // 2]["score"]
    assert propose(tmp_path, *words, "--min-score", bar) == 0
    kept = [row for row in rows if row["score"] >= bar]
    assert 0 < len(kept) < len(rows)
    assert list(results(tmp_path).values()) == [kept]
    assert "no event" not in capsys.readouterr().out
    assert propose(tmp_path, *words, "--min-score", 1000) == 0
    assert "proposals of 1 video, 1 done before; open" in capsys.readouterr().out  # ranks stay


def test_proposals_are_a_data_frame(trained):
    pytest.importorskip("pandas", reason="pandas is not installed")
    proposed = load_model(trained.model).propose(trained.videos[1])
    frame = proposed.to_frame()
    assert list(frame.columns) == ["start_seconds", "end_seconds", "score", "label", "label_score"]
    assert frame[["start_seconds", "end_seconds"]].to_numpy().tolist() == proposed.segments.tolist()
    assert frame["score"].is_monotonic_decreasing
    assert list(frame["label"]) == [row["label"] for row in proposed.rows()]
    plain = MotionProposer().propose(trained.videos[1]).to_frame()
    assert list(plain.columns) == ["start_seconds", "end_seconds", "score"]


def test_a_device_that_is_not_there_is_one_line(trained, tmp_path, capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    words = [trained.videos[0], "--model", trained.model, "--device", "cuda"]
    assert propose(tmp_path / "out", *words) == 2
    assert "no CUDA device is visible" in capsys.readouterr().err


@pytest.mark.full
def test_two_videos_of_one_name_are_reported(trained, tmp_path, capsys):
    first = trained.videos[0]
    second = tmp_path / "elsewhere" / first.name
    second.parent.mkdir()
    shutil.copy(trained.videos[1], second)
    assert propose(tmp_path / "out", first, second, "--model", trained.model) == 1
    assert f"{second}: {first} has the same name; rename one" in capsys.readouterr().err
    assert results(tmp_path / "out") == {first.stem: trained.proposals()[first.stem]}


def test_without_a_model_it_is_the_one_that_comes_with_the_package(trained, tmp_path, capsys):
    path = trained.videos[0]
    assert propose(tmp_path / "out", path) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("without --model: the one that comes with actionspan, which has seen")
    (rows,) = results(tmp_path / "out").values()
    assert rows
    assert all(row.keys() == {"score", "segment"} for row in rows), "classes of rendered videos"
    assert "model demo · actionspan" in (tmp_path / "out/index.html").read_text()
    # named, it is the same model: the video is done
    assert propose(tmp_path / "out", path, "--model", "demo") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "1 done before" in printed.out
    in_python = load_model("demo").propose(path)
    assert [row["segment"] for row in rows] == np.round(in_python.segments, 3).tolist()


def test_the_model_of_the_package_is_small():
    assert bundle_path(Path("demo")).stat().st_size < 5_000_000


def test_a_folder_called_demo_is_that_folder(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained.model, "demo")
    assert bundle_path(Path("demo")) == Path("demo/model.safetensors")


@pytest.mark.full
def test_without_a_model_a_folder_called_demo_is_no_matter(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()  # of videos, maybe
    assert propose(tmp_path / "out", trained.videos[0]) == 0
    assert "model demo · actionspan" in (tmp_path / "out/index.html").read_text()


def test_motion_grouping_needs_no_model(trained, tmp_path):
    path = trained.videos[0]
    assert propose(tmp_path, path, "--model", "none") == 0
    rows = results(tmp_path)[path.stem]
    duration = json.loads(trained.annotations.read_text())["database"][path.stem]["duration"]
    assert rows
    for row in rows:
        assert 0 <= row["segment"][0] < row["segment"][1] <= duration + 1e-6
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert re.search("motion", (tmp_path / f"{path.stem}.svg").read_text())
    assert (tmp_path / f"{path.stem}.vtt").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder.mkdir(), "no model.safetensors in this folder"),
        (lambda folder: None, "no such file"),
        (lambda folder: folder.write_text("model"), "not a complete model"),
    ],
    ids=["empty folder", "missing", "text"],
)
def test_what_is_no_model_is_one_line(tmp_path, capsys, make, message):
    make(tmp_path / "model")
    (tmp_path / "video.mp4").touch()
    assert propose(tmp_path / "out", tmp_path / "video.mp4", "--model", tmp_path / "model") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"actionspan propose: {tmp_path / 'model'}: ")
    assert message in line
    assert "delete" not in line
    assert "make demo" not in line


@pytest.mark.full
def test_a_file_of_another_step_is_no_model(trained, tmp_path, capsys):
    for name in ("temporal/model.safetensors", "pem.safetensors"):
        assert propose(tmp_path, trained.videos[0], "--model", trained.folder / name) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "not a complete model" in line


def test_a_model_of_external_features_is_no_bundle(trained, tmp_path, capsys):
    """Its features come from files: a video alone gives none."""
    shutil.copy(trained.folder / "features.h5", tmp_path)
    with h5py.File(tmp_path / "features.h5", "a") as file:
        del file.attrs["settings"]  # as features have that no encoder of ours made
    words = ["proposals", "bundle", "--features", str(tmp_path / "features.h5")]
    words += ["--temporal", str(trained.folder / "temporal/model.safetensors")]
    words += [
        "--evaluator",
        str(trained.folder / "pem.safetensors"),
        "--out",
        str(tmp_path / "model.safetensors"),
    ]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "features.h5: no settings of encoders" in line
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("threads", ["0", "-1"])
def test_no_threads_is_one_line(trained, tmp_path, capsys, threads):
    words = [trained.videos[0], "--model", trained.model, "--threads", threads]
    assert propose(tmp_path, *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"actionspan propose: --threads {threads}: at least 1"


def test_annotations_that_are_none_are_one_line(trained, tmp_path, capsys):
    words = [
        trained.videos[0],
        "--model",
        "none",
        "--annotations",
        trained.model / "model.safetensors",
    ]
    assert propose(tmp_path / "out", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(trained.model / "model.safetensors") in line


def test_a_model_of_before_lacks_the_newer_sections_and_loads(trained, tmp_path):
    content = read_model(trained.model / "model.safetensors").value
    settings = json.loads(content["settings"])
    content["settings"] = json.dumps(
        {name: settings[name] for name in settings if name != "ranking"}
    )
    write_model(tmp_path / "old.pt", content)
    bundle = load_bundle(tmp_path / "old.pt")
    assert bundle.ranking.boundary_power == 1.0


def test_labels_come_with_the_model_and_are_in_every_file(trained, tmp_path):
    path = trained.videos[0]
    database = json.loads(trained.annotations.read_text())["database"].values()
    training = [entry for entry in database if entry["subset"] == "training"]
    known = {each["label"] for entry in training for each in entry["annotations"]}
    assert propose(tmp_path, path, "--model", trained.model) == 0
    rows = results(tmp_path)[path.stem]
    assert {row["label"] for row in rows} <= known
    assert all(0 < row["label_score"] <= 1 for row in rows)
    with (tmp_path / "proposals.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(row["label"], float(row["label_score"])) for row in table] == [
        (row["label"], pytest.approx(row["label_score"], rel=1e-5)) for row in rows
    ]
    best = max(rows, key=lambda row: row["score"])
    assert f" {best['label']} (" in (tmp_path / f"{path.stem}.vtt").read_text()


@pytest.mark.full
def test_a_model_of_before_has_no_classifier_and_labels_nothing(trained, tmp_path):
    content = read_model(trained.model / "model.safetensors").value
    del content["classifier"]
    write_model(tmp_path / "old.pt", content)
    path = trained.videos[1]
    assert propose(tmp_path / "out", path, "--model", tmp_path / "old.pt") == 0
    expected = [
        {key: row[key] for key in ("score", "segment")} for row in trained.proposals()[path.stem]
    ]
    assert results(tmp_path / "out") == {path.stem: expected}
    assert "label" not in (tmp_path / "out/proposals.csv").read_text()


@pytest.mark.full
def test_a_model_of_before_clips_loads_and_has_no_such_stream(trained, tmp_path):
    content = read_model(trained.model / "model.safetensors").value
    settings = json.loads(content["settings"])
    settings["encoders"]["window"] = 16  # a setting that is gone
    for section in ("frames", "encoders"):
        later = ("clip", "mover")
        kept = {key: v for key, v in settings[section].items() if not key.startswith(later)}
        assert kept != settings[section]
        settings[section] = kept
    content["settings"] = json.dumps(settings)
    write_model(tmp_path / "old.pt", content)
    bundle = load_bundle(tmp_path / "old.pt")
    assert not bundle.frames.clips
    assert bundle.encoders.clip_encoder == "none"
    assert (bundle.frames.mover_side, bundle.encoders.mover) == (0, False)
    path = trained.videos[1]
    assert propose(tmp_path / "out", path, "--model", tmp_path / "old.pt") == 0
    assert results(tmp_path / "out") == {path.stem: trained.proposals()[path.stem]}


def test_a_model_trained_with_openvino_proposes_without_it(trained, tmp_path, monkeypatch):
    content = read_model(trained.model / "model.safetensors").value
    settings = json.loads(content["settings"])
    settings["encoders"]["runtime"] = "openvino"
    write_model(tmp_path / "model.safetensors", content | {"settings": json.dumps(settings)})
    video = trained.validation()[0]
    expected = load_model(trained.model).propose(video)
    monkeypatch.setattr("actionspan.networks.runtime.find_openvino", lambda: None)
    found = load_model(tmp_path / "model.safetensors").propose(video)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, rtol=0, atol=1e-4)


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


def test_none_is_a_model_for_scripts_as_it_is_for_the_command(tmp_path):
    video = encode(tmp_path / "a.mp4", 60)
    assert propose(tmp_path / "out", video, "--model", "none") == 0
    (rows,) = results(tmp_path / "out").values()
    found = load_model("none").propose(video).rows()
    assert [row["segment"] for row in rows] == [
        [round(time, 3) for time in row["segment"]] for row in found
    ]


def test_several_videos_at_once_give_the_same_files(trained, tmp_path, capsys):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    videos = [*trained.videos[:2], broken, *trained.videos[2:]]
    for jobs in (1, 3):
        words = [*videos, "--model", "none", "--jobs", jobs, "--json", "-q"]
        assert propose(tmp_path / f"{jobs}", *words) == 1
    printed = [json.loads(line)["video"] for line in capsys.readouterr().out.splitlines()]
    assert printed == list(map(str, trained.videos)) * 2
    alone, together = (
        {
            path.name: path.read_bytes()
            for path in (tmp_path / f"{jobs}").iterdir()
            if path.suffix in (".json", ".csv", ".vtt", ".svg")
        }
        for jobs in (1, 3)
    )
    assert len(alone) == 4 + 2 * len(trained.videos)
    assert alone == together


@pytest.mark.parametrize("jobs", [1, 3, 16])
def test_so_many_processes_work_as_are_asked_for(trained, tmp_path, monkeypatch, jobs):
    asked = []

    def stub(work, items, *, processes=1, **_):
        asked.append(processes)
        yield from ()

    monkeypatch.setattr(working, "work_apart", stub)
    every = working.each_video(
        ResultFolder(tmp_path / "out", "model"),
        {path.stem: path for path in trained.videos},
        None,
        Shown(),
        (None, 1, None, (), None),
        copies=False,
        quiet=True,
        jobs=jobs,
    )
    with pytest.raises(RuntimeError):  # the stub does nothing
        next(every)
    assert asked[0] == min(jobs, len(trained.videos))


def test_by_default_they_are_as_many_as_cores_and_memory_allow(trained, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(shards, "workers_within", lambda *sizes: asked.append(sizes) or 1)
    assert propose(tmp_path, *trained.videos[:2], "--model", "none") == 0
    assert asked == [(2, 10**9)]
