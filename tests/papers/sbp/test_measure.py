"""What measuring ways to train writes, on a network and a video so small that it takes seconds."""

import argparse
import math
from unittest.mock import MagicMock

import pytest
import torch

from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.sbp import measure, measured
from actionspan_papers.sbp.measured import (
    FULL,
    Case,
    Counts,
    against,
    cases,
    growth,
    operations_by_form,
    seconds,
)
from actionspan_papers.sbp.settings import MeasureSettings
from networks.tiny import TINY_NETWORK

SMALL = ["--input-size", 32, "--snippets", 12, "--ratios", 1, 0.25, "--piece", 4, "--repeats", 1]


def run(folder, *words):
    parser = argparse.ArgumentParser()
    measure.add_arguments(parser)
    out = ["--out-tsv", folder / "m.tsv", "--out-markdown", folder / "m.md"]
    out += ["--out-figures", folder / "m.svg"]
    measure.run(parser.parse_args(list(map(str, [*words, *out]))))


@pytest.fixture
def no_children(monkeypatch):
    """New processes know no registered network, and take seconds each."""
    grown = {"full": 1000, "frozen": 100}
    monkeypatch.setattr(
        "actionspan_papers.sbp.measured.growth", lambda case, _: grown.get(case.way)
    )


def test_a_row_for_each_way_and_ratio(tmp_path, no_children):
    run(tmp_path, "--network", TINY_NETWORK, *SMALL)
    rows = read_tsv(tmp_path / "m.tsv")
    assert len(rows) == 3 + 5 * 2
    by = {(row["way"], row["keep_ratio"]): row for row in rows}
    full, split = by["full", ""], by["sbp split", "1"]
    assert full["saved_bytes"] == split["saved_bytes"]
    assert full["saved_part"] == full["seconds_part"] == full["growth_part"] == "1.0000"
    assert by["frozen", ""]["growth_part"] == "0.1000"
    assert by["bank", "1"]["growth_part"] == ""
    for row in rows:
        assert int(row["saved_bytes"]) == pytest.approx(float(row["saved_by_form"]), rel=0.02)
        assert int(row["expected_bytes"]) > int(row["saved_bytes"])
    # operations: the head is a large part here, but what is run twice costs more than what is not
    operations = {key: float(row["operations"]) for key, row in by.items()}
    assert operations["full", ""] == operations["sbp split", "1"] == 1
    assert operations["frozen", ""] < operations["bank", "0.25"] < operations["sbp split", "0.25"]
    assert operations["sbp split", "0.25"] < operations["sbp replay", "0.25"] < 1
    assert operations["sbp replay", "1"] == operations["checkpoint", ""] > 1
    table = (tmp_path / "m.md").read_text()
    assert "growth of memory" in table
    assert (tmp_path / "m.svg").stat().st_size > 1000


def test_operations_of_a_resnet_are_near_the_closed_form():
    settings = MeasureSettings(network="resnet18", input_size=64, snippets=40)
    counts = Counts(settings)
    for case in cases((0.5, 0.25)):
        counted = counts.operations_part(case)
        assert counted == pytest.approx(operations_by_form(case, 40), abs=0.06)
    grouped = Counts(MeasureSettings(input_size=64, snippets=4))
    assert math.isnan(grouped.operations_part(FULL))


def test_closed_forms_of_operations():
    named = {
        "sbp split": Case("sbp", "split", 0.25),
        "sbp replay": Case("sbp", "replay", 0.25),
        "checkpoint": Case("checkpoint", "split", 1.0),
        "frozen": Case("frozen", "split", 1.0),
        "bank": Case("bank", "split", 0.25),
    }
    found = {name: operations_by_form(case, 100) for name, case in named.items()}
    assert found == pytest.approx(
        {"sbp split": 0.5, "sbp replay": 1.75 / 3, "checkpoint": 4 / 3, "frozen": 1 / 3}
        | {"bank": 0.25}
    )
    assert operations_by_form(Case("sbp", "split", 0.125), 100) == pytest.approx(1.26 / 3)


def test_growth_is_measured_in_a_process_of_its_own():
    settings = MeasureSettings(network="resnet18", input_size=32, snippets=4)
    grown = growth(FULL, settings)
    if grown is None:
        pytest.skip("the system does not tell the peak of a process")
    # ResNet-18 and MTN: values, gradients and two moments
    assert 4 * 44.7e6 < grown < 700e6


def test_seconds_are_taken_in_turns():
    settings = MeasureSettings(network=TINY_NETWORK, input_size=32, snippets=4, repeats=3)
    found = seconds([FULL, Case("frozen", "split", 1.0)], settings)
    assert [len(times) for times in found] == [3, 3]
    assert all(time > 0 for times in found for time in times)
    assert against([2.0, 3.0, 8.0], [1.0, 2.0, 2.0]) == 2.0


def test_an_unknown_network_is_one_line(tmp_path):
    with pytest.raises(InputError, match="network 'lenet': one of efficientnet_lite0"):
        run(tmp_path, "--network", "lenet", *SMALL)


def test_cuda_is_started_before_its_statistics_are_reset(monkeypatch):
    """`--device cuda:1` is the help's own example, and a new process has not started CUDA."""
    cuda = MagicMock()
    cuda.max_memory_allocated.return_value = 5
    monkeypatch.setattr(torch, "cuda", cuda)
    monkeypatch.setattr(measured, "_steps", lambda *_: cuda.steps())
    assert measured._growth(Case("full", "split", 1.0), MeasureSettings(device="cuda:1")) == 5
    names = [name for name, _, _ in cuda.mock_calls]
    assert names == ["init", "reset_peak_memory_stats", "steps", "max_memory_allocated"]
    cuda.reset_peak_memory_stats.assert_called_once_with("cuda:1")
