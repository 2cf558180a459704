"""Timetables of pipelines against closed forms, and against the events of our own pipeline."""

from fractions import Fraction
from itertools import product

import pytest
import torch
from torch import nn

from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.partime.baselines import SCHEDULES, measures, timetable

SIZES = [pytest.param(d, m, id=f"D={d},M={m}") for d, m in product((1, 2, 3, 4, 6), (1, 2, 4, 7))]


def down(stages, times=1, last=0):
    """Return what falls by `times` from stage to stage, to `last` in the last one."""
    return tuple(times * (stages - h) + last for h in range(1, stages + 1))


@pytest.mark.parametrize(("d", "m"), SIZES)
def test_gpipe_waits_in_its_bubble_and_keeps_a_whole_batch(d, m):
    found = measures("GPipe", d, m)
    assert found.idle == Fraction(d - 1, m + d - 1)
    assert found.speedup == Fraction(d * m, m + d - 1)
    assert found.activations == (m,) * d
    assert found.versions == (1,) * d
    assert found.delay == found.other_input == (0,) * d
    # a batch takes 3(M + D − 1) units, its forward pass D + M − 1 of them
    apart = Fraction(3 * (m + d - 1), m)
    assert found.latency == (d + (m - 1) * (apart - 1)) / 3


@pytest.mark.parametrize(("d", "m"), SIZES)
def test_pipedream_keeps_a_version_for_each_sample_on_its_way(d, m):
    found = measures("PipeDream", d, m)
    assert (found.idle, found.speedup) == (0, d)
    assert found.versions == found.activations == down(d, last=1)
    assert found.delay == down(d)
    assert found.other_input == (0,) * d


@pytest.mark.parametrize(("d", "m"), SIZES)
def test_2bw_keeps_two_versions_where_batches_are_long_enough(d, m):
    found = measures("PipeDream-2BW", d, m)
    assert (found.idle, found.speedup) == (0, d)
    assert found.activations == down(d, last=1)
    assert found.other_input == (0,) * d
    # when a batch enters, D − 1 earlier samples are on their way: so many batches, begun or whole
    late = -(-(d - 1) // m)
    assert found.delay == (late,) * d
    assert max(found.versions) == late + 1
    if m >= d > 1:  # the paper's condition
        assert found.versions == (2,) * d


@pytest.mark.parametrize(("d", "m"), SIZES)
def test_partime_answers_a_sample_a_step_through_inputs_that_came_later(d, m):
    found = measures("PARTIME", d, m)
    assert (found.idle, found.speedup) == (0, d)
    assert found.versions == found.activations == (1,) * d
    assert found.delay == found.other_input == down(d, 2)
    assert found.latency == d - 1 + Fraction(1, 3)


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
