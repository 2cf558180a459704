"""Timetables of pipelines against closed forms, and against the events of our own pipeline."""

from fractions import Fraction
from itertools import product

import pytest
import torch
from torch import nn

from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.partime.baselines import SCHEDULES, measures, timetable

SIZES = list(product((1, 2, 3, 4, 6), (1, 2, 4, 7)))


def down(stages, times=1, last=0):
    """Return what falls by `times` from stage to stage, to `last` in the last one."""
    return tuple(times * (stages - h) + last for h in range(1, stages + 1))


@pytest.mark.parametrize(("d", "m"), SIZES)
def test_gpipe_waits_in_its_bubble_and_keeps_a_whole_batch(d, m):
    found = measures("GPipe", d, m)
    assert (found.idle, found.speedup) == (Fraction(d - 1, m + d - 1), Fraction(d * m, m + d - 1))
    assert (found.activations, found.versions) == ((m,) * d, (1,) * d)
    assert found.delay == found.other_input == (0,) * d
    # a batch takes 3(M + D − 1) units, its forward pass D + M − 1 of them
    apart = Fraction(3 * (m + d - 1), m)
    assert found.latency == (d + (m - 1) * (apart - 1)) / 3


@pytest.mark.parametrize(("d", "m"), SIZES)
def test_without_a_bubble_samples_on_their_way_take_versions_or_delays(d, m):
    """PipeDream keeps a version of each; 2BW two, of long enough batches; PARTIME none."""
    names = ("PipeDream", "PipeDream-2BW", "PARTIME")
    pipedream, two, partime = (measures(name, d, m) for name in names)
    for found in (pipedream, two, partime):
        assert (found.idle, found.speedup) == (0, d)
    assert pipedream.versions == pipedream.activations == two.activations == down(d, last=1)
    assert pipedream.delay == down(d)
    assert pipedream.other_input == two.other_input == (0,) * d
    # when a batch enters, D − 1 earlier samples are on their way: so many batches, begun or whole
    late = -(-(d - 1) // m)
    assert (two.delay, max(two.versions)) == ((late,) * d, late + 1)
    if m >= d > 1:  # the paper's condition
        assert two.versions == (2,) * d
    assert partime.versions == partime.activations == (1,) * d
    assert partime.delay == partime.other_input == down(d, 2)
    assert partime.latency == d - 1 + Fraction(1, 3)


@pytest.mark.parametrize(("schedule", "d", "m"), list(product(SCHEDULES, (1, 2, 4), (1, 3, 4))))
def test_stages_do_one_thing_at_a_time_with_what_has_arrived(schedule, d, m):
    works = timetable(schedule, d, m, 6 * m)
    at = {(work.work, work.stage, work.sample): work for work in works}
    assert len(at) == len(works)
    for stage in range(1, d + 1):
        own = sorted(work for work in works if work.stage == stage)
        assert all(a.end <= b.begin for a, b in zip(own, own[1:], strict=False))
    for (kind, stage, sample), work in at.items():
        if kind == "forward" and stage > 1:
            assert at["forward", stage - 1, sample].end <= work.begin
        if kind == "backward":
            assert at["forward", stage, sample].end <= work.begin
            if stage < d:
                assert at["backward", stage + 1, sample].end <= work.begin


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_partime_is_what_our_pipeline_does(stages):
    parts = [nn.Linear(2, 2) for _ in range(stages)]
    loss, value = nn.functional.mse_loss, torch.zeros(1, 2)

    def sgd(parameters):
        return torch.optim.SGD(parameters, lr=0.1)

    with Pipeline(parts, loss=loss, optimiser=sgd, record=True) as pipeline:
        list(pipeline.run((value, value) for _ in range(12)))
        recorded = {
            (stage, event.step, event.sample, event.work)
            for stage, report in enumerate(pipeline.report(), start=1)
            for event in report["events"]
            if event.work != "update"
        }
    works = timetable("PARTIME", stages, 1, 12)
    assert {(w.stage, w.begin // 3, w.sample, w.work) for w in works} == recorded
