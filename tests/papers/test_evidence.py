"""Measurements of a GPU as evidence on claims: the table, and verdicts with and without it."""

import math
import re

import pytest

from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.evidence import COLUMNS, Measured, on_gpu, read_measurements
from actionspan_papers.sbp.published import COSTS
from papers.steps import NOT, REPRODUCED, UNKNOWN
from test_docs import ROOT

ROW = dict(
    zip(
        COLUMNS,
        "swin_step/Swin-T, SBP/seconds a step/0.2/0.19/0.25/A card/2.11/2026-11-26".split("/"),
        strict=True,
    )
)
KEY = ("swin_step", "Swin-T, SBP", "seconds a step")
DAY = "A card, torch 2.11, 2026-11-26"


def written(folder, *rows):
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    path = folder / "gpu.tsv"
    path.write_text("".join("\t".join(cells) + "\n" for cells in lines))
    return path


def test_a_table_is_read_by_case_and_a_missing_range_is_the_value(tmp_path):
    gib = ROW | {"quantity": "GiB allocated", "value": "4.5", "least": "", "most": ""}
    found = read_measurements(written(tmp_path, ROW, gib))
    assert found == {
        KEY: Measured(0.2, 0.19, 0.25, DAY),
        (*KEY[:2], "GiB allocated"): Measured(4.5, 4.5, 4.5, DAY),
    }
    assert read_measurements(tmp_path / "none.tsv") == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "fast"},
        {"value": "-1", "least": "", "most": ""},
        {"value": "inf", "most": "inf"},
        {"value": "0.3"},
        {"case": ""},
        {"date": "26.11.2026"},
        {},  # the same case again
    ],
)
def test_a_bad_row_is_one_line_that_names_it_and_the_correction(tmp_path, wrong):
    path = written(tmp_path, ROW, ROW | wrong)
    with pytest.raises(InputError) as caught:
        read_measurements(path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{path}: row 3, swin_step, ")
    assert line.endswith("0 < least ≤ value ≤ most, and a date such as 2026-11-26")


def test_another_table_is_one_line(tmp_path):
    rows = [{name: cell for name, cell in ROW.items() if name != "machine"}]
    with pytest.raises(InputError, match="no column 'machine': not a table of make gpu"):
        read_measurements(written(tmp_path, *rows))


def of_table_2(measurements, text):
    return [one for one in on_gpu("sbp", measurements) if one.claim.text == text]


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ((0.30, 0.29, 0.35), REPRODUCED),
        ((0.15, 0.14, 0.18), NOT),
        ((0.22, 0.20, 0.30), UNKNOWN),  # the rounds of both overlap
    ],
)
def test_a_verdict_is_by_all_rounds_and_names_machine_and_date(rounds, verdict):
    known = {KEY: Measured(0.2, 0.19, 0.25, DAY)}
    known[KEY[0], "Swin-T, end-to-end", KEY[2]] = Measured(*rounds, DAY)
    measured, other = of_table_2(known, "a step of Video Swin takes less time")
    assert measured.verdict == verdict
    assert measured.difference == pytest.approx(rounds[0] - 0.2)
    assert (measured.low, measured.high) == pytest.approx((rounds[1] - 0.25, rounds[2] - 0.19))
    assert f"Over all rounds: 0.2 against {rounds[0]:g} ({DAY})." in measured.why
    assert other.verdict == UNKNOWN  # Swin-B


@pytest.mark.parametrize(("gib", "verdict"), [(12.5, REPRODUCED), (4.5, NOT), (3.0, NOT)])
def test_one_figure_a_side_is_judged_by_its_sign(gib, verdict):
    quantity = "GiB allocated"
    known = {("swin_step", "Swin-T, SBP", quantity): Measured(4.5, 4.5, 4.5, DAY)}
    known["swin_step", "Swin-T, end-to-end", quantity] = Measured(gib, gib, gib, DAY)
    found, _ = of_table_2(known, "a step of Video Swin allocates less")
    assert (found.verdict, found.why) == (
        verdict,
        f"One figure each: 4.5 against {gib:.4g} ({DAY}).",
    )


@pytest.mark.parametrize("paper", ["ring", "partime", "sbp"])
def test_without_measurements_all_is_open_and_names_the_command(paper):
    findings = on_gpu(paper, {})
    assert findings
    for one in findings:
        assert (one.verdict, math.isnan(one.difference)) == (UNKNOWN, True)
        assert "make gpu" in one.why
        assert one.decider() == "`make gpu` on a machine with a GPU"


def test_several_stages_on_one_device_may_gain_a_tenth():
    """The rounds of 2026-11-26, by hand: eager, then graph, of one stage and of two."""
    rounds = {
        "1, eager": (50.082, 48.259, 50.364),
        "2, eager": (50.054, 44.927, 55.671),
        "1, graph": (16.006, 16.003, 16.008),
        "2, graph": (11.128, 11.121, 11.139),
    }
    known = {
        ("pipeline_cuda", f"128, learning, {case}", "ms per frame"): Measured(*numbers, DAY)
        for case, numbers in rounds.items()
    }
    found = [one for one in on_gpu("partime", known) if "next to nothing" in one.claim.text]
    assert [one.verdict for one in found] == [UNKNOWN, UNKNOWN, UNKNOWN, NOT]
    assert found[-1].difference == pytest.approx(1.1 - 1.43835, abs=1e-5)
    assert (found[2].low, found[2].high) == pytest.approx((-0.02102, 0.23314), abs=1e-5)


def test_the_shipped_table_decides_on_graphs_and_exchanges():
    known = read_measurements()
    graphs = [one for one in on_gpu("partime", known) if "frames of small" in one.claim.text]
    decided = [*graphs, *on_gpu("ring", known)]
    assert len(decided) == 2 + 4
    for one in decided:
        assert one.verdict != UNKNOWN
        assert any(measured.place in one.why for measured in known.values())


def test_published_differences_are_those_of_table_2():
    columns = {"GiB allocated": "gigabytes", "seconds a step": "seconds"}
    rows = read_tsv(ROOT / "src/actionspan_papers/sbp/on_gpu.tsv")
    for row in rows:
        own, other = (
            getattr(COSTS[network, way], columns[row["quantity"]])
            for network, way in (row[side].split(", ") for side in ("own", "other"))
        )
        assert float(row["published"]) == pytest.approx(other - own)
    assert len(rows) == 2 * 5


def test_the_shipped_table_is_that_of_the_page():
    """Each figure of the evidence stands in docs/gpu.md, with its ends and its date."""
    page = (ROOT / "docs/gpu.md").read_text()
    numbers = set(map(float, re.findall(r"\d+(?:\.\d+)?", page)))
    for one in read_measurements().values():
        assert {one.value, one.least, one.most} <= numbers
        assert one.place.rpartition(", ")[2] in page
