"""Training: it learns, it is deterministic, and killed at any moment it ends with the same bits."""

import json
import math
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from actionspan import __version__
from actionspan.cli import main
from actionspan.parallel import ParallelSettings
from actionspan.parallel.member import Replica
from actionspan.settings import from_mapping
from actionspan.storage.model_files import read_model
from actionspan.storage.writing import read_tsv
from actionspan.temporal import load_model
from actionspan.temporal import training as train_module
from actionspan.temporal.loss import boundary_loss
from actionspan.temporal.mtn import BaseTEM
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.networks import network_class
from actionspan.temporal.samples import read_samples
from actionspan.temporal.settings import MODELS, TemporalSettings
from actionspan.temporal.training import train
from actionspan.training.trainer import CHECKPOINT, bits_of
from temporal.conftest import Toy, write_toy, write_toy_sequences
from tiers import first_tier
from worlds.warm import python

SMALL = TemporalSettings(hidden=16, epochs=5, batch_size=3, dropout=0.2, output_scale=1.0)
TWELVE = replace(SMALL, epochs=12, learning_rate=0.03, decay_epochs=(), keep="best")


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Toy:
    return write_toy(tmp_path_factory.mktemp("toy"))


def fit(toy: Toy, out: Path, name="mtn", settings=SMALL, **how) -> TemporalNetwork:
    """Train, and return the model of the file."""
    train(toy.features, toy.annotations, name, settings, out, **how)
    return load_model(out / "model.safetensors")


@pytest.fixture(scope="module")
def trained(toy, tmp_path_factory) -> Callable[..., Path]:
    """Return the folder of a run to its end, each made once."""

    @cache
    def run(name="mtn", settings=SMALL):
        folder = tmp_path_factory.mktemp("run")
        fit(toy, folder, name, settings)
        return folder

    return run


def read_log(folder: Path) -> list[dict[str, str]]:
    return read_tsv(folder / "log.tsv")


def same_files(one: Path, two: Path) -> bool:
    """Whether model.safetensors has the same bytes and log.tsv the same numbers, seconds aside."""
    logs = [[{**row, "seconds": ""} for row in read_log(folder)] for folder in (one, two)]
    bytes_ = [(folder / "model.safetensors").read_bytes() for folder in (one, two)]
    return logs[0] == logs[1] and bytes_[0] == bytes_[1]


WHOLE = [name for name in MODELS if not network_class(name).cross_fitted]


@pytest.mark.parametrize("name", first_tier(WHOLE, "origin", "mtn"))
def test_it_learns_a_toy_problem(trained, name):
    changes = {"learning_rate": 0.01, "dropout": 0.0, "decay_epochs": (30,), "fusion_weight": 0.8}
    log = read_log(trained(name, replace(SMALL, epochs=40, **changes)))
    assert [int(row["epoch"]) for row in log] == list(range(1, 41))
    for part, least in (("training_action", 2), ("training_loss", 1.5)):
        assert float(log[-1][part]) < float(log[0][part]) / least


def test_the_model_is_the_best_epoch_by_validation_loss(toy, trained):
    samples, whole = read_samples(toy.features, toy.annotations, TWELVE), trained("mtn", TWELVE)
    losses = [float(row["validation_loss"]) for row in read_log(whole)]
    assert np.argmin(losses) < len(losses) - 1, "the case must tell best from last"
    last = trained("mtn", replace(TWELVE, keep="last"))
    for out, loss in ((whole, min(losses)), (last, losses[-1])):
        model = load_model(out / "model.safetensors")
        replica = Replica(model, torch.optim.Adam(model.parameters()))
        how = {"digest": "", "learning_rate": TWELVE.learning_rate_in, "kept": "last"}
        trainer = train_module.TemporalTrainer(
            model=model, replica=replica, samples=samples, settings=TWELVE, **how
        )
        assert trainer.validate()["validation_loss"] == pytest.approx(loss, rel=1e-6)


def test_without_validation_videos_the_last_epoch_is_kept(make_toy, tmp_path, capsys):
    toy, states = make_toy("no_validation", validation=0), []
    for keep in ("best", "last"):
        model = fit(toy, tmp_path / keep, "origin", replace(SMALL, keep=keep))
        states.append(model.state_dict())
        warned = "no validation video; the last epoch is kept" in capsys.readouterr().err
        assert warned == (keep == "best")
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert math.isnan(float(read_log(tmp_path / "best")[0]["validation_loss"]))


def test_the_average_is_of_the_last_epochs_alone(trained):
    settings = replace(SMALL, decay_epochs=(), average_epochs=2)
    fourth, fifth, average = (
        load_model(trained("mtn", replace(settings, **changes)) / "model.safetensors").state_dict()
        for changes in ({"epochs": 4}, {}, {"keep": "average"})
    )
    for name, value in average.items():
        torch.testing.assert_close(value, (fourth[name] + fifth[name]) / 2)
    assert any(not torch.equal(average[name], fifth[name]) for name in average)


def test_one_step_is_adam_on_the_gradient_of_the_batch(toy, tmp_path):
    # One epoch of one batch: Adam's first step moves each weight by lr·g / (|g| + ε).
    settings = TemporalSettings(
        hidden=4, epochs=1, batch_size=8, weight_decay=0.0, feature_noise=0.0, keep="last"
    )
    model, _ = train_module.start("mtn", 6, settings)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    after = fit(toy, tmp_path, "mtn", settings).state_dict()
    samples = read_samples(toy.features, toy.annotations, settings)
    features, labels = torch.from_numpy(toy.array[:8]), torch.from_numpy(samples.labels[:8])
    boundary_loss(model(features), labels.float()).total.backward()
    for key, parameter in model.named_parameters():
        step = settings.learning_rate * parameter.grad / (parameter.grad.abs() + 1e-8)
        torch.testing.assert_close(after[key], before[key] - step, rtol=1e-3, atol=2e-6)


class Share(Replica):
    """The first rank of three, whose optimiser does nothing."""

    def step(self):
        pass


@pytest.mark.parametrize("sums", [True, False])
def test_learners_that_average_models_take_the_loss_of_their_own_share(toy, sums):
    settings = replace(SMALL, dropout=0.0)
    model, optimiser = train_module.start("origin", 6, settings)
    samples = read_samples(toy.features, toy.annotations, settings)
    features, labels = torch.from_numpy(toy.array[:6]), torch.from_numpy(samples.labels[:6])
    rows = slice(0, 2)
    own, whole = labels[rows], labels if sums else None
    expected = boundary_loss(model(features[rows]), own, whole).total
    gradients = torch.autograd.grad(expected, list(model.parameters()))
    replica = Share(model, optimiser)
    replica.sums_gradients = sums
    loss = train_module.training_step(model, replica, features[rows], labels, rows)
    assert float(loss.total.detach()) == float(expected.detach())
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    if sums:
        alone = boundary_loss(model(features[rows]), own).total
        assert abs(float(alone.detach()) / float(expected.detach()) - 3) < 1


def test_noise_comes_from_the_seed_and_only_training_has_it(toy, trained, tmp_path, monkeypatch):
    noisy = replace(SMALL, feature_noise=0.5, dropout=0.0)
    seen: dict[bool, list] = {True: [], False: []}
    forward = BaseTEM.forward

    def watched(model, features):
        seen[model.training].append(features.detach().clone())
        return forward(model, features)

    with monkeypatch.context() as patch:
        patch.setattr(BaseTEM, "forward", watched)
        fit(toy, tmp_path, "origin", noisy)
    original = torch.from_numpy(toy.array)
    assert all(any(torch.equal(one, row) for row in original[8:]) for one in seen[False][0])
    given = torch.cat(seen[True])
    noise = given - torch.stack(
        [min(original, key=lambda row: float((one - row).square().mean())) for one in given]
    )
    assert abs(float(noise.mean())) < 0.01
    deviation = 0.5 * math.sqrt(noise.shape[-1] / 256)
    assert float(noise.std()) == pytest.approx(deviation, rel=0.02)
    assert not torch.equal(noise[0], noise[8])  # of another epoch
    assert same_files(trained("origin", noisy), tmp_path)


def test_the_files_say_what_made_them_and_the_callers_torch_is_left_as_it_was(toy, tmp_path):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    train(toy.features, toy.annotations, "dense", SMALL, tmp_path, threads=1)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()
    content = read_model(tmp_path / "model.safetensors").value
    expected = {"model": "dense", "channels": 6, "actionspan_version": __version__}
    assert content | expected == content
    assert from_mapping(TemporalSettings, content["settings"]) == SMALL
    timing = json.loads((tmp_path / "timing.json").read_text())
    expected = {"samples": 8, "validation_samples": 4, "threads": 1, "epochs": 5}
    expected |= {"epochs_here": 5, "exchange": "none", "ranks": 1}
    assert timing | expected == timing
    assert len(timing["epoch_seconds"]) == 5
    parts = ("t1", "data", "validation", "checkpoint", "preparation")
    (rank,) = timing["per_rank"]
    assert 0 < sum(rank["parts"][f"{part}_seconds"] for part in parts) <= timing["seconds"]
    assert (rank["t2"], rank["host"]) == (0, platform.node())
    assert rank["t1"] + rank["t3"] == pytest.approx(timing["seconds"])
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["log.tsv", "model.safetensors", "timing.json"]


def test_the_learning_rate_falls_after_the_named_epochs():
    settings = TemporalSettings(decay_epochs=(7, 14))
    rates = [settings.learning_rate_in(epoch) for epoch in (1, 7, 8, 14, 15, 20)]
    assert rates == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5])


def test_a_run_has_the_seconds_of_the_worker_that_computed_longest():
    def rank(role, t1, t2, t3):
        parts = {"seconds": t1 + t2 + t3}
        return {"role": role, "t1": t1, "t2": t2, "t3": t3, "parts": parts}

    ranks = [rank("server", 1, 30, 1), rank("worker", 8, 3, 1), rank("worker", 10, 1, 2)]
    whole = train_module.whole_timing(ranks)
    assert [whole[f"{part}seconds"] for part in ("t1_", "t2_", "t3_", "")] == [10, 1, 2, 13]


def test_the_same_run_gives_the_same_bytes_and_another_seed_does_not(toy, trained, tmp_path):
    whole = trained()
    torch.manual_seed(2)
    fit(toy, tmp_path)
    assert same_files(whole, tmp_path)
    assert not same_files(whole, trained("mtn", replace(SMALL, seed=2)))


@pytest.mark.full
def test_two_threads_give_the_same_bytes_every_time(toy, tmp_path):
    for out in ("one", "two"):
        fit(toy, tmp_path / out, "mtn", threads=2)
    assert same_files(tmp_path / "one", tmp_path / "two")


@contextmanager
def stopped_in(epoch: int) -> Iterator[None]:
    """Make training fail in the middle of an epoch, after its first step."""
    step, count = train_module.training_step, 0

    def failing(*arguments):
        nonlocal count
        count += 1
        if count == 3 * (epoch - 1) + 2:  # three steps an epoch
            raise KeyboardInterrupt
        return step(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_module, "training_step", failing)
        with pytest.raises(KeyboardInterrupt):
            yield


@pytest.mark.parametrize("epoch", first_tier([1, 3, 5], 3))
@pytest.mark.parametrize(("name", "keep"), [("origin", "best"), ("mtn", "average"), ("se", "last")])
def test_a_stopped_run_goes_on_to_the_same_bits(toy, trained, tmp_path, name, keep, epoch):
    settings = replace(SMALL, keep=keep, average_epochs=3)
    with stopped_in(epoch):
        fit(toy, tmp_path, name, settings)
    assert (tmp_path / CHECKPOINT).exists() == (epoch > 1)
    fit(toy, tmp_path, name, settings)
    assert same_files(trained(name, settings), tmp_path)
    assert json.loads((tmp_path / "timing.json").read_text())["epochs_here"] == 5 - (epoch - 1)
    assert not (tmp_path / CHECKPOINT).exists()


@pytest.mark.parametrize("change", ["settings", "features", "model"])
def test_a_checkpoint_of_something_else_is_ignored_with_a_line(
    toy, make_toy, tmp_path, capsys, change
):
    with stopped_in(3):
        fit(toy, tmp_path / "out")
    data = make_toy("other", seed=1) if change == "features" else toy
    settings = replace(SMALL, learning_rate=0.002) if change == "settings" else SMALL
    name = "dense" if change == "model" else "mtn"
    capsys.readouterr()
    fit(data, tmp_path / "out", name, settings)
    assert "made with different settings or data; starting over" in capsys.readouterr().err
    fit(data, tmp_path / "fresh", name, settings)
    assert same_files(tmp_path / "out", tmp_path / "fresh")


LENGTHS = """
import resource
import sys
from pathlib import Path
import torch
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import train

features, annotations, out = map(Path, sys.argv[2:])
train(features, annotations, sys.argv[1], TemporalSettings(hidden=8, epochs=1), out)
torch.set_num_threads(1)
layer = torch.nn.Conv1d(640, 640, 3, dilation=4, groups=10)
for number in range(80):
    if number == 20:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    layer(torch.ones(1, 640, 2000 + number, requires_grad=True)).sum().backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "most"),  # MiB; 600 where all kernels are kept, 110 and more where 32 are
    [("mtn", 300), ("span", 60)],
)
def test_each_length_of_a_batch_does_not_cost_memory_for_ever(tmp_path, model, most):
    toy = (write_toy if model == "mtn" else write_toy_sequences)(tmp_path)
    command = [python(), "-c", LENGTHS, model, toy.features, toy.annotations, tmp_path]
    environment = {name: value for name, value in os.environ.items() if "ONEDNN" not in name}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout.splitlines()[-1]) < most


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--dropout 1", "dropout 1.0: from 0 to below 1"),
        ("--decay-epochs 2 1", "decay_epochs [2, 1]: rising numbers, each at least 1"),
        ("--threads 0", "--threads 0: at least 1"),
        ("--annotations none.json", "none.json: cannot be read: No such file or directory\n"),
    ],
)
def test_a_wrong_flag_is_one_line(toy, tmp_path, capsys, flags, line):
    words = f"temporal train --features {toy.features} --annotations {toy.annotations}"
    assert main(f"{words} --out {tmp_path}/out {flags}".split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("actionspan temporal: ")
    assert line in error
    assert error.count("\n") == 1


def test_a_checkpoint_belongs_to_its_exchange_ranks_and_buckets():
    base = ParallelSettings()
    ring, less = bits_of("ring", base, 2), replace(base, bucket_kib=1)
    assert bits_of("ring", base, 3) != ring
    assert bits_of("mpi", base, 2) != ring
    assert bits_of("ring", less, 2) != ring
    assert bits_of("ring", replace(base, stall_seconds=9.0, overlap=True), 2) == ring
    assert bits_of("none", less, 1) == bits_of("none", base, 1)
