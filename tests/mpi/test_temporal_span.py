"""Ranks train the members of span as one process does."""

from pathlib import Path

import numpy as np
import pytest
import torch

from actionspan.storage.model_files import read_model
from actionspan.temporal.training import train
from mpi.span_cases import SETTINGS
from temporal.conftest import write_toy_sequences
from temporal.test_training import read_log

CASES = Path(__file__).with_name("span_cases.py")
EXCHANGES = ("ring", "ps")  # of three workers; of a server and two


@pytest.fixture(scope="module")
def job(rows_of, tmp_path_factory) -> tuple[Path, dict[str, dict]]:
    """The folder of all runs, and what ranks printed by exchange."""
    toy = write_toy_sequences(tmp_path_factory.mktemp("toy"), training=9, longest=40)
    out = tmp_path_factory.mktemp("out")
    train(toy.features, toy.annotations, "span", SETTINGS, out / "none")
    return out, rows_of(3, CASES, toy.features.parent, out, *EXCHANGES, timeout=300)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_all_ranks_hold_the_bits_of_one_process_but_for_rounding(job, exchange):
    out, rows = job
    digests = rows[exchange]["digests"]
    assert len(digests) == 3
    assert len(set(digests)) == 1
    logs = [read_log(out / name) for name in ("none", exchange)]
    columns = [name for name in logs[0][0] if name.endswith(("_loss", "_action"))]
    values = [[[float(row[name]) for name in columns] for row in log] for log in logs]
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-4)
    one, other = (read_model(out / name / "model.safetensors").value for name in ("none", exchange))
    parts = [{name: each.tolist() for name, each in x["parts"].items()} for x in (one, other)]
    assert parts[0] == parts[1]
    for name, value in one["state_dict"].items():
        torch.testing.assert_close(other["state_dict"][name], value, rtol=0, atol=1e-4)
