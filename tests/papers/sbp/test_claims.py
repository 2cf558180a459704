"""Verdicts on tables whose numbers say what should be found."""

import csv

import pytest

from actionspan.cli import main
from actionspan_papers.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED
from actionspan_papers.estimates import Estimate, alike, at_most
from actionspan_papers.experiments import frame_of
from actionspan_papers.sbp.claims import (
    accuracy_findings,
    cell,
    localisation_findings,
    memory_findings,
    online_findings,
    rate_findings,
    time_findings,
    turned,
)
from actionspan_papers.sbp.layer_claims import depth_findings, likeness_findings
from papers.sbp import claimed
from papers.sbp.test_gradients import rows_of


def frame(name, **numbers):
    return frame_of(getattr(claimed, name)(**numbers))


def verdicts(findings, text):
    found = {finding.verdict for finding in findings if text in finding.claim.text}
    assert found, text
    return found


def test_the_paper_s_numbers_would_be_reproduced():
    findings = [*online_findings(frame("table4")), *localisation_findings(frame("table5"))]
    assert verdicts(findings, "end-to-end training is better") == {REPRODUCED}
    assert verdicts(findings, "SBP is better than a frozen") == {REPRODUCED}
    online = online_findings(frame("table4"))
    assert verdicts(online, "loses less than 1 point") == {REPRODUCED}
    # table 5 itself loses a point: an interval around that is open
    assert verdicts(localisation_findings(frame("table5")), "loses less") == {NOT_TESTABLE}
    assert online[0].claim.published == pytest.approx(1.5)


def test_sbp_far_below_full_training_is_not():
    findings = online_findings(frame("table4", full=4.0, sbp=-2.0))
    assert verdicts(findings, "SBP is better than a frozen") == {NOT_REPRODUCED}
    assert verdicts(findings, "loses less than 1 point") == {NOT_REPRODUCED}


def test_one_seed_leaves_detection_open():
    findings = [
        *online_findings(frame("table4", seeds="1")),
        *localisation_findings(frame("table5", seeds="1")),
    ]
    assert {finding.verdict for finding in findings} == {NOT_TESTABLE}
    assert "One seed" in findings[0].why


def test_rates_and_samplers():
    findings = rate_findings(frame("figure6"))
    assert verdicts(findings, "a tenth") == {REPRODUCED}
    assert verdicts(findings, "samplers are alike") == {REPRODUCED}
    assert verdicts(findings, "diverse features is best") == {NOT_TESTABLE}
    findings = rate_findings(frame("figure6", tenth=-1.5, diverse=2.0))
    assert verdicts(findings, "a tenth") == {NOT_REPRODUCED}
    assert verdicts(findings, "samplers are alike") == {NOT_REPRODUCED}
    assert verdicts(findings, "diverse features is best") == {REPRODUCED}


def test_bytes_and_seconds_are_judged_as_they_are():
    tables = frame("table1"), frame("table2")
    findings = memory_findings(frame("measurements"), *tables)
    assert {finding.verdict for finding in findings[:-1]} == {REPRODUCED}
    assert findings[-1].why == "Not built: transformers are trained in float32 here."
    swin = [finding.claim for finding in findings if "Swin-B" in finding.claim.measure]
    # table 1: 8.6 and 6.3 of 32.5 GB
    assert [claim.published for claim in swin] == pytest.approx(
        [0.05 - (8.6 / 32.5 - 0.25), (8.6 - 6.3) / 32.5]
    )
    costly = frame("table1", sbp=0.31, dropout=0.32)
    other = memory_findings(frame("measurements"), costly, frame("table2")[:0])
    assert verdicts(other, "a quarter") == verdicts(other, "costs less") == {NOT_REPRODUCED}
    tables = frame("table1"), frame("table2", sbp=0.5, mixed=0.28)  # 0.56 of SBP's
    findings = memory_findings(frame("measurements", saved=0.4), *tables)
    assert verdicts(findings, "memory is almost r") == {NOT_REPRODUCED}
    assert verdicts(findings, "mixed precision halves") == {NOT_REPRODUCED}
    assert verdicts(findings, "SBP saves as much as checkpointing") == {NOT_REPRODUCED}
    # 0.55 is nearer to a half, our form, than to the paper's three quarters
    findings = time_findings(frame("measurements", seconds=0.55))
    assert [finding.verdict for finding in findings] == [NOT_REPRODUCED, REPRODUCED]
    findings = time_findings(frame("measurements", seconds=0.95))
    assert findings[0].verdict == REPRODUCED
    empty = [{**row, "saved_part": "", "seconds_part": ""} for row in claimed.measurements()]
    assert {finding.verdict for finding in time_findings(frame_of(empty))} == {NOT_TESTABLE}


def test_transformers_are_judged_by_their_tables():
    findings = accuracy_findings(frame("table3"), margin=1.0)
    assert {finding.verdict for finding in findings} == {REPRODUCED}
    findings = accuracy_findings(frame("table3", dropout=-2, less=3, checkerboard=4), margin=1.0)
    assert [finding.verdict for finding in findings] == [
        NOT_REPRODUCED,
        REPRODUCED,
        NOT_REPRODUCED,
        NOT_REPRODUCED,
    ]
    alone = accuracy_findings(frame("table3", seeds="70"), margin=1.0)
    assert {finding.verdict for finding in alone} == {NOT_TESTABLE}


def test_layers_are_judged_over_seeds():
    assert verdicts(depth_findings(frame("figure1"), 0.95), "activations") == {REPRODUCED}
    turned_round = frame("figure1", bottom=0.4, top=0.9)
    assert verdicts(depth_findings(turned_round, 0.95), "gradients") == {NOT_REPRODUCED}
    assert {f.verdict for f in likeness_findings(frame("figure4"), 0.95)} == {REPRODUCED}
    findings = likeness_findings(frame("figure4", sbp=0.5, bottom=0.8), 0.95)
    assert {finding.verdict for finding in findings} == {NOT_REPRODUCED}


def ends(difference):
    assert isinstance(difference, Estimate)
    return pytest.approx((difference.low, difference.high))


def test_margins():
    narrow = Estimate(value=-0.4, low=-0.9, high=0.2)
    assert ends(alike(1.0, narrow)) == (0.1, 1.0)
    assert ends(alike(0.5, narrow)) == (-0.4, 0.5)
    assert ends(alike(0.5, Estimate(value=2.0, low=1.0, high=3.0))) == (-2.5, -0.5)
    assert ends(at_most(1.0, narrow)) == (0.1, 1.2)
    assert ends(turned(narrow)) == (-0.2, 0.9)
    missing = cell(frame("table4")[:1], "above_full", way="sbp")
    assert missing == "There are no runs of way sbp."
    assert alike(1.0, missing) == at_most(1.0, missing) == turned(missing) == missing


def test_the_step_writes_all_verdicts(tmp_path):
    tables = {
        name: getattr(claimed, name)()
        for name in (
            "table1",
            "table2",
            "table3",
            "table4",
            "table5",
            "figure1",
            "figure4",
            "figure6",
        )
    }
    tables |= {"measurements": claimed.measurements()}
    tables |= {"gradients": rows_of({"0.5": 0.97, "0.25": 0.8}, {"0.5": 0.8, "0.25": 0.57})}
    words = []
    for name, rows in tables.items():
        path = tmp_path / f"{name}.tsv"
        with path.open("w") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        words += [f"--{name}", path]
    words += ["--out-tsv", tmp_path / "claims.tsv", "--out-markdown", tmp_path / "claims.md"]
    assert main(["papers", "sbp", "claims", *map(str, words)]) == 0
    text = (tmp_path / "claims.md").read_text()
    assert text.startswith("Claims of paper 004 on our data:")
    with (tmp_path / "claims.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert {row["verdict"] for row in rows} >= {REPRODUCED, NOT_TESTABLE}
    assert sum("importance" in row["better"] for row in rows) >= 4
