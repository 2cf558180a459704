"""The engine against the closed form, plain training and the true gradients."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from actionspan.streaming import Pipeline
from streaming.networks import (
    MODES,
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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_every_gradient_and_output_is_that_of_the_closed_form(stages: int, mode: str) -> None:
    network, samples = chain(stages), stream(SAMPLES)
    expected = closed_form(network, samples, 0.05, mode)
    logs, makers = recorders(stages, 0.05)
    with Pipeline(network, loss=squared, optimiser=makers, gradients=mode) as pipeline:
        answers = list(pipeline.run(samples))
    assert [answer.index for answer in answers] == list(range(SAMPLES))
    assert same([answer.output for answer in answers], expected.outputs)
    for h in range(stages):
        found = expected.gradients[h]
        assert len(logs[h]) == len(found)
        for gradient, (_, right) in zip(logs[h], sorted(found.items()), strict=True):
            assert same(gradient, right)
        assert same(list(network[h].parameters()), list(expected.weights[h].values()))


class ThroughData(torch.optim.Optimizer):
    """SGD that writes where torch does not count changes."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.05})

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data = parameter.data - group["lr"] * parameter.grad


@pytest.mark.parametrize("make", [partial(sgd, fused=True), ThroughData])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_updates_that_torch_does_not_count_learn_as_the_closed_form_says(
    stages: int, mode: str, make: Any
) -> None:
    network, samples = chain(stages), stream(SAMPLES)
    expected = closed_form(network, samples, 0.05, mode)
    with Pipeline(network, loss=squared, optimiser=make, gradients=mode) as pipeline:
        list(pipeline.run(samples))
    for module, right in zip(network, expected.weights, strict=True):
        for found, weight in zip(module.parameters(), right.values(), strict=True):
            torch.testing.assert_close(found.detach(), weight, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_fused_and_plain_optimisers_learn_the_same(stages: int, mode: str, kind: Any) -> None:
    learned = []
    for how in ({"fused": True}, {"foreach": False}, {"foreach": True}):
        network, samples = chain(stages), stream(SAMPLES)
        make = partial(kind, lr=0.01, **how)
        with Pipeline(network, loss=squared, optimiser=make, gradients=mode) as pipeline:
            list(pipeline.run(samples))
        learned.append(torch.cat([weight.flatten() for weight in weights(network)]))
    torch.testing.assert_close(learned[0], learned[1], rtol=0, atol=1e-9)
    torch.testing.assert_close(learned[2], learned[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("stages", [3, 4])
def test_the_printed_equations_8_10_and_11_are_not_what_happens(stages: int) -> None:
    network, samples = chain(stages), stream(SAMPLES)
    right = closed_form(network, samples, 0.05).gradients[0]
    printed = closed_form(network, samples, 0.05, printed=True).gradients[0]
    step = SAMPLES - 1
    logs, makers = recorders(stages, 0.05)
    with Pipeline(network, loss=squared, optimiser=makers) as pipeline:
        list(pipeline.run(samples))
    assert same(logs[0][-1], right[step])
    difference = _norm([a - b for a, b in zip(right[step], printed[step], strict=True)])
    assert difference > 0.01 * _norm(right[step])


def test_stages_have_their_delays_and_update_t_minus_2_d_minus_h_times() -> None:
    network, samples = chain(3), stream(SAMPLES)
    with Pipeline(network, loss=squared, optimiser=sgd) as pipeline:
        list(pipeline.run(samples))
        assert [r["updates"] for r in pipeline.report()] == [SAMPLES - 4, SAMPLES - 2, SAMPLES]
        assert [r["samples"] for r in pipeline.report()] == [SAMPLES] * 3
    for mode in ("inputs", "stash"):
        with Pipeline(chain(3), loss=squared, optimiser=sgd, gradients=mode) as pipeline:
            list(pipeline.run(samples))
            assert [r["updates"] for r in pipeline.report()] == [SAMPLES] * 3


def test_the_fill_changes_nothing() -> None:
    network = mixed()
    before = weights(network)
    events: list[list[Tensor]] = []
    samples = stream(6, double=False)
    with Pipeline(network, loss=squared, optimiser=momentum, schedule=halving) as pipeline:
        for x, y in samples:
            pipeline.step(x, y)
            pipeline.wait()
            events.append(weights(network))
    count = len(weights(network[:1]))
    # of stage 0 the parameters (the first four) change from step 2 D - 2 on, and no earlier
    for step, now in enumerate(events):
        assert same(now[:4], before[:4]) == (step < 4)
    # the last stage sees nothing, and changes nothing, before step D - 1
    last = len(before) - len(weights(network[2:]))
    assert same(events[1][last:], before[last:])
    assert not same(events[2][last:], before[last:])
    # batch norm of stage 1 counts no sample in the fill
    tracked = [int(state[count + 6]) for state in events]
    assert tracked == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [momentum, adam])
def test_one_stage_is_plain_training(mode: str, make: Any) -> None:
    network = nn.Sequential(*mixed(dropout=0.3))
    plain = copy.deepcopy(network)
    samples = stream(10, double=False)
    with Pipeline(
        [network], loss=squared, optimiser=make, schedule=halving, clip=0.1, gradients=mode, seed=3
    ) as pipeline:
        losses = [answer.loss for answer in pipeline.run(samples)]
    optimiser = make(list(plain.parameters()))
    schedule = halving(optimiser)
    expected = []
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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_constant_stream_without_learning_has_the_true_gradients(stages: int, mode: str) -> None:
    network, (sample, *_) = chain(stages), stream(1)
    logs, makers = recorders(stages, 0.0)
    with Pipeline(network, loss=squared, optimiser=makers, gradients=mode) as pipeline:
        list(pipeline.run([sample] * SAMPLES))
    true = _true_gradients(network, *sample)
    for h, log in enumerate(logs):
        assert log
        assert all(same(gradient, true[h]) for gradient in log)


def test_the_error_is_first_order_in_the_rate_and_in_the_drift() -> None:
    def error(rate: float, drift: float) -> float:
        network = chain(3)
        generator = torch.Generator().manual_seed(2)
        base, step = (
            torch.randn(3, WIDTH, generator=generator, dtype=torch.float64) for _ in range(2)
        )
        target = torch.zeros(3, WIDTH, dtype=torch.float64)
        samples = [(base + drift * t * step, target) for t in range(9)]
        logs, makers = recorders(3, rate)
        with Pipeline(network, loss=squared, optimiser=makers) as pipeline:
            for x, y in samples:
                pipeline.step(x, y)
            pipeline.wait()
            now = [copy.deepcopy(stage) for stage in network]
            pipeline.step(*samples[-1])
            pipeline.wait()
            # the loss that the last gradient of stage 0 carries is of four samples ago
        true = _true_gradients(now, *samples[-4])
        return _norm([a - b for a, b in zip(logs[0][-1], true[0], strict=True)]) / _norm(true[0])

    by_rate = [error(rate, 0.0) for rate in (4e-3, 2e-3, 1e-3)]
    by_drift = [error(0.0, drift) for drift in (4e-4, 2e-4, 1e-4)]
    for errors in (by_rate, by_drift):
        assert errors[0] > 0
        assert 0.45 < errors[1] / errors[0] < 0.55
        assert 0.45 < errors[2] / errors[1] < 0.55


def test_inputs_repairs_what_a_changing_input_breaks() -> None:
    samples = stream(40, correlation=0.0)
    distance = {}
    for mode in MODES:
        network = chain(3)
        logs, makers = recorders(3, 1e-9)
        with Pipeline(network, loss=squared, optimiser=makers, gradients=mode) as pipeline:
            list(pipeline.run(samples))
        true = [_true_gradients(network, *sample)[0] for sample in samples]
        pairs = zip(logs[0], true, strict=False)  # paper: T - 4 of them
        distance[mode] = max(
            _norm([a - b for a, b in zip(used, right, strict=True)]) for used, right in pairs
        )
    assert distance["inputs"] < 1e-6
    assert distance["stash"] < 1e-6
    assert distance["paper"] > 1e-2


def _true_gradients(network: Any, x: Tensor, y: Tensor) -> list[list[Tensor]]:
    """Return the gradients of the loss of a sample at the weights of now, of each stage."""
    value = x
    for stage in network:
        value = stage(value)
    loss = squared(value, y)
    return [
        list(torch.autograd.grad(loss, list(s.parameters()), retain_graph=True)) for s in network
    ]


def _norm(tensors: list[Tensor]) -> float:
    return float(torch.cat([tensor.flatten() for tensor in tensors]).norm())
