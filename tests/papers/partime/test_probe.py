"""The cosine is that of the right sample, at the right weights."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from actionspan.streaming import Pipeline
from actionspan_papers.partime.networks import in_stages, perceptron
from actionspan_papers.partime.pipelines import Probe, footprints, kept_bytes
from actionspan_papers.partime.settings import MODES

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
