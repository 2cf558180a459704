"""Pipelines measured: layers and bytes, cuts, speeds, and the cosine with the true gradient."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from actionspan.networks.division import division
from actionspan.streaming import Pipeline
from actionspan.streaming.balance import Balanced, layers_of
from actionspan_papers.partime.networks import Case, even_cuts, in_stages, perceptron
from actionspan_papers.partime.pipelines import (
    Probe,
    counted_costs,
    cut_bytes,
    emulate,
    footprints,
    kept_bytes,
    measure,
    samples_for,
    stages_by_counting,
)
from actionspan_papers.partime.published import PLAIN, POOLED
from actionspan_papers.partime.settings import MODES, SpeedSettings

SETTINGS = SpeedSettings(layers=8, maps=4, sides=(16, 32), outputs=(3,), encoder_side=64)


def test_multiplications_are_counted():
    layers = [nn.Conv2d(3, 5, 3, padding=1), nn.Flatten(), nn.Linear(5 * 36, 7)]
    counted = counted_costs(layers, torch.rand(1, 3, 6, 6))
    assert counted.seconds == (5 * 36 * 27, 0, 5 * 36 * 7)


def test_pooling_unbalances_and_balancing_mends_some_of_it():
    def bounds(name):
        case = Case(name, 32, 3)
        layers = layers_of(case.network(SETTINGS), division)
        best = stages_by_counting(layers, case.sample(), 4)
        return best.bound, Balanced(layers, best.costs, even_cuts(len(layers), 4)).bound

    (plain, _), (best, even) = bounds(PLAIN), bounds(POOLED)
    assert plain > best > even
    case = Case(POOLED, 32, 3)
    network = case.network(SETTINGS).eval()
    stages = stages_by_counting(layers_of(network, division), case.sample(), 3)
    with torch.no_grad():
        assert torch.equal(nn.Sequential(*stages)(case.sample()), network(case.sample()))


@pytest.mark.parametrize("name", ["resnet18", "efficientnet_lite0"])
def test_skips_are_counted_where_a_cut_crosses_them(name):
    case = Case(name, 64, 3)
    layers = layers_of(case.network(SETTINGS).eval(), division)
    sent = cut_bytes([nn.Sequential(layer) for layer in layers], case.sample())
    crossed = [number for number, (both, main) in enumerate(sent) if both > main]
    kinds = [type(layer).__name__ for layer in layers]
    assert crossed == [n for n, kind in enumerate(kinds) if kind in ("Fork", "Along")]
    assert crossed


def test_the_same_case_has_the_same_weights_and_leaves_random_numbers_alone():
    before = torch.get_rng_state()
    a, b = (Case(PLAIN, 16, 3).network(SETTINGS) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("learning", [False, True])
def test_a_speed_is_measured_in_pairs(learning):
    case = Case(PLAIN, 16, 3)
    network = case.network(SETTINGS)
    stages = stages_by_counting(layers_of(network, division), case.sample(), 2)
    target = case.target(network) if learning else None
    how = {"executor": "thread", "pairs": 2, "samples": 6}
    speedups, load = measure(network, stages, case.sample(), target, **how)
    assert len(speedups) == 2
    assert all(value > 0 for value in speedups)
    assert load >= 0


def test_waits_of_even_stages_come_near_the_number_of_stages():
    """Waits need no core, so that even a busy machine shows most of it."""
    even = emulate([0.03] * 4, 0.12, learning=False, samples=8)
    uneven = emulate([0.03, 0.03, 0.03, 0.09], 0.18, learning=False, samples=8)
    assert 2.4 < even < 4.05
    assert uneven < 2.05
    assert [samples_for(0.3, seconds) for seconds in (10, 0.01, 0)] == [6, 30, 400]


STEPS = 24


def cosines(stages, mode, rate, samples):
    torch.manual_seed(0)
    parts = in_stages(perceptron(6, 8, 3, nn.Tanh), stages)
    probe = Probe(parts)
    targets = samples[:, :3].flip(1)

    def sample(index):
        return samples[index : index + 1], targets[index : index + 1]

    def sgd(parameters):
        return torch.optim.SGD(parameters, lr=rate)

    found, how = [], {"optimiser": sgd, "clip": probe.clips, "gradients": mode}
    with Pipeline(parts, loss=functional.mse_loss, **how) as pipeline:
        for step in range(STEPS):
            probe.before()
            pipeline.step(*sample(step))
            found.append(probe.cosines(step, sample))
    return found


SHUFFLED = torch.randn(STEPS, 6, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("mode", ["inputs", "stash"])
def test_with_a_rate_of_0_kept_inputs_give_the_true_gradient(stages, mode):
    """So the sample is the right one: with another the cosine would be far from 1."""
    late = cosines(stages, mode, 0.0, SHUFFLED)[2 * stages :]
    assert all(value == pytest.approx(1, abs=1e-5) for row in late for value in row)


def test_the_papers_gradients_are_true_in_the_last_stage_and_on_a_constant_stream():
    found = cosines(4, "paper", 0.0, SHUFFLED)
    assert all(math.isnan(value) for value in found[0]), "no stage has learned yet"
    late = torch.tensor(found[8:])
    assert late[:, 3].min() > 0.9999
    assert late[:, 0].mean() < 0.6
    late = cosines(4, "paper", 0.0, SHUFFLED[:1].expand(STEPS, -1))[8:]
    assert all(value == pytest.approx(1, abs=1e-5) for row in late for value in row)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_what_stages_keep_is_what_the_closed_form_says(stages, mode):
    parts = in_stages(perceptron(6, 8, 3, nn.Tanh), stages)
    x, y = torch.randn(1, 6), torch.randn(1, 3)
    counted = kept_bytes(parts, x, y, mode)
    formed = [size.kept for size in footprints(parts, x, y, mode)]
    assert counted == formed
    assert (sum(counted) == 0) == (mode == "paper" or stages == 1)
