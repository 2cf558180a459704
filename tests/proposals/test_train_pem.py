"""`train_pem`: killed after any epoch it ends with the same bits; keep; the log."""

import dataclasses

import numpy as np
import pytest
import torch

from actionspan.annotations.tables import read_annotations, write_annotations
from actionspan.proposals import training as module
from actionspan.proposals.candidates import write_candidates
from actionspan.proposals.settings import CandidateSettings, EvaluatorSettings
from actionspan.proposals.training import train_pem
from actionspan.storage.model_files import read_model
from actionspan.storage.writing import read_tsv

EPOCHS = 4
# a large step, so that epochs differ
SETTINGS = EvaluatorSettings(hidden=8, epochs=EPOCHS, decay_epochs=2, learning_rate=0.2)


@pytest.fixture
def train(toy, tmp_path):
    candidates = tmp_path / "candidates.h5"
    write_candidates(tmp_path / "probabilities.h5", candidates, CandidateSettings(candidates=100))

    def run(name, settings=SETTINGS):
        out = tmp_path / name / "pem.safetensors"
        log = tmp_path / name / "pem_log.tsv"
        train_pem(candidates, tmp_path / "annotations.json", settings, out, log)
        return out

    return run


def stop_in_epoch(patch, number):
    train_epoch, begun = module._train_epoch, iter(range(1, 100))

    def failing(*arguments):
        if next(begun) == number:
            raise KeyboardInterrupt
        return train_epoch(*arguments)

    patch.setattr(module, "_train_epoch", failing)


def log(out):
    rows = read_tsv(out.with_name("pem_log.tsv"))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def weights(out):
    return read_model(out).value["evaluator"]["weights"]


@pytest.mark.parametrize("keep", ["best", "average", "last"])
def test_killed_after_each_epoch_it_ends_with_the_same_bits(train, tmp_path, monkeypatch, keep):
    settings = dataclasses.replace(SETTINGS, keep=keep, average_epochs=3)
    whole = train("whole", settings)
    for _ in range(EPOCHS - 1):  # each of these processes makes one epoch
        with monkeypatch.context() as patch:
            stop_in_epoch(patch, 2)
            with pytest.raises(KeyboardInterrupt):
                train("killed", settings)
        assert (tmp_path / "killed/.pem.checkpoint.pt").exists()
    killed = train("killed", settings)
    assert killed.read_bytes() == whole.read_bytes()
    assert log(killed) == log(whole)
    assert sorted(path.name for path in killed.parent.iterdir()) == [
        "pem.safetensors",
        "pem_log.tsv",
    ]


def test_the_best_epoch_is_kept_or_the_last(train):
    best = train("best", dataclasses.replace(SETTINGS, keep="best"))
    losses = [float(row["validation_loss"]) for row in log(best)]
    kept = int(np.argmin(losses)) + 1
    assert kept < EPOCHS, "the case must tell best from last"
    last = train("last", dataclasses.replace(SETTINGS, keep="last"))
    short = train("short", dataclasses.replace(SETTINGS, keep="last", epochs=kept))
    assert log(last) == log(best)
    names = list(weights(best))
    assert all(torch.equal(weights(best)[name], weights(short)[name]) for name in names)
    assert not all(torch.equal(weights(best)[name], weights(last)[name]) for name in names)


def test_the_average_is_of_the_last_epochs_alone(train):
    third, fourth, average = (
        weights(train(name, dataclasses.replace(SETTINGS, average_epochs=2, **changes)))
        for name, changes in {
            "third": {"epochs": 3},
            "fourth": {},
            "mean": {"keep": "average"},
        }.items()
    )
    for name, value in average.items():
        torch.testing.assert_close(value, (third[name] + fourth[name]) / 2)
    assert any(not torch.equal(average[name], fourth[name]) for name in average)


def test_the_log_has_a_column_for_each_number(train):
    out = train("out")
    rows = read_tsv(out.with_name("pem_log.tsv"))
    assert list(rows[0]) == [
        *("epoch", "learning_rate", "sampled", "training_loss", "validation_loss", "seconds")
    ]
    assert [row["epoch"] for row in rows] == list("1234")
    np.testing.assert_allclose(
        [float(row["learning_rate"]) for row in rows], [0.2, 0.2, 0.02, 0.02]
    )
    assert all(float(row["seconds"]) > 0 and int(row["sampled"]) > 0 for row in rows)


@pytest.mark.parametrize("change", ["settings", "truth"])
def test_a_checkpoint_of_something_else_is_not_used(train, tmp_path, monkeypatch, capsys, change):
    with monkeypatch.context() as patch:
        stop_in_epoch(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            train("out")
    settings = SETTINGS
    if change == "settings":
        settings = dataclasses.replace(SETTINGS, seed=1)
    else:
        path = tmp_path / "annotations.json"
        first, *others = read_annotations(path)
        write_annotations(path, [dataclasses.replace(first, instances=()), *others])
    capsys.readouterr()
    out = train("out", settings)
    line = "pem.checkpoint.pt: made with different settings or data; starting over"
    assert line in capsys.readouterr().err
    assert out.read_bytes() == train("fresh", settings).read_bytes()
