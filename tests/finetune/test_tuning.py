"""Tuning: it learns, keeps its budget, and killed at any moment it ends with the same bits."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.encoders import build_network
from actionspan.features.settings import RescaleSettings
from actionspan.finetune import preparation, trainer, tuning
from actionspan.finetune.preparation import encode
from actionspan.finetune.snippets import SnippetStore
from actionspan.finetune.tuning import PREPARED, tune
from actionspan.finetune.videos import divide_videos
from actionspan.storage.model_files import read_model
from actionspan.storage.writing import read_tsv
from actionspan.temporal.networks import load_model
from actionspan.training.trainer import CHECKPOINT
from finetune.toy import Toy, write_toy
from tiers import first_tier


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Toy:
    return write_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def tuned(toy, tmp_path_factory) -> Path:
    """The folder of a tuning of the toy as it is."""
    tune(*toy.arguments, folder := tmp_path_factory.mktemp("tuned"))
    return folder


def log_of(folder: Path) -> list[dict[str, str]]:
    return read_tsv(folder / "log.tsv")


def scores_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "scores.json").read_text())


def results(folder: Path, streams=("rgb",)) -> list[object]:
    """All that a tuning leaves, but seconds and what the system counts."""
    unlike = ("seconds", "reading_seconds", "learning_seconds", "peak_mb")
    log = [{key: row[key] for key in row if key not in unlike} for row in log_of(folder)]
    names = [f"{stream}/model.safetensors" for stream in streams]
    names += ["temporal.safetensors", "scores.json"]
    return [log, *((folder / name).read_bytes() for name in names)]


def moves(toy: Toy, folder: Path) -> dict[str, float]:
    """How far the weights of each layer have moved at most."""
    paths = (toy.encoders.rgb_weights, folder / "rgb/model.safetensors")
    before, after = (build_network("tiny", path, 3, "pooled")[0].state_dict() for path in paths)
    layers = ("conv1", "conv2", "conv3")
    weights = {layer: f"{layer}.weight" for layer in layers}
    return {each: float((after[k] - before[k]).abs().max()) for each, k in weights.items()}


@pytest.mark.full
def test_it_learns_more_than_untuned_features_show(toy, tmp_path):
    for way in ("full", "frozen"):
        chosen = toy.with_settings(epochs=30, way=way, keep="last")
        tune(*chosen.arguments, tmp_path / way)
    losses = {way: float(log_of(tmp_path / way)[-1]["training_loss"]) for way in ("full", "frozen")}
    assert losses["full"] < 0.6 * losses["frozen"]
    assert moves(toy, tmp_path / "full")["conv2"] > 0
    assert moves(toy, tmp_path / "frozen")["conv2"] == 0


RESUMED: list[dict[str, Any]] = [
    {},
    {"execution": "split"},
    *({"way": way} for way in ("sbp_checkpoint", "checkpoint", "frame_dropout", "bank")),
    {"sampler": "importance"},
    {"sampler": "diverse_feature", "gradient_weight": "unbiased"},
    {"streams": ("rgb", "flow"), "precision": "bfloat16"},
    {"keep_ratio": "auto", "execution": "auto"},
    {"keep": "average", "average_epochs": 2},
    {"keep": "best", "choosing_fraction": 0.4},
]


@pytest.mark.parametrize("changed", first_tier(RESUMED, RESUMED[8]))
def test_killed_it_resumes_to_the_same_bits(toy, tmp_path, monkeypatch, changed):
    toy, streams = toy.with_settings(**changed), changed.get("streams", ("rgb",))
    tune(*toy.arguments, tmp_path / "whole")
    step, seen = trainer.TuningTrainer._step, []

    def killed(*arguments: object) -> float:
        seen.append(1)
        if len(seen) == 4:  # in the second epoch
            raise KeyboardInterrupt
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(trainer.TuningTrainer, "_step", killed)
        with pytest.raises(KeyboardInterrupt):
            tune(*toy.arguments, tmp_path / "killed")
    prepare = preparation.prepare

    def prepared(encoders, task, piece, comm, cached, keep):
        assert cached is not None, "the first pass over all videos is made once"
        return prepare(encoders, task, piece, comm, cached, keep)

    monkeypatch.setattr(preparation, "prepare", prepared)
    tune(*toy.arguments, tmp_path / "killed")
    assert results(tmp_path / "killed", streams) == results(tmp_path / "whole", streams)
    assert not (tmp_path / "killed" / CHECKPOINT).exists()
    assert not (tmp_path / "killed" / PREPARED).exists()


def test_a_checkpoint_of_other_settings_is_not_used(toy, tuned, tmp_path, monkeypatch, capsys):
    other = toy.with_settings(encoder_rate=0.001, epochs=1)
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "write_results", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            tune(*other.arguments, tmp_path)
    tune(*toy.arguments, tmp_path)
    assert "different settings or data; starting over" in capsys.readouterr().err
    assert results(tmp_path) == results(tuned)


def test_encoders_have_a_rate_of_their_own_and_frozen_stages_keep_their_bits(toy, tmp_path):
    """Adam's steps are about as long as its rate: six of them."""
    for rate, least, most in ((1e-6, 0, 1e-5), (1e-3, 1e-3, 1e-2)):
        chosen = toy.with_settings(encoder_rate=rate, keep="last", frozen_stages=1)
        tune(*chosen.arguments, tmp_path / str(rate))
        moved = moves(toy, tmp_path / str(rate))
        assert moved["conv1"] == 0
        assert least < moved["conv2"] < most


def test_the_log_and_plan_have_the_kept_snippets(toy, tuned):
    plan, log = json.loads((tuned / "plan.json").read_text()), log_of(tuned)
    assert plan["expected_bytes"] <= plan["budget_bytes"] == 200 * 2**20
    assert [int(row["epoch"]) for row in log] == [1, 2, 3]
    # ⌊T / 2 + ½⌋ of the five videos that are learned from
    held = divide_videos(SnippetStore([toy.store]), toy.annotations)
    kept = sum((len(video.times) + 1) // 2 for video in held.training)
    assert {int(row["kept_snippets"]) for row in log} == {kept}
    assert all(0 < float(row["saved_mb"]) * 1e6 <= plan["expected_bytes"] for row in log)


def test_the_network_trained_with_the_encoders_can_be_loaded(tuned):
    assert load_model(tuned / "temporal.safetensors").channels == 8
    with h5py.File(tuned / "scores.h5") as file:
        assert sorted(file) == ["v", "w"]
        assert file["v/scores"].shape == file["v/labels"].shape == (20, 1)


def test_the_best_epoch_is_chosen_by_videos_that_are_not_scored(toy, tmp_path):
    tune(*toy.with_settings(epochs=6, keep="best").arguments, tmp_path)
    log, scores = log_of(tmp_path), scores_of(tmp_path)
    best = max(range(6), key=lambda row: (float(log[row]["choosing_precision"]), -row))
    expected = float(log[best]["validation_precision"])
    assert scores["mean_average_precision"] == pytest.approx(expected)
    assert scores["videos"] == 2


@pytest.mark.parametrize("head", ["recurrent", "attention"])
def test_online_heads_are_tuned_and_score_each_snippet(toy, tmp_path, head):
    tune(*toy.with_settings(epochs=1).arguments, tmp_path, head=head)
    with h5py.File(tmp_path / "scores.h5") as file:
        assert list(file.attrs["classes"]) == ["stripes"]
        assert file["v/scores"].shape == (11, 1)
        # two of six snippets of w, say, lie in its instance
        instance = json.loads(toy.annotations.read_text())["database"]["w"]["annotations"][0]
        first, last = (round(edge / 0.4) for edge in instance["segment"])
        assert np.flatnonzero(file["w/labels"][:, 0]).tolist() == list(range(first, last))
    assert scores_of(tmp_path)["head"] == head


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"frozen_stages": 9}, "frozen_stages is 9, but tiny has 3 stages, .* at most 2"),
        (
            {"encoder_rate": 1e18, "temporal_rate": 1e18, "way": "full"},
            "loss is nan in epoch 1; lower finetune.encoder_rate and temporal_rate",
        ),
    ],
)
def test_a_tuning_that_cannot_be_is_one_line(toy, tmp_path, changed, message):
    with pytest.raises(InputError, match=rf"^[^\n]*{message}[^\n]*\Z"):
        tune(*toy.with_settings(**changed).arguments, tmp_path)


def test_the_least_budget_that_is_named_is_enough(toy, tmp_path):
    small = toy.with_settings(memory_budget_mb=1, execution="auto")
    message = r"^[^\n]*finetune: [^\n]* needs at least \d+ MB[^\n]*\Z"
    with pytest.raises(InputError, match=message) as raised:
        tune(*small.arguments, tmp_path)
    least = int(str(raised.value).partition("at least ")[2].split()[0])
    tune(*small.with_settings(memory_budget_mb=least, epochs=1).arguments, tmp_path)


@pytest.mark.parametrize("lengths", [{"a": 1, "b": 1, "v": 1}, {"a": 40}, {"a": 2, "b": 30}])
def test_videos_of_any_length_and_number(tmp_path, lengths):
    toy = write_toy(tmp_path, lengths).with_settings(epochs=1)
    tune(*toy.arguments, tmp_path / "out")
    assert (tmp_path / "out/rgb/model.safetensors").exists()


@pytest.fixture
def changed(toy, tmp_path) -> Callable[..., Toy]:
    """The toy with annotations, some of whose videos are another subset, empty or later."""

    def change(names: str, *, subset: str = "", emptied: bool = False, later: float = 0) -> Toy:
        content = json.loads(toy.annotations.read_text())
        for name in names:
            entry = content["database"][name]
            entry["subset"] = subset or entry["subset"]
            for instance in entry["annotations"]:
                instance["segment"] = [edge + later for edge in instance["segment"]]
            if emptied:
                entry["annotations"] = []
        (tmp_path / "changed.json").write_text(json.dumps(content))
        return replace(toy, annotations=tmp_path / "changed.json")

    return change


def test_scores_without_validation_videos_or_of_empty_ones_are_null(changed, tmp_path):
    none = changed("vw", subset="training").with_settings(epochs=1)
    tune(*none.arguments, tmp_path / "none")
    scores = scores_of(tmp_path / "none")
    assert (scores["videos"], scores["rows"], scores["mean_average_precision"]) == (0, 0, None)
    assert (tmp_path / "none/scores.h5").exists()
    empty = changed("vw", emptied=True).with_settings(epochs=1)
    tune(*empty.arguments, tmp_path / "empty")
    assert scores_of(tmp_path / "empty")["mean_average_precision"] is None
    assert "NaN" not in (tmp_path / "empty/scores.json").read_text()


def test_where_no_video_can_choose_the_last_epoch_is_kept(changed, tmp_path, capsys):
    last = changed("abde", emptied=True)
    best = last.with_settings(keep="best", choosing_fraction=0.5)
    tune(*best.arguments, tmp_path / "best")
    assert "the last epoch is kept" in capsys.readouterr().err
    tune(*last.arguments, tmp_path / "last")
    made, wanted = (
        read_model(tmp_path / each / "rgb/model.safetensors").value for each in ("best", "last")
    )
    for name, value in wanted["state_dict"].items():
        assert torch.equal(made["state_dict"][name], value)


@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.5, 0.99])
def test_held_out_videos_act_and_leave_some_that_do(changed, fraction):
    toy = changed("abc", emptied=True)
    videos = divide_videos(SnippetStore([toy.store]), toy.annotations, fraction)
    assert any(video.acts for video in videos.choosing)
    assert any(video.acts for video in videos.training)
    assert len(videos.choosing) == min(4, max(1, round(5 * fraction)))


@pytest.mark.parametrize("how", [{"emptied": True}, {"later": 1000}])
def test_nothing_to_learn_from_is_one_line(changed, how, tmp_path):
    with pytest.raises(InputError, match=r"nothing to learn from[^\n]*\Z"):
        tune(*changed("abcdevw", **how).arguments, tmp_path / "out")


def test_training_videos_without_snippets_are_named(toy, tmp_path, capsys):
    content = json.loads(toy.annotations.read_text())
    content["database"]["lost"] = content["database"]["a"]
    (tmp_path / "more.json").write_text(json.dumps(content))
    divide_videos(SnippetStore([toy.store]), tmp_path / "more.json")
    assert "without snippets: 1 training videos: lost" in capsys.readouterr().err


def test_windows_are_scored_once_and_not_beyond_the_end(toy, tmp_path):
    windows = RescaleSettings(grid="windows", steps=8, stride=4, components=8)
    tune(*replace(toy, rescaling=windows).with_settings(epochs=1).arguments, tmp_path)
    with h5py.File(tmp_path / "scores.h5") as file:
        assert file["v/scores"].shape == (11, 1)  # snippets
        assert file["w/scores"].shape == (6, 1)


def test_the_budget_holds_while_videos_are_scored(toy, tmp_path, monkeypatch):
    encoded = []
    monkeypatch.setattr(
        trainer, "encode", lambda *arguments: encoded.append(arguments[-1]) or encode(*arguments)
    )
    tune(*toy.with_settings(epochs=1).arguments, tmp_path)
    assert set(encoded) == {json.loads((tmp_path / "plan.json").read_text())["piece"]}


def test_the_memory_of_the_device_is_watched(toy, tmp_path, monkeypatch):
    watched = []

    def memory(device):
        """It grows by 7 MB beyond what it held, which is more than any budget."""
        watched.append(Mock(device=device, held=lambda: 10**12, peak=lambda: 10**12 + 7_000_000))
        watched[-1].give_back.side_effect = AssertionError("there is room")
        return watched[-1]

    for module in (tuning, trainer):
        monkeypatch.setattr(module, "DeviceMemory", memory)
    tune(*toy.with_settings(epochs=1).arguments, tmp_path)
    assert [float(row["peak_mb"]) for row in log_of(tmp_path)] == [7.0]
    assert {each.device.type for each in watched} == {"cpu"}
    assert len(watched) == 2
