"""Encoders that are tuned in a run of the workflow, and what changed knobs re-run."""

import json
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
import yaml

from runs.conftest import copy_program

pytestmark = pytest.mark.workflow

TINY = yaml.safe_load("""
demo: {videos: 4, shortest_seconds: 5.0, longest_seconds: 6.0}
dataset: {videos_per_shard: 2}
video: {frames: {short_side: 64}, flow: {preset: ultrafast}}
finetune:
  {streams: [rgb, flow], input_size: 32, epochs: 2, temporal_epochs: 1, memory_budget_mb: 600,
   store: {height: 64, width: 80},
   measure: {input_size: 32, snippets: 4, ratios: [0.5], repeats: 1}}
features: {source: finetuned, rescale: {components: 4}}
temporal: {models: [mtn], training: {epochs: 1, hidden: 16}}
proposals: {evaluator: {epochs: 1, hidden: 16}}
evaluation: {baselines: [random], timelines: 1}
""")


def changed(**finetune):
    return {**TINY, "finetune": {**TINY["finetune"], **finetune}}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    project = copy_program(tmp_path_factory.mktemp("tuned"))
    project.make(config=TINY)
    return project


def test_features_are_those_of_the_tuned_encoders_and_frames_are_not_kept(tuned):
    folder = tuned.folder / "results"
    assert not list((folder / "video").rglob("*.h5"))
    for stream in ("rgb", "flow"):
        assert (folder / f"finetune/{stream}/model.safetensors").exists()
    with h5py.File(folder / "features/shards/0000.h5") as file:
        settings = json.loads(file.attrs["settings"])["encoders"]
        video = next(iter(file.values()))
        assert settings["rgb_weights"] == "results/finetune/rgb/model.safetensors"
        assert settings["input_size"] == 32
        assert video["rgb"].shape == video["flow"].shape == (len(video["time"]), 1280)
        assert np.isfinite(video["rgb"][:]).all()
        assert {"frame_difference", "flow_magnitude"} <= set(video)
    plan = json.loads((folder / "finetune/plan.json").read_text())
    assert plan["expected_bytes"] <= plan["budget_bytes"] == 600 * 2**20


def test_a_second_run_does_nothing_and_knobs_re_run_what_they_made(tuned):
    assert tuned.planned(config=TINY) == {}
    epochs = tuned.planned(config=changed(epochs=3))
    assert epochs["finetune_train"] == 1
    assert epochs["features_extract"] == 2
    assert not {"finetune_store", "video_frames"} & set(epochs)
    size = tuned.planned(config=changed(store={"height": 72, "width": 80}))
    assert size["finetune_store"] == size["video_frames"] == 2
    # not what other results are made of
    assert tuned.planned(config=changed(measure={"repeats": 2})) == {}


def test_the_bundle_carries_the_tuned_weights_to_any_folder(tuned, tmp_path):
    video = next((tuned.folder / "results/dataset/demo").glob("*.mp4"), None)
    video = video or next(
        path for path in (tuned.folder / "results/dataset/demo").iterdir() if path.suffix != ".json"
    )
    model = tmp_path / "model.safetensors"
    shutil.copy(tuned.folder / "results/proposals/mtn/model.safetensors", model)
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "actionspan", "propose", video, "--model", model, "--out", "out"],
        cwd=tmp_path / "elsewhere",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    given = json.loads((tmp_path / "elsewhere/out/proposals.json").read_text())
    assert given["results"][video.stem]


def test_ways_are_measured_and_heads_are_tuned_by_name(tuned):
    wanted = ["results/finetune/measurements.md", "results/finetune/online/recurrent/scores.json"]
    tuned.make(*wanted, config=TINY)
    scores = json.loads(tuned.text("results/finetune/online/recurrent/scores.json"))
    assert scores["head"] == "recurrent"
    assert "replay" in tuned.text("results/finetune/measurements.md")
