"""The verdicts that printed numbers alone give, by the numbers as a reader would work them out."""

import pytest

from actionspan.storage.writing import read_tsv
from actionspan_papers.aavg.published import printed_findings as aavg
from actionspan_papers.mtn.published import TABLES
from actionspan_papers.mtn.published import printed_findings as mtn
from actionspan_papers.partime.published import BOLD, SPEEDUPS
from actionspan_papers.partime.published import printed_findings as partime
from actionspan_papers.sbp.published import printed_findings as sbp
from papers.steps import NOT, REPRODUCED, UNKNOWN
from test_docs import ROOT

BY_HAND = [
    (mtn, "best_table2", REPRODUCED, 55.31 - 54.67, "origin"),
    (mtn, "rising_table1", REPRODUCED, 75.6 - 74.8, "mtn over origin"),
    (mtn, "rising_table2", NOT, 27.96 - 28.36, "TURN over SST"),
    (partime, "bold_plain_inference", NOT, 0.5 - 2, "3.13 of 4 in bold, 2.99 of 4 in bold"),
    (partime, "bold_plain_learning", NOT, 0.5 - 2, "6.26 of 8 in bold, 6.35 of 8 in bold"),
    (partime, "bold_pooled_inference", NOT, 0.5 - 3, "1.16 of 2 not, 1.11 of 2 not"),
    (partime, "bold_resnet_inference", REPRODUCED, 0.5, "none"),
    (partime, "seven", NOT, 4.81 - 6.5, "7.14, 6.65, 4.81"),
    (partime, "learning", NOT, 6.61 - 7.14, "3 cells"),
    (partime, "faster_too", NOT, 0.78 - 1, "5 cells"),
    (partime, "graph_pooled", NOT, 0.80 - 1.66, "6 cells"),
    (aavg, "both", REPRODUCED, 88.3 - 84.1, ""),
    (aavg, "abstract", NOT, 0.05 - 0.06, "93.04"),
    (aavg, "rgb", NOT, 0.005 - 0.54, "85.6 there"),
    (aavg, "flow", NOT, 0.0, ""),
    (aavg, "shorter", NOT, 100 * 35 / 185 - 30, "19 %"),
    (aavg, "couple", NOT, 180 - 500, "61 + 439"),
    (aavg, "one", NOT, -1, "K ≥ 2/a"),
    (aavg, "above", NOT, 0, "K = 1 (a = 1.1)"),
    (sbp, "lost", NOT, 1 - 2.1, "Swin-B, EPIC: 2.1"),
    (sbp, "located", NOT, 1 - (31.17 - 29.41), "r = 0.25: 1.0"),
    (sbp, "online", REPRODUCED, 1 - 0.1, ""),
    (sbp, "saved", REPRODUCED, 100 * 21 / 26 - 80, "0.19"),
    (sbp, "time", NOT, 100 * 2 / 43 - 10, "Swin-B: 4.7"),
    (sbp, "again", REPRODUCED, 100 * 8 / 29 - 25, "27.6"),
    (sbp, "both", NOT, 100 * 1.2 / 4.4 - 35, "Swin-B: 46.5"),
    (sbp, "eighth", NOT, 22.5 - 100 * 4.3 / 14.6, "LSTR: 21.9"),
]


@pytest.mark.parametrize(("paper", "key", "verdict", "difference", "why"), BY_HAND)
def test_verdicts_by_hand(paper, key, verdict, difference, why):
    (found,) = [one for one in paper() if one.claim.key == key]
    assert found.verdict == verdict
    assert found.difference == pytest.approx(difference, abs=1e-6)
    assert why in found.why


@pytest.mark.parametrize("paper", [mtn, partime, aavg, sbp])
def test_every_row_has_a_verdict_and_what_is_open_what_it_takes(paper):
    findings = paper()
    for one in findings:
        assert "{" not in one.why
        assert (one.verdict == UNKNOWN) == (not one.claim.key)
        assert bool(one.decider()) == (one.verdict == UNKNOWN)
    words = [tuple(vars(one.claim).values())[:5] for one in findings]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("paper", ["mtn", "partime", "aavg", "sbp"])
def test_the_rows_have_a_claim_of_the_paper_each(paper):
    number = {"mtn": "001", "partime": "002", "aavg": "003", "sbp": "004"}[paper]
    for row in read_tsv(ROOT / f"src/actionspan_papers/{paper}/printed.tsv"):
        assert row["source"].startswith(f"{number}, ")
        assert all(row[name] for name in row if name not in ("key", "published"))


def test_each_number_of_a_rival_has_a_row():
    rows = {(one.claim.worse, one.claim.measure) for one in mtn() if one.claim.worse[0].isupper()}
    printed = {
        (name, metric.replace("thumos14_", "THUMOS14 "))
        for table in ("table1", "table2")
        for name, row in TABLES[table].rows.items()
        for metric in row.values
        if name[0].isupper()
    }
    assert rows == printed
    assert len(rows) == 2 + 4 * 4


def test_bold_is_as_printed():
    assert [len(marks) for marks in BOLD.values()] == [21, 25, 12, 20]
    assert all(cell in SPEEDUPS for marks in BOLD.values() for cell in marks)
