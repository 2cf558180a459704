"""`temporal.exchange: aavg` from the command line."""

import json
from pathlib import Path

import pytest
import torch

from temporal.conftest import Toy, write_toy
from temporal.test_training import read_log

EPOCHS = 4


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return write_toy(tmp_path_factory.mktemp("toy"), training=12, validation=5)


@pytest.fixture(scope="module")
def train(mpirun, toy, tmp_path_factory):
    """Train by so many ranks; three steps an epoch, the last of two videos."""

    def run(ranks: int, *flags: str) -> Path:
        out = tmp_path_factory.mktemp("out")
        files = ["--features", toy.features, "--annotations", toy.annotations, "--out", out]
        shape = ["--hidden", 16, "--batch-size", 5, "--epochs", EPOCHS, "--dropout", 0.2]
        shape += ["--learning-rate", 0.02, "--feature-noise", 0]
        words = ["temporal", "train", *files, *shape, "--ranks", ranks, *flags]
        mpirun(ranks, ["-m", "actionspan"], *words)
        return out

    return run


def weights(out):
    return torch.load(out / "model.pt", weights_only=True)["state_dict"]


def test_one_learner_is_training_without_an_exchange(train):
    alone, averaged = train(1, "--exchange=none"), train(1, "--exchange=aavg")
    one, two = weights(alone), weights(averaged)
    assert all(torch.equal(one[key], two[key]) for key in one)
    logs = [[{**row, "seconds": 0} for row in read_log(out)] for out in (alone, averaged)]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("exchange", ["ring", "aavg"])
def test_the_average_of_epochs_is_that_of_the_ranks_common_models(train, exchange):
    common = (f"--exchange={exchange}", "--average-epochs=2")
    third, fourth, average = (
        weights(train(2, *common, *more)) for more in (["--epochs=3"], [], ["--keep=average"])
    )
    for key, value in average.items():
        torch.testing.assert_close(value, (third[key] + fourth[key]) / 2)
    assert any(not torch.equal(average[key], fourth[key]) for key in average)


def test_torch_averages_models_too(train):
    out = train(2, "--exchange=periodic", "--averaging-steps=2")
    ranks = json.loads((out / "timing.json").read_text())["per_rank"]
    assert [one["averages"] for one in ranks] == [2 * EPOCHS] * 2
    # torch puts all parameters next to each other, where other kernels read them
    ours = weights(train(2, "--exchange=aavg", "--averaging-steps=2", "--no-average-state"))
    for key, value in weights(out).items():
        torch.testing.assert_close(value, ours[key], rtol=0, atol=1e-4)


def test_learners_average_when_they_are_told_to_and_learn(train):
    made = {}
    for steps, averages in ((-1, EPOCHS), (1, 3 * EPOCHS), (2, 2 * EPOCHS)):
        out = train(3, "--exchange=aavg", f"--averaging-steps={steps}", "--no-average-state")
        ranks = json.loads((out / "timing.json").read_text())["per_rank"]
        assert [one["averages"] for one in ranks] == [averages] * 3
        values = sum(one.numel() for one in weights(out).values())
        sent = sum(one["sent_bytes"] for one in ranks)
        assert sent == averages * 2 * 2 * 4 * values, "parameters alone, all trainable"
        rows = read_log(out)
        assert float(rows[-1]["validation_loss"]) < 0.9 * float(rows[0]["validation_loss"])
        made[steps] = float(rows[-1]["validation_loss"])
    assert len(set(made.values())) == 3
