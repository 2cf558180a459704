"""What measuring ways to train writes, on a network and a video so small that it takes seconds."""

import math
from unittest.mock import MagicMock

import pytest
import torch

from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.sbp import measured
from actionspan_papers.sbp.measured import FULL, Case, operations_by_form
from actionspan_papers.sbp.settings import MeasureSettings
from networks.tiny import TINY_NETWORK
from papers.steps import run_step

FROZEN = Case("frozen", "split", 1.0)
SMALL = ["--input-size", 32, "--snippets", 12, "--ratios", 1, 0.25, "--piece", 4, "--repeats", 1]


def run(folder, network):
    out = ["--out-tsv", folder / "m.tsv", "--out-markdown", folder / "m.md"]
    out += ["--out-figures", folder / "m.svg"]
    run_step("sbp", "measure", "--network", network, *SMALL, *out)


@pytest.fixture
def no_children(monkeypatch):
    """New processes know no registered network, and take seconds each."""
    grown = {"full": 1000, "frozen": 100}
    monkeypatch.setattr(measured, "growth", lambda case, _: grown.get(case.way))


def test_a_row_for_each_way_and_ratio(tmp_path, no_children):
    run(tmp_path, TINY_NETWORK)
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
    assert "growth of memory" in (tmp_path / "m.md").read_text()
    assert (tmp_path / "m.svg").stat().st_size > 1000


def test_operations_of_a_resnet_are_near_the_closed_form():
    settings = MeasureSettings(network="resnet18", input_size=64, snippets=40)
    counts = measured.Counts(settings)
    for case in measured.cases((0.5, 0.25)):
        counted = counts.operations_part(case)
        assert counted == pytest.approx(operations_by_form(case, 40), abs=0.06)
    shares = [operations_by_form(case, 100) for case in (Case("sbp", "split", 0.125), FROZEN)]
    assert shares == pytest.approx([1.26 / 3, 1 / 3])
    grouped = measured.Counts(MeasureSettings(input_size=64, snippets=4))
    assert math.isnan(grouped.operations_part(FULL))


def test_growth_is_measured_in_a_process_of_its_own():
    settings = MeasureSettings(network="resnet18", input_size=32, snippets=4)
    grown = measured.growth(FULL, settings)
    if grown is None:
        pytest.skip("the system does not tell the peak of a process")
    # ResNet-18 and MTN: values, gradients and two moments
    assert 4 * 44.7e6 < grown < 700e6


def test_seconds_are_taken_in_turns():
    settings = MeasureSettings(network=TINY_NETWORK, input_size=32, snippets=4, repeats=3)
    found = measured.seconds([FULL, FROZEN], settings)
    assert [len(times) for times in found] == [3, 3]
    assert all(time > 0 for times in found for time in times)
    assert measured.against([2.0, 3.0, 8.0], [1.0, 2.0, 2.0]) == 2.0


def test_an_unknown_network_is_one_line(tmp_path):
    with pytest.raises(InputError, match="network 'lenet': one of efficientnet_lite0"):
        run(tmp_path, "lenet")


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
