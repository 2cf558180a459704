"""`temporal.exchange: aavg` from the command line."""

import json
from pathlib import Path

import pytest
import torch

from actionspan.storage.model_files import read_model
from temporal.conftest import write_toy
from temporal.test_training import read_log

COMMANDS = Path(__file__).with_name("commands.py")
EPOCHS = 4
KEPT = {"third": ["--epochs=3"], "fourth": [], "average": ["--keep=average"]}
STEPS = {-1: EPOCHS, 1: 3 * EPOCHS, 2: 2 * EPOCHS}  # and how many averages they make
PARAMETERS_OF_TWO = ["--averaging-steps=2", "--no-average-state"]

# the flags of each training, by the ranks that do it; a job does all of a number of ranks
TRAININGS = {
    1: {exchange: [f"--exchange={exchange}"] for exchange in ("none", "aavg")},
    2: {
        **{
            f"{exchange} {name}": [f"--exchange={exchange}", "--average-epochs=2", *flags]
            for exchange in ("ring", "aavg")
            for name, flags in KEPT.items()
        },
        "periodic": ["--exchange=periodic", "--averaging-steps=2"],
        "ours": ["--exchange=aavg", *PARAMETERS_OF_TWO],
    },
    3: {
        str(steps): ["--exchange=aavg", f"--averaging-steps={steps}", "--no-average-state"]
        for steps in STEPS
    },
}


@pytest.fixture(scope="module")
def trained(mpirun, tmp_path_factory) -> Path:
    """The folder of each training, RANKS/NAME; three steps an epoch, the last of two videos."""
    folder = tmp_path_factory.mktemp("out")
    toy = write_toy(tmp_path_factory.mktemp("toy"), training=12, validation=5)
    shape = "--hidden 16 --batch-size 5 --dropout 0.2 --learning-rate 0.02 --feature-noise 0"
    files = ["--features", str(toy.features), "--annotations", str(toy.annotations)]
    words = ["temporal", "train", *files, *shape.split(), f"--epochs={EPOCHS}"]
    for ranks, each in TRAININGS.items():
        commands = [
            json.dumps([*words, f"--ranks={ranks}", f"--out={folder / str(ranks) / name}", *flags])
            for name, flags in each.items()
        ]
        mpirun(ranks, COMMANDS, *commands, timeout=300)
    return folder


def weights(out):
    return read_model(out / "model.safetensors").value["state_dict"]


def averages(out):
    return json.loads((out / "timing.json").read_text())["per_rank"]


def test_one_learner_is_training_without_an_exchange(trained):
    runs = [trained / "1" / exchange for exchange in ("none", "aavg")]
    one, two = map(weights, runs)
    assert all(torch.equal(one[key], two[key]) for key in one)
    logs = [[{**row, "seconds": 0} for row in read_log(out)] for out in runs]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("exchange", ["ring", "aavg"])
def test_the_average_of_epochs_is_that_of_the_ranks_common_models(trained, exchange):
    third, fourth, average = (weights(trained / "2" / f"{exchange} {name}") for name in KEPT)
    for key, value in average.items():
        torch.testing.assert_close(value, (third[key] + fourth[key]) / 2)
    assert any(not torch.equal(average[key], fourth[key]) for key in average)


def test_torch_averages_models_too(trained):
    out, ours = trained / "2" / "periodic", weights(trained / "2" / "ours")
    assert [one["averages"] for one in averages(out)] == [2 * EPOCHS] * 2
    # torch puts all parameters next to each other, where other kernels read them
    for key, value in weights(out).items():
        torch.testing.assert_close(value, ours[key], rtol=0, atol=1e-4)


def test_learners_average_when_they_are_told_to_and_learn(trained):
    made = set()
    for steps, count in STEPS.items():
        out = trained / "3" / str(steps)
        assert [one["averages"] for one in averages(out)] == [count] * 3
        values = sum(one.numel() for one in weights(out).values())
        sent = sum(one["sent_bytes"] for one in averages(out))
        assert sent == count * 2 * 2 * 4 * values, "parameters alone, all trainable"
        losses = [float(row["validation_loss"]) for row in read_log(out)]
        assert losses[-1] < 0.9 * losses[0]
        made.add(losses[-1])
    assert len(made) == 3
