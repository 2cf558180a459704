"""Training: it learns, it is deterministic, and killed at any moment it ends with the same bits."""

import csv
import json
import math
import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from actionspan import __version__
from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.parallel import ParallelSettings
from actionspan.parallel.member import Replica
from actionspan.temporal import load_model
from actionspan.temporal import training as train_module
from actionspan.temporal.loss import boundary_loss
from actionspan.temporal.mtn import BaseTEM
from actionspan.temporal.networks import network_class
from actionspan.temporal.samples import read_samples
from actionspan.temporal.settings import MODELS, TemporalSettings
from actionspan.temporal.training import train
from actionspan.training.fit import CHECKPOINT, bits_of
from temporal.conftest import write_toy, write_toy_sequences
from tiers import first_tier
from worlds.warm import python

SMALL = TemporalSettings(hidden=16, epochs=5, batch_size=3, dropout=0.2, output_scale=1.0)


def read_log(folder: Path) -> list[dict[str, str]]:
    with (folder / "log.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def same_files(one: Path, two: Path) -> bool:
    """Whether model.pt has the same bytes and log.tsv the same numbers, seconds aside."""
    logs = [[{**row, "seconds": ""} for row in read_log(folder)] for folder in (one, two)]
    bytes_ = [(folder / "model.pt").read_bytes() for folder in (one, two)]
    return logs[0] == logs[1] and bytes_[0] == bytes_[1]


def validation_losses(folder, samples, settings):
    model = load_model(folder / "model.pt")
    replica = Replica(torch.optim.Adam(model.parameters()))
    return train_module.validate(model, replica, samples, settings)


WHOLE = [name for name in MODELS if not network_class(name).cross_fitted]


@pytest.mark.parametrize("name", first_tier(WHOLE, "origin", "mtn", "attention"))
def test_it_learns_a_toy_problem(toy, tmp_path, name):
    settings = replace(
        SMALL, epochs=40, learning_rate=0.01, dropout=0.0, decay_epochs=(30,), fusion_weight=0.8
    )
    train(toy.features, toy.annotations, name, settings, tmp_path / "out")
    log = read_log(tmp_path / "out")
    assert [int(row["epoch"]) for row in log] == list(range(1, 41))
    first, last = (float(log[row]["training_action"]) for row in (0, -1))
    assert last < first / 2
    assert float(log[-1]["training_loss"]) < float(log[0]["training_loss"]) / 1.5


def test_the_model_is_the_best_epoch_by_validation_loss(toy, tmp_path):
    settings = replace(SMALL, epochs=12, learning_rate=0.03, decay_epochs=(), keep="best")
    out = tmp_path / "out"
    train(toy.features, toy.annotations, "mtn", settings, out)
    samples = read_samples(toy.features, toy.annotations, settings)
    losses = [float(row["validation_loss"]) for row in read_log(out)]
    assert np.argmin(losses) < len(losses) - 1, "the case must tell best from last"
    kept = validation_losses(out, samples, settings)
    assert kept["validation_loss"] == pytest.approx(min(losses), rel=1e-6)

    train(toy.features, toy.annotations, "mtn", replace(settings, keep="last"), out)
    kept = validation_losses(out, samples, settings)
    assert kept["validation_loss"] == pytest.approx(losses[-1], rel=1e-6)


def test_without_validation_videos_the_last_epoch_is_kept(make_toy, tmp_path, capsys):
    toy = make_toy("no_validation", validation=0)
    train(toy.features, toy.annotations, "origin", replace(SMALL, keep="best"), tmp_path / "best")
    assert "no validation video; the last epoch is kept" in capsys.readouterr().err
    train(toy.features, toy.annotations, "origin", SMALL, tmp_path / "last")
    assert "no validation" not in capsys.readouterr().err
    weights = [load_model(tmp_path / x / "model.pt").state_dict() for x in ("best", "last")]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert math.isnan(float(read_log(tmp_path / "best")[0]["validation_loss"]))


def test_the_average_is_of_the_last_epochs_alone(toy, tmp_path):
    settings = replace(SMALL, decay_epochs=(), average_epochs=2)
    for name, changes in {
        "fourth": {"epochs": 4},
        "fifth": {},
        "average": {"keep": "average"},
    }.items():
        train(toy.features, toy.annotations, "mtn", replace(settings, **changes), tmp_path / name)
    fourth, fifth, average = (
        load_model(tmp_path / name / "model.pt").state_dict()
        for name in ("fourth", "fifth", "average")
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
    train(toy.features, toy.annotations, "mtn", settings, tmp_path)
    after = load_model(tmp_path / "model.pt").state_dict()
    samples = read_samples(toy.features, toy.annotations, settings)
    features, labels = (torch.from_numpy(np.array(x[:8])) for x in (toy.array, samples.labels))
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
    features, labels = (
        torch.from_numpy(np.array(x[:6])).float() for x in (toy.array, samples.labels)
    )
    rows = slice(0, 2)
    own, whole = labels[rows], labels if sums else None
    expected = boundary_loss(model(features[rows]), own, whole).total
    gradients = torch.autograd.grad(expected, list(model.parameters()))
    replica = Share(optimiser)
    replica.sums_gradients = sums
    loss = train_module.training_step(model, replica, features[rows], labels, rows)
    assert float(loss.total.detach()) == float(expected.detach())
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    if sums:
        alone = boundary_loss(model(features[rows]), own).total
        assert abs(float(alone.detach()) / float(expected.detach()) - 3) < 1


def test_soft_labels_are_what_training_and_validation_learn(toy, tmp_path, monkeypatch):
    """Labels of ½ everywhere: the least loss is at ½, where hard labels would say 0."""
    settings = replace(SMALL, smooth_labels=1.0, epochs=30, learning_rate=0.03, dropout=0.0)
    samples = read_samples(toy.features, toy.annotations, settings)
    labels = np.full(samples.labels.shape, 0.5, np.float32)
    monkeypatch.setattr(
        train_module, "read_samples", lambda *_, **__: replace(samples, labels=labels)
    )
    train(toy.features, toy.annotations, "origin", settings, tmp_path / "soft")
    train(toy.features, toy.annotations, "origin", replace(settings, smooth_labels=0.0), tmp_path)
    features = torch.from_numpy(toy.array)
    with torch.no_grad():
        soft, hard = (load_model(x / "model.pt")(features) for x in (tmp_path / "soft", tmp_path))
    assert (soft - 0.5).abs().mean() < 0.1
    assert hard.mean() < 0.1
    # r = 21: a negative weighs 0.525; twice actionness, start and end
    least = -4 * 0.525 * math.log(0.5 + 1e-5)
    for part in ("training_loss", "validation_loss"):
        assert least - 1e-6 < float(read_log(tmp_path / "soft")[-1][part]) < 1.1 * least


def test_noise_comes_from_the_seed_and_only_training_has_it(toy, tmp_path, monkeypatch):
    noisy = replace(SMALL, feature_noise=0.5, dropout=0.0)
    seen: dict[bool, list] = {True: [], False: []}
    forward = BaseTEM.forward

    def watched(model, features):
        seen[model.training].append(features.detach().clone())
        return forward(model, features)

    monkeypatch.setattr(BaseTEM, "forward", watched)
    train(toy.features, toy.annotations, "origin", noisy, tmp_path / "noisy")
    original = torch.from_numpy(toy.array)
    validation = original[8:]
    assert all(any(torch.equal(one, row) for row in validation) for one in seen[False][0])
    added = []
    for batch in seen[True]:
        for one in batch:
            added.append(one - min(original, key=lambda row: float((one - row).square().mean())))
    noise = torch.stack(added)
    assert abs(float(noise.mean())) < 0.01
    deviation = 0.5 * math.sqrt(noise.shape[-1] / 256)
    assert float(noise.std()) == pytest.approx(deviation, rel=0.02)
    assert not torch.equal(noise[0], noise[8])  # of another epoch
    seen[True].clear()
    train(toy.features, toy.annotations, "origin", noisy, tmp_path / "again")
    assert (tmp_path / "again/model.pt").read_bytes() == (tmp_path / "noisy/model.pt").read_bytes()


def test_a_model_of_before_lacks_the_newer_settings_and_loads(toy, tmp_path):
    train(toy.features, toy.annotations, "mtn", SMALL, tmp_path)
    content = torch.load(tmp_path / "model.pt", weights_only=True)
    newer = {"smooth_labels"}
    content["settings"] = {k: v for k, v in content["settings"].items() if k not in newer}
    features = torch.from_numpy(toy.array[:1])
    with torch.no_grad():
        before, after = load_model(content)(features), load_model(tmp_path / "model.pt")(features)
    assert torch.equal(before, after)


def test_the_files_say_what_made_them(toy, tmp_path):
    train(toy.features, toy.annotations, "dense", SMALL, tmp_path / "out", threads=1)
    content = torch.load(tmp_path / "out" / "model.pt", weights_only=True)
    assert content["model"] == "dense"
    assert content["channels"] == 6
    assert content["actionspan_version"] == __version__
    assert TemporalSettings(**content["settings"]) == SMALL
    timing = json.loads((tmp_path / "out" / "timing.json").read_text())
    assert (timing["samples"], timing["validation_samples"], timing["threads"]) == (8, 4, 1)
    assert timing["epochs"] == timing["epochs_here"] == len(timing["epoch_seconds"]) == 5
    parts = ("t1", "data", "validation", "checkpoint", "preparation")
    (rank,) = timing["per_rank"]
    assert 0 < sum(rank["parts"][f"{part}_seconds"] for part in parts) <= timing["seconds"]
    assert rank["t2"] == 0
    assert rank["host"] == platform.node()
    assert rank["t1"] + rank["t3"] == pytest.approx(timing["seconds"])
    assert (timing["exchange"], timing["ranks"]) == ("none", 1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "log.tsv",
        "model.pt",
        "timing.json",
    ]


def test_the_same_run_gives_the_same_bytes_and_another_seed_does_not(toy, tmp_path):
    torch.manual_seed(1)
    train(toy.features, toy.annotations, "mtn", SMALL, tmp_path / "one")
    torch.manual_seed(2)
    train(toy.features, toy.annotations, "mtn", SMALL, tmp_path / "two")
    train(toy.features, toy.annotations, "mtn", replace(SMALL, seed=2), tmp_path / "three")
    assert same_files(tmp_path / "one", tmp_path / "two")
    assert not same_files(tmp_path / "one", tmp_path / "three")


@pytest.mark.parametrize("name", first_tier(["attention", "tcn"], "tcn"))
def test_two_threads_give_the_same_bytes_every_time(toy, tmp_path, name):
    for out in ("one", "two"):
        train(toy.features, toy.annotations, name, SMALL, tmp_path / out, threads=2)
    assert same_files(tmp_path / "one", tmp_path / "two")


def test_the_callers_torch_is_left_as_it_was(toy, tmp_path):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    train(toy.features, toy.annotations, "origin", SMALL, tmp_path, threads=1)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()


def stop_in_epoch(monkeypatch, epoch):
    """Make training fail in the middle of an epoch, after its first step."""
    step = train_module.training_step
    count = 0

    def failing(*arguments):
        nonlocal count
        count += 1
        if count == 3 * (epoch - 1) + 2:  # three steps an epoch
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(train_module, "training_step", failing)


@pytest.mark.parametrize("epoch", first_tier([1, 3, 5], 3))
@pytest.mark.parametrize(
    ("name", "keep"),
    [("origin", "best"), ("mtn", "average"), ("attention", "last"), ("tcn", "average")],
)
def test_a_stopped_run_goes_on_to_the_same_bits(toy, tmp_path, monkeypatch, name, keep, epoch):
    settings = replace(SMALL, keep=keep, average_epochs=3)
    train(toy.features, toy.annotations, name, settings, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_in_epoch(patch, epoch)
        with pytest.raises(KeyboardInterrupt):
            train(toy.features, toy.annotations, name, settings, tmp_path / "stopped")
    assert (tmp_path / "stopped" / CHECKPOINT).exists() == (epoch > 1)
    train(toy.features, toy.annotations, name, settings, tmp_path / "stopped")
    assert same_files(tmp_path / "whole", tmp_path / "stopped")
    timing = json.loads((tmp_path / "stopped" / "timing.json").read_text())
    assert timing["epochs_here"] == 5 - (epoch - 1)
    assert not (tmp_path / "stopped" / CHECKPOINT).exists()


def test_the_best_epoch_before_the_stop_is_not_forgotten(toy, tmp_path, monkeypatch):
    settings = replace(SMALL, epochs=12, learning_rate=0.03, decay_epochs=(), keep="best")
    train(toy.features, toy.annotations, "mtn", settings, tmp_path / "whole")
    losses = [float(row["validation_loss"]) for row in read_log(tmp_path / "whole")]
    assert np.argmin(losses) < 11, "the best epoch must lie before the stop"
    with monkeypatch.context() as patch:
        stop_in_epoch(patch, 12)
        with pytest.raises(KeyboardInterrupt):
            train(toy.features, toy.annotations, "mtn", settings, tmp_path / "stopped")
    train(toy.features, toy.annotations, "mtn", settings, tmp_path / "stopped")
    assert same_files(tmp_path / "whole", tmp_path / "stopped")


@pytest.mark.parametrize("change", ["settings", "features", "model"])
def test_a_checkpoint_of_something_else_is_ignored_with_a_line(
    toy, make_toy, tmp_path, monkeypatch, capsys, change
):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        stop_in_epoch(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            train(toy.features, toy.annotations, "mtn", SMALL, out)
    data, settings, name = toy, SMALL, "mtn"
    if change == "settings":
        settings = replace(SMALL, learning_rate=0.002)
    elif change == "features":
        data = make_toy("other", seed=1)
    else:
        name = "dense"
    capsys.readouterr()
    train(data.features, data.annotations, name, settings, out)
    assert "made with different settings or data; starting over" in capsys.readouterr().err
    train(data.features, data.annotations, name, settings, tmp_path / "fresh")
    assert same_files(out, tmp_path / "fresh")


def test_a_damaged_checkpoint_is_one_line(toy, tmp_path):
    (tmp_path / CHECKPOINT).write_bytes(b"half a file")
    with pytest.raises(InputError, match=r"checkpoint\.pt: damaged; delete it and run again"):
        train(toy.features, toy.annotations, "mtn", SMALL, tmp_path)


KILLER = """
import os, random, shutil, signal, sys, time
import torch
from pathlib import Path
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import train

torch.optim.Adam([torch.zeros(1)])  # its slow import, once
features, annotations, whole, killed = map(Path, sys.argv[1:])
settings = TemporalSettings(hidden=64, epochs=120, batch_size=3, dropout=0.3, output_scale=1.0)

def run(out, limit):
    child = os.fork()
    if child == 0:
        sys.stderr = open(os.devnull, "w")
        train(features, annotations, "mtn", settings, out)
        os._exit(0)
    if limit is not None:
        time.sleep(limit)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]

begun = time.monotonic()
assert run(whole, None) == 0
seconds = time.monotonic() - begun
kills, moments = 0, random.Random(7)
while kills < 4:  # again, sooner, where the first run had a busier machine
    shutil.rmtree(killed, ignore_errors=True)
    kills, seconds = 0, seconds / 2
    while run(killed, moments.uniform(0, seconds / 3 * (1 + kills / 10))) != 0:
        kills += 1
print(kills)
"""


@pytest.mark.full
def test_killed_at_random_moments_it_ends_with_the_same_bits(toy, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = subprocess.run(
        [python(), "-c", KILLER, toy.features, toy.annotations, whole, killed],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4
    assert same_files(whole, killed)
    assert len(read_log(killed)) == 120


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


def test_a_loss_that_is_no_number_is_one_line(toy, tmp_path):
    settings = replace(SMALL, learning_rate=1e30, dropout=0.0)
    with pytest.raises(InputError, match=r"training loss is nan in epoch \d; lower learning_rate"):
        train(toy.features, toy.annotations, "mtn", settings, tmp_path / "out")


def test_the_command_trains_and_predicts(toy, tmp_path):
    out = tmp_path / "temporal"
    files = ["--features", str(toy.features), "--annotations", str(toy.annotations)]
    knobs = ["--hidden", "8", "--epochs", "2", "--decay-epochs", "1", "--labels", "mtn"]
    assert main(["temporal", "train", *files, "--model", "se", "--out", str(out), *knobs]) == 0
    content = torch.load(out / "model.pt", weights_only=True)
    assert content["settings"]["labels"] == "mtn"
    probabilities = str(tmp_path / "probabilities.h5")
    arguments = ["--model", str(out / "model.pt"), "--features", str(toy.features)]
    assert main(["temporal", "predict", *arguments, "--out", probabilities]) == 0
    assert Path(probabilities).exists()


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--dropout", "1"], "dropout 1.0: from 0 to below 1"),
        (["--decay-epochs", "2", "1"], "decay_epochs [2, 1]: rising numbers, each at least 1"),
        (["--threads", "0"], "--threads 0: at least 1"),
    ],
)
def test_a_wrong_flag_is_one_line(toy, tmp_path, capsys, flags, line):
    files = ["--features", str(toy.features), "--annotations", str(toy.annotations)]
    assert main(["temporal", "train", *files, "--out", str(tmp_path / "out"), *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith("actionspan temporal: ")
    assert line in error
    assert error.count("\n") == 1


def test_a_missing_file_is_one_line(toy, tmp_path, capsys):
    files = ["--features", str(toy.features), "--annotations", str(tmp_path / "none.json")]
    assert main(["temporal", "train", *files, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.endswith(
        "none.json: cannot be read: No such file or directory\n"
    )


def test_a_checkpoint_belongs_to_its_exchange_ranks_and_buckets():
    base = ParallelSettings()
    ring = bits_of("ring", base, 2)
    assert bits_of("ring", base, 3) != ring
    assert bits_of("mpi", base, 2) != ring
    assert bits_of("ring", replace(base, bucket_kib=1), 2) != ring
    assert bits_of("ring", replace(base, stall_seconds=9.0, overlap=True), 2) == ring
    assert bits_of("none", replace(base, bucket_kib=1), 1) == bits_of("none", base, 1)
