"""Verdicts on tables whose numbers say what should be found, and the printed numbers."""

import math
from statistics import mean

import pandas as pd
import pytest

from actionspan_papers.experiments import frame_of
from actionspan_papers.partime import claims
from actionspan_papers.partime.baselines import baseline_rows
from actionspan_papers.partime.published import (
    SPEEDUPS,
    Cell,
    printed,
    printed_findings,
    printed_range,
)
from actionspan_papers.partime.settings import PartimeSettings, SpeedSettings
from papers.partime import tables
from papers.steps import NOT, REPRODUCED, UNKNOWN, row_of, verdicts

OWN = PartimeSettings(seeds=len(tables.SEEDS), stages=tables.STAGES)


@pytest.mark.parametrize(
    ("cosines", "verdict"),
    [({}, REPRODUCED), ({"slow": 0.6, "fast": 0.7, "inputs": 0.5}, NOT)],
)
def test_gradients_must_be_good_on_slow_streams_and_bad_on_fast(cosines, verdict):
    findings = claims.gradient_findings(tables.gradients(**cosines), OWN, good=0.9)
    assert len(findings) == 2 * 2 * 3  # streams, numbers of stages, claims
    assert verdicts(findings) == {verdict}


def test_gaps_must_close_with_the_window():
    def accuracy(window, stages, mode):
        if mode == "last stage only":
            return 0.2
        return 0.7 - 0.05 * (stages - 1) * (1 if window == 64 else 3)

    findings = claims.classification_findings(tables.classification(accuracy), OWN)
    assert verdicts(findings) == {REPRODUCED}
    # a pipeline above sequential learning is the other way round
    table = tables.classification(lambda window, stages, mode: 0.3 + 0.1 * stages)
    findings = claims.classification_findings(table, OWN)
    assert verdicts(findings, "sequential learning is above") == {NOT}
    assert verdicts(findings, "fewer stages") == {NOT}
    assert REPRODUCED not in verdicts(findings, "last stage alone")


def test_curves_of_one_pattern_are_told_from_others():
    shape = [3, 1, 4, 1, 5]
    table = tables.flow(lambda stages, t: shape[t] * (1 + 0.01 * stages))
    same = claims.flow_findings(table, OWN)
    for text in ("pattern of sequential", "lose little", "a little worse"):
        assert verdicts(same, text) == {REPRODUCED}
    table = tables.flow(lambda stages, t: shape[t] if stages == 1 else 6 - shape[t])
    assert verdicts(claims.flow_findings(table, OWN), "pattern of sequential") == {NOT}


def speedup(side, work, executor):
    return 1.6 + 0.1 * (side == 128) + 0.1 * (work == "learning") - 0.3 * (executor == "process")


def test_speed_ups_are_judged_by_the_faster_executor():
    findings = claims.speed_findings(tables.speeds(speedup), 0.95, 2)
    assert verdicts(findings) == {REPRODUCED}
    assert findings[0].difference == pytest.approx(0.1 + 0.02 + 0.011, abs=0.001)


def test_speed_on_a_busy_machine_or_not_measured_is_open():
    findings = claims.speed_findings(tables.speeds(speedup, load=7.0), 0.95, 2)
    assert verdicts(findings) == {UNKNOWN}
    assert all("busy (load 7.0" in finding.why for finding in findings)
    unmeasured = tables.speeds(speedup, measured="", load="")
    findings = claims.speed_findings(unmeasured, 0.95, 1)
    assert verdicts(findings) == {UNKNOWN}
    assert "fewer than two cores" in findings[0].why


@pytest.mark.parametrize(("step", "verdict"), [(2, REPRODUCED), (3, NOT)])
def test_one_gradient_that_comes_late_is_seen(step, verdict):
    forward, backward = [(1, 0), (2, 1)], [(2, 1), (1, step)]
    events = [(*at, "forward") for at in forward] + [(*at, "backward") for at in backward]
    rows = [
        row_of("kind stages sample stage step work", "measured", 2, 0, *event) for event in events
    ]
    assert claims.delay_finding(frame_of(rows)).verdict == verdict


def test_bytes_are_judged_as_they_are_counted():
    def findings(paper):
        counted = {"paper": paper, "inputs": 1024, "stash": 4096}.items()
        rows = [row_of("network stages mode counted", "resnet18", 2, *mode) for mode in counted]
        return claims.memory_findings(frame_of(rows))

    assert [finding.difference for finding in findings(0)] == [0, 4, 3]
    assert verdicts(findings(0)) == {REPRODUCED}
    assert findings(8)[0].verdict == NOT


def test_balance_and_messages_are_judged_by_counts():
    bounds = {"convolutions": 3.5, "pooled convolutions": 2.1}
    rows = [
        row_of("network R stages bound_by_operations", name, 64, 4, bound)
        for name, bound in bounds.items()
    ]
    (finding,) = claims.balance_findings(frame_of(rows))
    assert finding.verdict == REPRODUCED
    assert finding.claim.published == pytest.approx(3.492 - 2.217, abs=0.001)
    columns = "network stages bytes_with_skips bytes_without_skips"
    rows = [row_of(columns, name, 4, 3072, 1024) for name in ("resnet18", "efficientnet_lite0")]
    assert [finding.difference for finding in claims.message_findings(frame_of(rows))] == [2, 2]


BASELINES = pd.DataFrame(baseline_rows(SpeedSettings(depths=(2, 4))))


def test_timetables_bear_out_what_is_said_of_the_baselines():
    findings = claims.baseline_findings(BASELINES)
    assert verdicts(findings) == {REPRODUCED}
    assert all("D = 4" in finding.claim.measure for finding in findings)
    (bubble,) = (finding for finding in findings if "bubble" in finding.claim.text)
    assert bubble.difference == pytest.approx(4 - 16 / 7, abs=1e-4)


@pytest.mark.parametrize(
    ("schedule", "column", "cell", "text"),
    [
        ("GPipe", "activations", "4 3 2 1", "of a whole batch"),
        ("PipeDream", "versions", "4 3 2 2", "D − s + 1"),
        ("PipeDream", "speedup", "3.9", "no device idle"),
        ("PipeDream-2BW", "versions", "3 2 2 2", "two versions"),
        ("PipeDream-2BW", "delay", "2 1 1 1", "one update old"),
        ("PARTIME", "speedup", "2.1", "bubble makes it slower"),
        ("PARTIME", "activations", "5 3 2 1", "less than PipeDream-2BW"),
    ],
)
def test_another_timetable_would_not(schedule, column, cell, text):
    changed = BASELINES.astype({column: object})
    one = (changed["schedule"] == schedule) & (changed["stages"] == 4)
    changed.loc[one, column] = cell
    assert verdicts(claims.baseline_findings(changed), text) == {NOT}


def test_what_takes_a_gpu_for_each_stage_is_open_beside_its_published_lead():
    findings = [one for one in printed_findings() if "almost linear" in one.claim.text]
    assert verdicts(findings) == {UNKNOWN}
    assert all(math.isnan(one.difference) for one in findings)
    published = [mean(printed(network="plain", graph=True, stages=d).values()) for d in (4, 8)]
    expected = [published[0] - 0.8 * 4, published[1] - 0.8 * 8]
    assert [one.claim.published for one in findings] == pytest.approx(expected, abs=1e-4)


def test_every_cell_is_there_and_ranges_are_those_of_the_tables():
    assert len(SPEEDUPS) == 4 * 6 * 6
    cells = {
        Cell("plain", "inference", False, 256, 1, 2): 1.12,
        Cell("plain", "learning", True, 256, 10, 4): 4.11,
        Cell("pooled", "inference", True, 1024, 10, 8): 2.52,
        Cell("resnet", "inference", False, 256, 100, 8): 0.98,
    }
    assert cells.items() <= SPEEDUPS.items()
    assert printed_range("plain", "learning", 2, graph=True) == "1.89 to 1.99"
    assert printed_range("pooled", "inference", 8, graph=False) == "1.00 to 1.49"
    assert printed_range("resnet", "learning", 2, graph=True) == ""
