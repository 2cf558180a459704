"""Classifiers trained in a run of the workflow, from segments for scores and from trimmed clips."""

import json
import shutil

import h5py
import pytest
import yaml

from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings
from actionspan.storage.model_files import read_model
from runs.conftest import copy_program

pytestmark = pytest.mark.workflow

TINY = yaml.safe_load("""
demo: {videos: 4, shortest_seconds: 5.0, longest_seconds: 6.0}
dataset: {videos_per_shard: 2}
video: {frames: {short_side: 64}, flow: {preset: ultrafast}}
recognition:
  store: {height: 64, width: 80, stack: 2}
  training: {epochs: 2, batch_size: 2, input_size: 64, network: resnet18, pretrained: false}
features: {source: scores, encoders: {input_size: 64}, rescale: {components: 4}}
temporal: {models: [origin], training: {epochs: 1, hidden: 16}}
proposals: {evaluator: {epochs: 1, hidden: 16}}
evaluation: {baselines: [random], timelines: 1}
""")


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A run whose features are the scores of classifiers that it trains, on two ranks."""
    project = copy_program(tmp_path_factory.mktemp("scored"))
    project.make(config=TINY)
    return project


def test_features_are_the_scores_of_the_trained_classifiers(scored):
    models = {}
    for stream in ("rgb", "flow"):
        path = scored.folder / f"results/recognition/{stream}/model.safetensors"
        models[stream] = read_model(path).value
    classes = models["rgb"]["classes"]
    assert classes[-1] == "background"
    assert len(classes) > 1
    assert models["flow"]["state_dict"]["conv1.weight"].shape[1] == 2 * 2
    with h5py.File(scored.folder / "results/features/shards/0000.h5") as file:
        for video in file.values():
            assert video["rgb"].shape[1] == video["flow"].shape[1] == len(classes)
    assert json.loads(scored.text("results/evaluation/summary.json"))["origin"]["AUC"] >= 0


def test_a_changed_knob_of_training_re_runs_only_what_follows(scored):
    assert scored.planned(config=TINY) == {}
    changed = {**TINY, "recognition": {**TINY["recognition"], "learners": 1}}
    planned = scored.planned("results/recognition/flow/model.safetensors", config=changed)
    assert planned == {"recognition_train": 2}


def test_trimmed_clips_by_class_train_learners_in_one_process(tmp_path):
    project = copy_program(tmp_path)
    settings = DemoSettings(videos=6, shortest_seconds=5.0, longest_seconds=5.5)
    render_demo(tmp_path / "all", settings, 1)
    for number, video in enumerate(sorted((tmp_path / "all").glob("*.mp4"))):
        place = tmp_path / "clips" / ("walk", "stand")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(video, place / f"v_{number}.mp4")
    (tmp_path / "clips/walk/broken.mp4").write_bytes(b"no video")
    recognition = {**TINY["recognition"], "clips": "clips", "in_process": True}
    config = {**TINY, "recognition": recognition, "features": {}}
    targets = ["results/recognition/flow/model.safetensors"]
    project.make(*targets, config=config)
    scores = json.loads(project.text("results/recognition/flow/scores.json"))
    assert scores["classes"] == ["stand", "walk"]
    assert not (tmp_path / "results/video").exists()
    log = "".join(path.read_text() for path in (tmp_path / "results/logs").rglob("*.log"))
    assert "broken" in log
    shards = len(list((tmp_path / "results/recognition/clips").glob("*.h5")))
    shutil.copy(tmp_path / "clips/walk/v_0.mp4", tmp_path / "clips/walk/v_new.mp4")
    assert 0 < project.planned(*targets, config=config)["recognition_clips"] < shards
