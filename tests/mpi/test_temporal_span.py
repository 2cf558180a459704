"""Ranks train the members of span as one process does."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from actionspan.storage.model_files import read_model
from actionspan.temporal.training import train
from mpi.span_cases import SETTINGS
from temporal.conftest import Toy, write_toy_sequences
from temporal.test_training import read_log

CASES = Path(__file__).with_name("span_cases.py")
EXCHANGES = ("ring", "ps")  # of three workers; of a server and two


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return write_toy_sequences(tmp_path_factory.mktemp("toy"), training=9, longest=40)


@pytest.fixture(scope="module")
def job(mpirun, toy, tmp_path_factory) -> tuple[Path, dict[str, list[str]]]:
    """The folder of all runs, and the digests of each rank's weights by exchange."""
    out = tmp_path_factory.mktemp("out")
    train(toy.features, toy.annotations, "span", SETTINGS, out / "none")
    lines = mpirun(3, CASES, toy.features.parent, out, *EXCHANGES, timeout=300).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return out, {row["exchange"]: row["digests"] for row in rows}


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_all_ranks_hold_the_same_bits(job, exchange):
    _, digests = job
    assert len(digests[exchange]) == 3
    assert len(set(digests[exchange])) == 1


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_they_are_those_of_one_process_but_for_rounding(job, exchange):
    out, _ = job
    logs = [read_log(out / name) for name in ("none", exchange)]
    columns = [name for name in logs[0][0] if name.endswith(("_loss", "_action"))]
    values = [[[float(row[name]) for name in columns] for row in log] for log in logs]
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-4)
    contents = [read_model(out / name / "model.safetensors").value for name in ("none", exchange)]
    parts = [{name: each.tolist() for name, each in one["parts"].items()} for one in contents]
    assert parts[0] == parts[1]
    for name, value in contents[0]["state_dict"].items():
        torch.testing.assert_close(contents[1]["state_dict"][name], value, rtol=0, atol=1e-4)
