"""`actionspan temporal train` on ranks: as in one process, or by averages of models."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from actionspan.storage.model_files import read_model
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import train
from temporal.conftest import write_toy, write_toy_sequences
from temporal.test_training import read_log

COMMANDS = Path(__file__).with_name("commands.py")
SPAN = {"hidden": 16, "epochs": 2, "batch_size": 5, "members": 3}
WORKERS = {"ring": 3, "ps": 2}  # of three processes
EPOCHS = 4
KEPT = {"third": ["--epochs=3"], "fourth": [], "average": ["--keep=average"]}
STEPS = {-1: EPOCHS, 1: 3 * EPOCHS, 2: 2 * EPOCHS}  # and how many averages they make


def command(toy, out, ranks, *flags):
    files = [f"--features={toy.features}", f"--annotations={toy.annotations}", f"--out={out}"]
    return json.dumps(["temporal", "train", *files, f"--ranks={ranks}", *flags])


@pytest.fixture(scope="module")
def trained(mpirun, tmp_path_factory, both_tiers) -> Path:
    """The folder of all trainings, by one job of three ranks; of span also by one process."""
    folder = tmp_path_factory.mktemp("out")
    toy = write_toy_sequences(tmp_path_factory.mktemp("span"), training=9, longest=40)
    train(toy.features, toy.annotations, "span", TemporalSettings(**SPAN), folder / "span none")
    words = ["--model=span", *(f"--{key.replace('_', '-')}={each}" for key, each in SPAN.items())]
    commands = [
        command(toy, folder / f"span {exchange}", workers, f"--exchange={exchange}", *words)
        for exchange, workers in WORKERS.items()
    ]
    if both_tiers:
        # three steps an epoch, the last of two videos
        toy = write_toy(tmp_path_factory.mktemp("toy"), training=12, validation=5)
        shape = "--hidden 16 --batch-size 5 --dropout 0.2 --learning-rate 0.02 --feature-noise 0"
        words = [*shape.split(), f"--epochs={EPOCHS}", "--average-epochs=2"]
        trainings = {
            f"{exchange} {name}": [f"--exchange={exchange}", *flags]
            for exchange in ("ring", "aavg")
            for name, flags in KEPT.items()
        }
        for steps in STEPS:
            flags = [f"--averaging-steps={steps}", "--no-average-state"]
            trainings[f"steps {steps}"] = ["--exchange=aavg", *flags]
        commands += [
            command(toy, folder / name, 3, *words, *flags) for name, flags in trainings.items()
        ]
    mpirun(3, COMMANDS, *commands, timeout=300)
    return folder


def weights(out):
    return read_model(out / "model.safetensors").value["state_dict"]


@pytest.mark.parametrize("exchange", WORKERS)
def test_ranks_train_the_members_of_span_as_one_process_does(trained, exchange):
    runs = [trained / f"span {name}" for name in ("none", exchange)]
    logs = [read_log(out) for out in runs]
    columns = [name for name in logs[0][0] if name.endswith(("_loss", "_action"))]
    values = [[[float(row[name]) for name in columns] for row in log] for log in logs]
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-4)
    models = [read_model(out / "model.safetensors").value for out in runs]
    parts = [{name: each.tolist() for name, each in x["parts"].items()} for x in models]
    assert parts[0] == parts[1]
    for name, value in models[0]["state_dict"].items():
        torch.testing.assert_close(models[1]["state_dict"][name], value, rtol=0, atol=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("exchange", ["ring", "aavg"])
def test_the_average_of_epochs_is_that_of_the_ranks_common_models(trained, exchange):
    third, fourth, average = (weights(trained / f"{exchange} {name}") for name in KEPT)
    for key, value in average.items():
        torch.testing.assert_close(value, (third[key] + fourth[key]) / 2)
    assert any(not torch.equal(average[key], fourth[key]) for key in average)


@pytest.mark.full
def test_learners_average_when_they_are_told_to_and_learn(trained):
    made = set()
    for steps, count in STEPS.items():
        out = trained / f"steps {steps}"
        ranks = json.loads((out / "timing.json").read_text())["per_rank"]
        assert [rank["averages"] for rank in ranks] == [count] * 3
        losses = [float(row["validation_loss"]) for row in read_log(out)]
        assert losses[-1] < 0.9 * losses[0]
        made.add(losses[-1])
    assert len(made) == 3
