"""The engine against the closed form, plain training and the true gradients."""

import copy
from functools import partial

import pytest
import torch
from torch import nn

from actionspan.streaming import Pipeline
from streaming.conftest import every_mode
from streaming.networks import (
    WIDTH,
    adam,
    chain,
    halving,
    mixed,
    momentum,
    recorders,
    same,
    sgd,
    squared,
    stream,
    weights,
)
from streaming.oracle import closed_form

SAMPLES = 13
two_to_four = pytest.mark.parametrize("stages", [2, 3, 4])


class ThroughData(torch.optim.Optimizer):
    """SGD that writes where torch does not count changes."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.05})

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data = parameter.data - group["lr"] * parameter.grad


@every_mode
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("make", [None, partial(sgd, fused=True), ThroughData])
def test_every_gradient_output_and_weight_is_that_of_the_closed_form(stages, mode, make):
    """Also where torch does not count how often an optimiser changes the weights."""
    network, samples = chain(stages), stream(SAMPLES)
    expected = closed_form(network, samples, 0.05, mode)
    logs, makers = recorders(stages, 0.05)
    with Pipeline(network, loss=squared, optimiser=make or makers, gradients=mode) as pipeline:
        answers = list(pipeline.run(samples))
    assert [answer.index for answer in answers] == list(range(SAMPLES))
    for module, right in zip(network, expected.weights, strict=True):
        for found, weight in zip(module.parameters(), right.values(), strict=True):
            near = 0 if make is None else 1e-12
            torch.testing.assert_close(found.detach(), weight, rtol=0, atol=near)
    if make is None:
        assert same([answer.output for answer in answers], expected.outputs)
        for log, gradients in zip(logs, expected.gradients, strict=True):
            wanted = [gradient for _, gradient in sorted(gradients.items())]
            assert len(log) == len(wanted)
            assert all(map(same, log, wanted))


@pytest.mark.parametrize("stages", [3, 4])
def test_the_printed_equations_8_10_and_11_are_not_what_happens(stages):
    network, samples = chain(stages), stream(SAMPLES)
    right, printed = (
        closed_form(network, samples, 0.05, printed=printed).gradients[0][SAMPLES - 1]
        for printed in (False, True)
    )
    logs, makers = recorders(stages, 0.05)
    with Pipeline(network, loss=squared, optimiser=makers) as pipeline:
        list(pipeline.run(samples))
    assert same(logs[0][-1], right)
    assert _distance(right, printed) > 0.01 * _norm(right)


def test_the_fill_changes_nothing():
    network, events = mixed(), []
    before = weights(network)
    with Pipeline(network, loss=squared, optimiser=momentum, schedule=halving) as pipeline:
        for x, y in stream(6, double=False):
            pipeline.step(x, y)
            pipeline.wait()
            events.append(weights(network))
    # of stage 0 the parameters (the first four) change from step 2 D - 2 on, and no earlier
    for step, now in enumerate(events):
        assert same(now[:4], before[:4]) == (step < 4)
    # the last stage sees nothing, and changes nothing, before step D - 1
    last = len(before) - len(weights(network[2:]))
    assert same(events[1][last:], before[last:])
    assert not same(events[2][last:], before[last:])
    # batch norm of stage 1 counts no sample in the fill
    place = len(weights(network[:1])) + 6
    assert [int(state[place]) for state in events] == [0, 1, 2, 3, 4, 5]


@every_mode
@pytest.mark.parametrize("make", [momentum, adam])
def test_one_stage_is_plain_training(mode, make):
    network = nn.Sequential(*mixed(dropout=0.3))
    plain, samples, expected = copy.deepcopy(network), stream(10, double=False), []
    how = {"optimiser": make, "schedule": halving, "clip": 0.1, "gradients": mode, "seed": 3}
    with Pipeline([network], loss=squared, **how) as pipeline:
        losses = [answer.loss for answer in pipeline.run(samples)]
    optimiser = make(list(plain.parameters()))
    schedule = halving(optimiser)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        for x, y in samples:
            loss = squared(plain(x), y)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(list(plain.parameters()), 0.1)
            optimiser.step()
            schedule.step()
            expected.append(float(loss.detach()))
    assert losses == expected
    assert same(weights([network]), weights([plain]))


@every_mode
@two_to_four
def test_without_learning_a_gradient_is_the_true_one_of_its_sample(stages, mode):
    """By `paper`, except in the last stage, of a constant stream alone: factors are of others."""
    network, samples = chain(stages), stream(SAMPLES)
    constant = [samples[0]] * SAMPLES
    for given in (constant, samples):
        logs, makers = recorders(stages, 0.0)
        with Pipeline(network, loss=squared, optimiser=makers, gradients=mode) as pipeline:
            list(pipeline.run(given))
        true = zip(*(_true_gradients(network, *sample) for sample in given), strict=True)
        for stage, (log, own) in enumerate(zip(logs, true, strict=True)):
            alike = [same(gradient, right) for gradient, right in zip(log, own, strict=False)]
            assert alike
            exact = given is constant or mode != "paper" or stage == stages - 1
            assert all(alike) == exact


def test_the_error_is_first_order_in_the_rate_and_in_the_drift():
    def error(rate, drift):
        network, generator = chain(3), torch.Generator().manual_seed(2)
        base, step = (
            torch.randn(3, WIDTH, generator=generator, dtype=torch.float64) for _ in range(2)
        )
        samples = [(base + drift * t * step, torch.zeros_like(base)) for t in range(9)]
        logs, makers = recorders(3, rate)
        with Pipeline(network, loss=squared, optimiser=makers) as pipeline:
            for x, y in samples:
                pipeline.step(x, y)
            pipeline.wait()
            now = copy.deepcopy(network)
            pipeline.step(*samples[-1])
            pipeline.wait()
        # the loss that the last gradient of stage 0 carries is of four samples ago
        true = _true_gradients(now, *samples[-4])[0]
        return _distance(logs[0][-1], true) / _norm(true)

    by_rate = [error(rate, 0.0) for rate in (4e-3, 2e-3, 1e-3)]
    by_drift = [error(0.0, drift) for drift in (4e-4, 2e-4, 1e-4)]
    for errors in (by_rate, by_drift):
        assert errors[0] > 0
        assert 0.45 < errors[1] / errors[0] < 0.55
        assert 0.45 < errors[2] / errors[1] < 0.55


def _true_gradients(network, x, y):
    """Return the gradients of the loss of a sample at the weights of now, of each stage."""
    for stage in network:
        x = stage(x)
    loss = squared(x, y)
    return [
        list(torch.autograd.grad(loss, list(s.parameters()), retain_graph=True)) for s in network
    ]


def _norm(tensors):
    return float(torch.cat([tensor.flatten() for tensor in tensors]).norm())


def _distance(tensors, others):
    return _norm([one - other for one, other in zip(tensors, others, strict=True)])
