"""THUMOS14's variant as its example configures it, on a tiny set: windows from end to end."""

import csv
import json
import os
import subprocess
import sys
from collections import defaultdict

import h5py
import numpy as np
import pytest
import yaml

from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings, demo_video_names
from actionspan.features.steps import window_starts
from runs.conftest import ROOT, copy_program
from video.test_snippets import snippet_count
from workflow.conftest import merged

pytestmark = pytest.mark.workflow

DEMO = DemoSettings(videos=6, shortest_seconds=10.0, longest_seconds=12.0)
# What makes the example's run a small one: videos have 50 to 60 snippets, not thousands.
SMALL = yaml.safe_load("""
dataset: {videos: my videos, annotations: annotations, videos_per_shard: 7}
video: {frames: {short_side: 64}, flow: {preset: ultrafast}}
features:
  encoders: {input_size: 64}
  rescale: {steps: 20, stride: 10, rest: 4, components: 8}
temporal: {models: [mtn], training: {epochs: 2, hidden: 16}}
proposals: {candidates: {shortest: 2, longest: 30}, evaluator: {epochs: 2, hidden: 16}}
evaluation: {baselines: [random, tag]}
""")
WANTED = (
    "results/features/features.h5",
    "results/temporal/mtn/none-1/probabilities.h5",
    "results/proposals/mtn/model.safetensors",
    "results/evaluation/mtn.json",
    "results/evaluation/tag.json",
    "results/evaluation/random.json",
    "results/evaluation/timelines/mtn/broken.svg",
    "results/proposals/mtn/chapters/broken.vtt",
)


@pytest.fixture(scope="module")
def config():
    example = yaml.safe_load((ROOT / "examples/thumos14.yaml").read_text())
    return merged(example, SMALL)


@pytest.fixture(scope="module")
def unmade(tmp_path_factory):
    """The program, and six videos with annotations in THUMOS14's own form and names."""
    project = copy_program(tmp_path_factory.mktemp("thumos14"))
    render_demo(project.folder / "demo", DEMO, 2)
    videos, texts = project.folder / "my videos", project.folder / "annotations"
    videos.mkdir()
    texts.mkdir()
    database = json.loads(project.text("demo/annotations.json"))["database"]
    lines = defaultdict(list)
    # the fullest two are the test set; one has no instance, and so is in no file
    paths = [project.folder / "demo" / file for file in demo_video_names(DEMO.videos)]
    paths.sort(key=lambda path: -len(database[path.stem]["annotations"]))
    for number, path in enumerate(paths, start=1):
        kind, short = ("test", "test") if number <= 2 else ("validation", "val")
        name = f"video_{kind}_{number:07d}"
        path.rename(videos / f"{name}{path.suffix}")
        for instance in database[path.stem]["annotations"]:
            start, end = instance["segment"]
            lines[f"{instance['label']}_{short}.txt"].append(f"{name} {start:.1f} {end:.1f}\n")
    for file, rows in lines.items():
        (texts / file).write_text("".join(rows))
    (videos / "broken.mp4").write_text("not a video")
    return project


@pytest.fixture(scope="module")
def run(unmade, config):
    unmade.make(*WANTED, config=config)
    return unmade


def snippets(run) -> dict[str, int]:
    """Return how many snippets of 5 frames each video has."""
    rows = csv.DictReader(run.text("results/dataset/videos.tsv").splitlines(), delimiter="\t")
    return {row["video_id"]: snippet_count(int(row["frames"]), 5) for row in rows}


def test_features_are_windows_and_probabilities_whole_videos(run):
    expected = {
        name: window_starts(length, 20, 10, rest=4).tolist()
        for name, length in snippets(run).items()
    }
    assert min(map(len, expected.values())) > 2
    with h5py.File(run.folder / "results/features/features.h5") as file:
        assert file["features"].shape == (sum(map(len, expected.values())), 20, 16)
        assert np.isfinite(file["features"][:]).all()
        windows = defaultdict(list)
        names = file["video_id"].asstr()[:]
        for name, start in zip(names, file["first_step"][:].tolist(), strict=True):
            windows[name].append(start)
    assert windows == expected
    with h5py.File(run.folder / "results/temporal/mtn/none-1/probabilities.h5") as file:
        parts = np.split(file["probabilities"][:], file["offsets"][1:-1])
        found = dict(zip(file["video_id"].asstr()[:], parts, strict=True))
    assert {name: len(values) for name, values in found.items()} == snippets(run)
    for name, values in found.items():
        covered = expected[name][-1] + 20  # up to `rest` snippets at the end are in no window
        assert len(values) - covered <= 4
        assert ((values[:covered] > 0) & (values[:covered] < 1)).all()
        assert not values[covered:].any()


def test_every_video_has_proposals_and_every_protocol_a_value(run):
    entries = json.loads(run.text("results/dataset/annotations.json"))["database"]
    durations = {name: entry["duration"] for name, entry in entries.items()}
    made = json.loads(run.text("results/proposals/mtn/proposals.json"))["results"]
    assert set(made) == set(durations)
    for name, rows in made.items():
        step = durations[name] / snippets(run)[name]
        assert rows
        for row in rows:
            start, end = row["segment"]
            assert 0 <= start < end <= durations[name] + 1e-6
            assert 2 - 1e-3 <= (end - start) / step <= 30 + 1e-3
    # mtn lists fewer than 100 proposals a video on average, so later values are null
    for method, numbers in (("mtn", (50,)), ("random", (50, 100, 200, 500, 1000))):
        record = json.loads(run.text(f"results/evaluation/{method}.json"))
        assert record["videos"] == 2
        values = [record["thumos14"][f"AR@{number}"] for number in numbers]
        assert 0 < values[0] <= values[-1] <= 1
        assert values == sorted(values)
    assert json.loads(run.text("results/evaluation/tag.json"))["proposals"] > 0


def test_propose_gives_the_bits_of_the_workflow(run, tmp_path):
    videos = sorted((run.folder / "my videos").glob("video_*"))[:2]
    words = ["propose", *videos, "--model", run.folder / "results/proposals/mtn", "--out", tmp_path]
    done = subprocess.run(
        [sys.executable, "-m", "actionspan", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(run.folder / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "proposals.json").read_text())["results"]
    expected = json.loads(run.text("results/proposals/mtn/proposals.json"))["results"]
    for path in videos:  # to the bit but for times, which are in milliseconds
        for row in expected[path.stem]:
            row["segment"] = [round(time, 3) for time in row["segment"]]
        assert made[path.stem] == expected[path.stem]
    assert len(made) == len(videos)
