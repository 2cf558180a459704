"""Verdicts on tables whose numbers say what should be found."""

import math

import pandas as pd
import pytest

from actionspan_papers.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED
from actionspan_papers.experiments import frame_of
from actionspan_papers.partime.baselines import baseline_rows
from actionspan_papers.partime.claims import (
    balance_findings,
    baseline_findings,
    delay_finding,
    memory_findings,
    message_findings,
    speed_findings,
    untestable_findings,
)
from actionspan_papers.partime.learning_claims import (
    classification_findings,
    flow_findings,
    gradient_findings,
)
from actionspan_papers.partime.settings import PartimeSettings, SpeedSettings
from papers.partime import tables

OWN = PartimeSettings(seeds=len(tables.SEEDS), stages=tables.STAGES)


def verdicts(findings, text):
    found = {finding.verdict for finding in findings if text in finding.claim.text}
    assert found, text
    return found


def test_good_gradients_on_slow_streams_and_bad_ones_on_fast_are_reproduced():
    findings = gradient_findings(frame_of(tables.gradients()), OWN, good=0.9)
    assert len(findings) == 2 * 2 * 3  # streams, numbers of stages, claims
    assert {finding.verdict for finding in findings} == {REPRODUCED}


def test_bad_gradients_on_slow_streams_are_not():
    findings = gradient_findings(
        frame_of(tables.gradients(slow=0.6, fast=0.7, inputs=0.5)), OWN, good=0.9
    )
    assert {finding.verdict for finding in findings} == {NOT_REPRODUCED}


def test_gaps_that_close_with_the_window_are_reproduced():
    def accuracy(window, stages, mode):
        if mode == "last stage only":
            return 0.2
        return 0.7 - 0.05 * (stages - 1) * (1 if window == 64 else 3)

    findings = classification_findings(frame_of(tables.classification(accuracy)), OWN)
    assert {finding.verdict for finding in findings} == {REPRODUCED}


def test_a_pipeline_above_sequential_learning_is_the_other_way_round():
    findings = classification_findings(
        frame_of(tables.classification(lambda window, stages, mode: 0.3 + 0.1 * stages)), OWN
    )
    assert verdicts(findings, "sequential learning is above") == {NOT_REPRODUCED}
    assert verdicts(findings, "fewer stages") == {NOT_REPRODUCED}
    assert REPRODUCED not in verdicts(findings, "last stage alone")


def test_curves_of_one_pattern_are_told_from_others():
    shape = [3, 1, 4, 1, 5]
    same = flow_findings(
        frame_of(tables.flow(lambda stages, t: shape[t] * (1 + 0.01 * stages))), OWN
    )
    assert verdicts(same, "pattern of sequential") == {REPRODUCED}
    assert verdicts(same, "lose little") == {REPRODUCED}
    assert verdicts(same, "a little worse") == {REPRODUCED}
    other = flow_findings(
        frame_of(tables.flow(lambda stages, t: shape[t] if stages == 1 else 6 - shape[t])), OWN
    )
    assert verdicts(other, "pattern of sequential") == {NOT_REPRODUCED}


def speedup(side, work, executor):
    return 1.6 + 0.1 * (side == 128) + 0.1 * (work == "learning") - 0.3 * (executor == "process")


def test_speed_ups_are_judged_by_the_faster_executor():
    findings = speed_findings(frame_of(tables.speeds(speedup)), 0.95, 2)
    assert {finding.verdict for finding in findings} == {REPRODUCED}
    assert findings[0].difference == pytest.approx(0.1 + 0.02 + 0.011, abs=0.001)


def test_a_busy_machine_leaves_speed_open():
    findings = speed_findings(frame_of(tables.speeds(speedup, load=7.0)), 0.95, 2)
    assert {finding.verdict for finding in findings} == {NOT_TESTABLE}
    assert all("busy (load 7.0" in finding.why for finding in findings)


def test_speed_that_was_not_measured_is_open():
    rows = frame_of([{**row, "measured": "", "load": ""} for row in tables.speeds(speedup)])
    findings = speed_findings(rows, 0.95, 1)
    assert {finding.verdict for finding in findings} == {NOT_TESTABLE}
    assert "fewer than two cores" in findings[0].why


def event(stage, step, sample, work):
    row = {"kind": "measured", "stages": "2", "stage": stage, "step": step, "sample": sample}
    return {name: str(value) for name, value in row.items()} | {"work": work}


@pytest.mark.parametrize(("step", "verdict"), [(2, REPRODUCED), (3, NOT_REPRODUCED)])
def test_one_gradient_that_comes_late_is_seen(step, verdict):
    rows = [
        event(1, 0, 0, "forward"),
        event(2, 1, 0, "forward"),
        event(2, 1, 0, "backward"),
        event(1, step, 0, "backward"),
    ]
    assert delay_finding(frame_of(rows)).verdict == verdict


def test_bytes_are_judged_as_they_are_counted():
    def row(mode, counted):
        return {"network": "resnet18", "stages": "2", "mode": mode, "counted": str(counted)}

    rows = [row("paper", 0), row("inputs", 1024), row("stash", 4096)]
    findings = memory_findings(frame_of(rows))
    assert [finding.difference for finding in findings] == [0, 4, 3]
    assert {finding.verdict for finding in findings} == {REPRODUCED}
    kept = memory_findings(frame_of([row("paper", 8), *rows[1:]]))
    assert kept[0].verdict == NOT_REPRODUCED


def test_balance_and_messages_are_judged_by_counts():
    def bound(network, value):
        return {"network": network, "R": "64", "stages": "4", "bound_by_operations": str(value)}

    (finding,) = balance_findings(
        frame_of([bound("convolutions", 3.5), bound("pooled convolutions", 2.1)])
    )
    assert finding.verdict == REPRODUCED
    assert finding.claim.published == pytest.approx(3.492 - 2.217, abs=0.001)
    row = {"stages": "4", "bytes_with_skips": "3072", "bytes_without_skips": "1024"}
    rows = [{**row, "network": name} for name in ("resnet18", "efficientnet_lite0")]
    assert [finding.difference for finding in message_findings(frame_of(rows))] == [2, 2]


def test_what_takes_gpus_stays_open():
    findings = untestable_findings()
    assert {finding.verdict for finding in findings} == {NOT_TESTABLE}
    assert all(math.isnan(finding.difference) for finding in findings)
    assert len(findings) == 3


BASELINES = pd.DataFrame(baseline_rows(SpeedSettings(depths=(2, 4))))


def test_timetables_bear_out_what_is_said_of_the_baselines():
    findings = baseline_findings(BASELINES)
    built = [finding for finding in findings if not finding.why.startswith("Not built")]
    assert {finding.verdict for finding in built} == {REPRODUCED}
    assert all("D = 4" in finding.claim.measure for finding in built)
    (bubble,) = (finding for finding in findings if "bubble" in finding.claim.text)
    assert bubble.difference == pytest.approx(4 - 16 / 7, abs=1e-4)
    left = [finding for finding in findings if finding not in built]
    assert len(left) == 3
    assert {finding.verdict for finding in left} == {NOT_TESTABLE}


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
    assert verdicts(baseline_findings(changed), text) == {NOT_REPRODUCED}
