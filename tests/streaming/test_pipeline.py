"""What a caller meets: indices, targets, memory, forms, modes and whose module learns."""

import copy
import doctest
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from actionspan.streaming import Pipeline
from streaming.conftest import every_executor, learning_or_not
from streaming.networks import (
    WIDTH,
    Affine,
    chain,
    halving,
    recorders,
    same,
    sgd,
    squared,
    stream,
    weights,
)

LEARNING = {"loss": squared, "optimiser": sgd}


@every_executor
@learning_or_not
def test_a_step_answers_the_sample_of_d_minus_1_steps_ago(executor, learning):
    with Pipeline(chain(3), executor, **(LEARNING if learning else {})) as pipeline:
        found = [pipeline.step(x, y if learning else None) for x, y in stream(6)]
        assert [answer and answer.index for answer in found] == [None, None, 0, 1, 2, 3]
        assert [answer.index for answer in pipeline.drain()] == [4, 5]
        # and it goes on after a drain, also with fewer samples than stages, as a fresh one does
        for first, samples in ((6, 0), (6, 1), (7, 2), (9, 3)):
            given_ = stream(samples)
            answers = list(pipeline.run(given_ if learning else (x for x, _ in given_)))
            assert [answer.index for answer in answers] == list(range(first, first + samples))
            assert all((answer.loss is not None) == learning for answer in answers)
    with Pipeline(chain(3), executor) as fresh:
        assert [answer.index for answer in fresh.run(x for x, _ in stream(1))] == [0]


@settings(max_examples=30)
@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(1, 4))
def test_only_samples_with_a_target_are_learned(labelled, stages):
    logs, makers = recorders(stages, 0.05)
    samples = [(x, y if has else None) for (x, y), has in zip(stream(12), labelled, strict=False)]
    with Pipeline(chain(stages), loss=squared, optimiser=makers, gradients="inputs") as pipeline:
        answers = [*(a for x, y in samples if (a := pipeline.step(x, y))), *pipeline.drain()]
    assert [answer.loss is not None for answer in answers] == labelled
    assert [len(log) for log in logs] == [sum(labelled)] * stages


@every_executor
def test_a_target_may_come_late_but_not_too_late(executor):
    samples, losses = stream(8), []
    for late in (0, 2):
        with Pipeline(chain(3), executor, **LEARNING) as pipeline:
            answers = []
            for step, (x, y) in enumerate(samples):
                if late and step >= late:
                    pipeline.target(step - late, samples[step - late][1])
                answers.append(pipeline.step(x, None if late else y))
            if late:
                with pytest.raises(ValueError, match="target of sample 5: too late"):
                    pipeline.target(5, samples[5][1])
                pipeline.target(6, samples[6][1])
                pipeline.target(7, samples[7][1])
            answers += pipeline.drain()
        losses.append([answer.loss for answer in answers if answer])
    assert losses[0] == losses[1]
    assert None not in losses[0]


@every_executor
@learning_or_not
def test_answers_and_samples_own_their_memory_and_targets_are_those_of_the_sample(
    executor, learning
):
    """The caller may write into a sample once it is put in, and keep every answer.

    Outputs are the samples and targets differ, so every loss says whose it is.
    """
    buffer, target = torch.zeros(2), torch.zeros(2)
    identity = [nn.Identity() for _ in range(3)]
    with Pipeline(identity, executor, loss=squared if learning else None) as pipeline:
        for i in range(8):
            pipeline.submit(buffer.fill_(i), target.fill_(3 * i) if learning else None)
            buffer.fill_(-1)
            target.fill_(-1)
        answers = pipeline.drain()
    assert [float(answer.output[0]) for answer in answers] == [float(i) for i in range(8)]
    assert [answer.loss for answer in answers] == [4.0 * i * i if learning else None
                                                   for i in range(8)]  # fmt: skip


@every_executor
def test_the_callers_module_learns_and_is_readable_between_steps(executor):
    network = chain(2)
    names = [id(parameter) for stage in network for parameter in stage.parameters()]
    before = weights(network)
    with Pipeline(network, executor, **LEARNING) as pipeline:
        for x, y in stream(4):
            pipeline.step(x, y)
        pipeline.wait()
        during = weights(network)
        state = pipeline.state_dict()
    assert [id(parameter) for stage in network for parameter in stage.parameters()] == names
    assert not same(during, before)
    assert same(weights(network), during)
    assert same([tensor for s in state["stages"] for tensor in s["module"].values()], during)
    list(network[0].parameters())[0].data.add_(1.0)  # ordinary memory again
    optimiser = torch.optim.SGD(network[0].parameters(), lr=0.1)
    network[0](stream(1)[0][0]).sum().backward()
    optimiser.step()


@every_executor
def test_frozen_stages_and_stages_without_parameters(executor):
    network = [*chain(2), nn.Tanh(), *chain(1, seed=50)]
    network[0].requires_grad_(False)
    partly = next(iter(network[1].parameters()))
    partly.requires_grad_(False)
    before = copy.deepcopy(network)
    with Pipeline(network, executor, **LEARNING) as pipeline:
        list(pipeline.run(stream(20)))
        assert [report["updates"] for report in pipeline.report()] == [0, 16, 0, 20]
    assert torch.equal(partly, next(iter(before[1].parameters())))
    for stages, learns in ((slice(0, 1), False), (slice(1, 2), True), (slice(3, 4), True)):
        assert same(weights(network[stages]), weights(before[stages])) != learns


def test_each_stage_has_its_own_rate_schedule_and_clipping():
    network = chain(2)
    makers = [partial(torch.optim.SGD, lr=0.0), partial(torch.optim.SGD, lr=0.1)]
    how = {"optimiser": makers, "schedule": [None, halving], "clip": [None, 1e-9]}
    with Pipeline(network, loss=squared, **how) as pipeline:
        list(pipeline.run(stream(8)))
        first, second = pipeline.state_dict()["stages"]
    assert same(weights(network[:1]), weights(chain(2)[:1]))
    assert first["schedule"] is None
    assert second["optimiser"]["param_groups"][0]["lr"] == 0.1 * 0.5**2
    moved = [a - b for a, b in zip(weights(network[1:]), weights(chain(2)[1:]), strict=True)]
    assert 0 < max(float(tensor.abs().max()) for tensor in moved) < 1e-8


SHARED = Affine(0)


@pytest.mark.parametrize(
    ("stages", "how", "message"),
    [
        ([], {}, "at least one stage"),
        ([SHARED, nn.Sequential(SHARED)], {}, "stages 1 and 2 share a parameter"),
        (chain(2), LEARNING | {"optimiser": [sgd, None]}, "stage 2 of 2 learns and needs an optim"),
        (chain(2), LEARNING | {"schedule": [halving]}, "schedule: 1 given for 2 stages"),
        (chain(1), LEARNING | {"gradients": "true"}, "'true': one of paper, inputs, stash"),
        (chain(1), {"executor": "gpu"}, "executor 'gpu': one of"),
    ],
)
def test_what_cannot_run_is_refused(stages, how, message):
    with pytest.raises(ValueError, match=message):
        Pipeline(stages, **how)


@every_executor
def test_another_shape_in_mid_stream_is_one_clear_error(executor):
    right, wrong = (torch.zeros(rows, WIDTH, dtype=torch.float64) for rows in (3, 2))
    with Pipeline(chain(2), executor) as pipeline:
        pipeline.submit(right)
        message = r"sample 1: float64 \[2, 4\]; the stream began with float64 \[3, 4\]"
        with pytest.raises(ValueError, match=message):
            pipeline.submit(wrong)
        with pytest.raises(TypeError, match="sample 1: a tuple of tensors, not of float"):
            pipeline.submit([1.0])
        pipeline.submit(right)
        assert [answer.index for answer in pipeline.drain()] == [0, 1]


@every_executor
def test_answers_may_be_asked_for_without_waiting(executor):
    with Pipeline(chain(3), executor) as pipeline:
        assert pipeline.answer(timeout=0.0) is None
        pipeline.submit(stream(1)[0][0])
        answer = pipeline.answer(timeout=30.0)
        assert answer is not None
        assert answer.index == 0
        assert pipeline.answer() is None


@every_executor
def test_callables_without_parameters_are_stages(executor):
    with Pipeline([torch.sin, torch.cos], executor) as pipeline:
        answers = list(pipeline.run([torch.ones(2)] * 3))
    assert all(torch.equal(a.output, torch.cos(torch.sin(torch.ones(2)))) for a in answers)


@every_executor
def test_events_show_the_timetable(executor):
    with Pipeline(chain(3), executor, **LEARNING, record=True) as pipeline:
        list(pipeline.run(stream(7)))
        reports = pipeline.report()
    for h, report in enumerate(reports):
        forward, backward = (
            [(e.step, e.sample) for e in report["events"] if e.work == work]
            for work in ("forward", "backward")
        )
        assert forward == [(t, t - h) for t in range(h, 7 + h)]
        delay = 2 * (2 - h)
        assert backward == [(t, t - h - delay) for t in range(h + delay, 7 + h)]
        assert all(event.begin <= event.end for event in report["events"])


def test_the_output_of_a_random_caller_is_not_disturbed():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    with Pipeline([nn.Dropout(0.5)]) as pipeline:
        list(pipeline.run([torch.ones(100)] * 3))
    assert torch.equal(torch.rand(3), expected)


def test_the_example_of_the_documentation_runs():
    found = doctest.DocTestFinder(recurse=False).find(Pipeline)
    assert sum(len(each.examples) for each in found) >= 1
    for each in found:
        assert doctest.DocTestRunner().run(each).failed == 0


def test_an_output_may_be_a_tuple_and_is_printed_by_its_shapes():
    with Pipeline([lambda x: (x, 2 * x.long())]) as line:
        (answer,) = line.run([torch.ones(2, 3)])
    assert isinstance(answer.output, tuple)
    assert torch.equal(answer.output[1], torch.full((2, 3), 2))
    shown = "float32 [2, 3] and int64 [2, 3] in a tuple"
    assert repr(answer) == f"Answer(index=0, output={shown}, loss=None)"
