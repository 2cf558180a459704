"""The fits of paper 000: as printed, and what follows from them."""

import re
from pathlib import Path

import numpy as np
import pytest

from actionspan.scaling.timing_model import model_columns
from actionspan.storage.writing import write_tsv
from actionspan_papers.ring.fits import fit_rows
from actionspan_papers.ring.published import PRINTED, RING_BY_EQUATION_1
from papers.steps import cells, step_rows
from scaling.oracle import PAPER_PS, PAPER_RING, model_seconds, runs_of

PAPERS = Path(__file__).parents[3].parent / "shared" / "papers"


@pytest.mark.parametrize("name", ["000_6d10f4d485a2a557.txt", "001_16e44f1a53758f77.txt"])
def test_the_fits_are_printed_in_both_papers(name):
    if not (PAPERS / name).is_file():
        pytest.skip(f"the papers are not here: {PAPERS / name} is missing")
    text = re.sub(r"\s+", " ", (PAPERS / name).read_text())
    for compute, communication, constant in PRINTED.values():
        assert f"T = {compute}, C = {communication}, P = {constant}" in text
    assert f"C = −{-RING_BY_EQUATION_1} < 0" in text
    assert "8 TITAN V-100 GPUs" in text


def test_seconds_and_ratios_are_those_of_the_equations():
    server, ring, only, first, second = fit_rows([])
    # by hand: 4223.8 / 8 + 8 · 12.1 + 290.8 and 4400.1 / 8 + 59.6 · 7 / 8 + 363.5
    for row, one, seconds in ((server, 4514.6, 915.575), (ring, 4763.6, 965.6625)):
        assert float(row["seconds"]) == pytest.approx(seconds)
        assert float(row["ratio"]) == pytest.approx(one / seconds, abs=1e-4)
    assert (only["C"], only["T"], only["seconds"]) == (-3.8, "", "")
    # equation 1 gives the printed ring a C of 0, and equation 2 has no one answer
    assert [float(first[key]) for key in "TCP"] == pytest.approx([4400.1 - 59.6, 0, 363.5 + 59.6])
    assert (first["C"], first["rank"], second["rank"]) == (0, "3", "2")
    assert "any C with T = 4340.5 + C and P = 423.1 - C" in str(second["note"])
    # whatever the C: the same times
    assert second["seconds"] == pytest.approx(first["seconds"]) == pytest.approx(965.6625)


def test_equation_4_of_paper_001_with_n_over_n_minus_1_is_another_model():
    """It would have rank 3, a server that is faster up to 12, and no C below 0 by equation 1."""
    gpus = np.arange(2.0, 99)
    columns = np.column_stack([1 / gpus, gpus / (gpus - 1), np.ones_like(gpus)])
    assert np.linalg.matrix_rank(columns[:7]) == 3
    ring = columns @ PAPER_RING
    server = [n for n in range(2, 99) if model_seconds("ps", PAPER_PS, n) < ring[n - 2]]
    assert server == list(range(2, 13))
    by_equation_1, *_ = np.linalg.lstsq(model_columns("ps", gpus[:7]), ring[:7], rcond=None)
    assert by_equation_1[1] == pytest.approx(3.06, abs=0.01)


def test_our_runs_are_fitted_by_the_equations_of_their_exchange():
    rows = fit_rows(runs_of("ps", PAPER_PS) + runs_of("ring", PAPER_RING))
    ours = {(row["times"], row["equation"]): row for row in rows if "our runs" in str(row["times"])}
    assert set(ours) == {("ps, our runs", "1"), ("ring, our runs", "1"), ("ring, our runs", "2")}
    server = ours["ps, our runs", "1"]
    assert [float(server[key]) for key in "TCP"] == pytest.approx(PAPER_PS, abs=1e-4)
    assert ours["ring, our runs", "1"]["C"] == 0


def test_the_command_writes_both_forms(tmp_path):
    table = tmp_path / "times.tsv"
    rows = [(run.exchange, run.ranks, run.seconds) for run in runs_of("ps", PAPER_PS, (1, 2, 4))]
    write_tsv(table, ("exchange", "ranks", "seconds"), rows)
    written = step_rows(tmp_path, "ring", "fits", "--times", table)
    assert (written[-1]["times"], written[-1]["ranks"]) == ("ps, our runs", "4")
    shown = cells(tmp_path / "fits.md")
    assert len(shown) == 2 + len(written)
    assert {len(row) for row in shown} == {10}
