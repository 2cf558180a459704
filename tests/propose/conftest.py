"""A tiny run of every stage, the command on its videos, and the command in this process."""

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from actionspan.cli import main
from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings, demo_video_names
from actionspan.errors import InputError, JobError
from actionspan.jobs.apart import Outcome
from actionspan.propose import working
from actionspan.video.settings import FrameSettings
from actionspan.workflow.runs import flags as flag_line
from features.conftest import work_here as shards_here
from video.numbered import encode
from worlds.sounds import add_tone

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


@dataclass(frozen=True)
class Trained:
    """The files of a tiny run."""

    folder: Path
    videos: tuple[Path, ...]
    annotations: Path

    @property
    def mtn(self) -> Path:
        return self.folder / "mtn"

    @property
    def span(self) -> Path:
        return self.folder / "span/bundle.safetensors"

    def proposals(self, table: str = "proposals") -> dict[str, list]:
        """Return the results of the workflow, with times as `propose` writes them."""
        return in_milliseconds(results(self.folder, table))

    def validation(self) -> list[Path]:
        """Return the videos that no network learned from."""
        database = json.loads(self.annotations.read_text())["database"]
        return [path for path in self.videos if database[path.stem]["subset"] == "validation"]


def train(
    folder: Path,
    *density: str,
    demo: DemoSettings = DEMO,
    tones: Sequence[float] = (),
    **changed: Any,
) -> Trained:
    """Run every stage of the workflow, called as its rules call them.

    With `tones`, amplitudes, the videos have them as sound, which `span` hears; `changed` are
    settings of frames and encoders, `density` are flags.
    """
    render_demo(folder / "demo", demo, 1)
    videos = tuple(folder / "demo" / name for name in demo_video_names(DEMO.videos))
    for video in videos if tones else ():
        add_tone(video, tones)
    sound = "--sound" if tones else "--no-sound"
    of_frames = {field.name for field in fields(FrameSettings)}
    frames = FRAMES | {name: value for name, value in changed.items() if name in of_frames}
    encoders = ENCODERS | {name: changed[name] for name in changed.keys() - of_frames}

    def stage(words: str, *more: object, **settings: object) -> None:
        made = [f"{folder}/{word[1:]}" if word.startswith("@") else word for word in words.split()]
        with shards_here():
            assert main([*made, *flag_line(settings).split(), *map(str, more)]) == 0

    known = "--annotations @dataset/annotations.json"
    learned = f"--shards @raw.h5 --videos @dataset/videos.tsv {known} --components 4"
    network = f"temporal train {known} --hidden 16 --epochs 1"
    classes = "--classifier @classifier.safetensors --features @features.h5"
    stage("dataset probe --out @shard.txt --videos", *videos)
    stage("dataset index --shards @shard.txt --annotations @demo/annotations.json --out @dataset")
    stage("video frames --shard @shard.txt --out @frames.h5", **frames)
    stage("video flow --frames @frames.h5 --out @flow.h5", **FLOW)
    stage("features extract --frames @frames.h5 --flow @flow.h5 --out @raw.h5", **encoders)
    # 1. mtn
    stage(f"features rescale {learned} --out @features.h5")
    stage(f"{network} --features @features.h5 --out @temporal --model mtn")
    model = "@temporal/model.safetensors"
    stage(f"temporal predict --model {model} --features @features.h5 --out @prob.h5")
    candidates = "proposals candidates --probabilities @prob.h5 --out @candidates.h5"
    stage(candidates, **CANDIDATES)
    evaluator = f"proposals train --candidates @candidates.h5 {known} --out @pem.safetensors"
    stage(f"{evaluator} --epochs 2 --hidden 16")
    classifier = f"proposals classifier --features @features.h5 {known}"
    stage(f"{classifier} --out @classifier.safetensors --folds 2")
    stage(
        f"proposals generate --candidates @candidates.h5 --evaluator @pem.safetensors {classes} "
        "--out-json @proposals.json --out-csv @proposals.csv",
        **RANKING | SUPPRESSION,
    )
    stage(
        f"proposals bundle --features @features.h5 --temporal {model} --evaluator @pem.safetensors "
        "--classifier @classifier.safetensors --out @mtn/model.safetensors",
        **CANDIDATES | RANKING | SUPPRESSION,
    )
    # 2. span
    stage(f"features sequences {learned} --out @sequences.h5 --window 8 --window-stride 4 {sound}")
    stage(f"{network} --features @sequences.h5 --out @span --model span --members 2")
    model = "@span/model.safetensors"
    stage(f"temporal predict --model {model} --features @sequences.h5 --out @span.h5")
    trained = f"proposals density --probabilities @span.h5 {known} --out @density.safetensors"
    stage(f"{trained} --epochs 1 --hidden 8", *density)
    stage(
        f"proposals select --probabilities @span.h5 --density @density.safetensors {classes} "
        "--out-json @span.json --out-csv @span.csv "
        "--out-events-json @events.json --out-events-csv @events.csv",
        **SELECTION | EVENTS,
    )
    stage(
        f"proposals bundle --features @sequences.h5 --temporal {model} "
        "--density @density.safetensors --classifier @classifier.safetensors "
        "--classifier-features @features.h5 --out @span/bundle.safetensors "
        "--card @span/README.md --card-license mit",
        **SELECTION | EVENTS,
    )
    return Trained(folder, videos, folder / "demo" / "annotations.json")


@dataclass(frozen=True)
class Call:
    """A call of `actionspan propose`: its folder, exit status and lines."""

    out: Path
    status: int
    said: list[str]
    every_error: list[str]

    @property
    def errors(self) -> list[str]:
        """The lines on standard error that are not about progress."""
        lines = self.every_error
        return [line for line in lines if "real time" not in line and not line.endswith(": done")]

    def data(self, name: str) -> Any:
        """Return the content of a script element of the page."""
        return data(self.out, name)


def propose(out: Path, *words: object) -> Call:
    said, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(errors):
        status = main(["propose", *map(str, words), "--out", str(out)])
    return Call(out, status, said.getvalue().splitlines(), errors.getvalue().splitlines())


def results(out: Path, table: str = "proposals") -> dict[str, list]:
    return json.loads((out / f"{table}.json").read_text())["results"]


def data(out: Path, name: str) -> Any:
    text = (out / "index.html").read_text()
    (found,) = re.findall(rf'<script type="application/json" id="{name}">(.*?)</script>', text)
    return json.loads(found)


def in_milliseconds(results: dict[str, list]) -> dict[str, list]:
    return {
        video: [{**row, "segment": [round(time, 3) for time in row["segment"]]} for row in rows]
        for video, rows in results.items()
    }


def work_here(work, items, *, prepare=None, on_message=lambda message: None, **_: object):
    """Do in this process the work that `work_apart` does in others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working, "still_working", on_message)
        for number, item in enumerate(items):
            if prepare:
                prepare()
                prepare = None
            try:
                outcome = Outcome(work(item))
            except JobError:
                raise
            except InputError as error:
                outcome = Outcome(None, str(error))
            yield number, outcome


@contextmanager
def propose_here() -> Iterator[None]:
    """Do all work of the command in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working, "work_apart", work_here)
        yield


@pytest.fixture
def here() -> Iterator[Callable[..., Call]]:
    """Call the command with all of its work in this process."""
    with propose_here():
        yield propose


@pytest.fixture(scope="session")
def films(tmp_path_factory) -> list[Path]:
    """Three small films that tests leave as they are."""
    folder = tmp_path_factory.mktemp("films") / "my films"
    folder.mkdir()
    return [
        encode(folder / "first film.mp4", 100),
        encode(folder / "second.mp4", 60, rate=30),
        encode(folder / "third.mp4", 40),
    ]
