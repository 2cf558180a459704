"""Partitions against brute force, and what profiling leaves alone."""

import copy
from dataclasses import replace
from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from actionspan.streaming import Pipeline, balance_stages
from actionspan.streaming.balance import Costs, layers_of, measure_costs, partition, stages_seconds
from streaming.networks import Enter, Leave, Within, same, weights

COSTS = st.lists(
    st.tuples(st.floats(0, 1, allow_subnormal=False), st.integers(0, 1000)), min_size=1, max_size=10
)


@given(COSTS, st.integers(1, 10), st.booleans())
def test_the_slowest_stage_is_as_fast_as_any_partition_allows(layers, stages, learning):
    costs = Costs(
        seconds=tuple(seconds for seconds, _ in layers),
        message_bytes=(10, *(size for _, size in layers)),
        seconds_a_byte=1e-3,
        hop_seconds=0.01,
        learning=learning,
    )
    if stages > len(layers):
        with pytest.raises(ValueError, match=f"{stages} stages of {len(layers)} layers: from 1 to"):
            partition(costs, stages)
        return
    cuts = partition(costs, stages)
    assert (cuts[0], cuts[-1]) == (0, len(layers))
    assert all(a < b for a, b in zip(cuts, cuts[1:], strict=False))  # no stage is empty
    every = ([0, *inner, len(layers)] for inner in combinations(range(1, len(layers)), stages - 1))
    assert max(stages_seconds(costs, cuts)) == min(
        max(stages_seconds(costs, other)) for other in every
    )


def test_each_neighbour_pays_half_of_a_message_and_of_its_hop_so_cuts_are_where_they_are_small():
    costs = Costs(seconds=(1.0,), message_bytes=(0, 10), seconds_a_byte=0.1, hop_seconds=0.5)
    assert costs.messages(1) == 0.75
    assert replace(costs, learning=True).messages(1) == 1.5
    dear = Costs(seconds=(1.0,) * 4, message_bytes=(0, 10, 900, 10, 0), seconds_a_byte=0.01)
    assert partition(dear, 2) in ([0, 1, 4], [0, 3, 4])
    assert partition(replace(dear, seconds_a_byte=0.0), 2) == [0, 2, 4]


def test_measuring_leaves_the_model_and_random_numbers_as_they_are():
    model = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)),
        nn.Dropout(0.5),
        nn.Conv2d(8, 8, 3),
    )
    model[2].eval()
    sample = torch.randn(2, 3, 16, 16)

    def state():
        modes = [part.training for part in model.modules()]
        tensors = [*weights([model]), torch.get_rng_state(), sample.clone()]
        return modes, torch.get_num_threads(), tensors

    before = state()
    stages = balance_stages(model, sample, 2, learning=True, repetitions=2)
    after = state()
    assert after[:2] == before[:2]
    assert same(after[2], before[2])
    assert all(parameter.grad is None for parameter in model.parameters())
    # the stages are the model: the same modules, in order
    assert [id(layer) for stage in stages for layer in stage] == [id(m) for m in layers_of(model)]
    assert len(layers_of(model)) == 5


def test_a_heavy_layer_gets_a_stage_of_its_own_and_the_bound_is_said():
    light = [nn.Linear(64, 64) for _ in range(4)]
    model = nn.Sequential(*light[:2], nn.Linear(64, 6000), nn.Linear(6000, 64), *light[2:])
    stages = balance_stages(model, torch.randn(128, 64), 2)
    assert stages.cuts == (0, 3, 6)
    assert 1 < stages.bound <= 2
    assert f"at most {stages.bound:.2f} times as fast as one" in str(stages)
    assert str(stages).startswith("2 stages of 3 + 3 layers: ")


def test_backward_counts_when_learning():
    layers = [nn.Linear(256, 256) for _ in range(3)]
    sample = torch.randn(256, 256)
    forward, both = (measure_costs(layers, sample, learning=each) for each in (False, True))
    # the first layer needs no gradient of its input: two products in place of three
    ratios = [b / f for b, f in zip(both.seconds, forward.seconds, strict=True)]
    assert min(ratios) > 1.2
    assert both.seconds[0] < both.seconds[1]
    assert both.message_bytes == (256 * 256 * 4,) * 4
    assert both.messages(1) == pytest.approx(2 * forward.messages(1), rel=0.9)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return x + self.second(self.first(x))


def test_blocks_are_cut_inside_where_they_can_be_divided():
    def divide(module):
        if not isinstance(module, Block):
            return None
        return [Enter(), Within(module.first), Within(module.second), Leave()]

    model = nn.Sequential(Block(), nn.Tanh())
    whole = copy.deepcopy(model)
    with pytest.raises(ValueError, match="4 stages of 2 layers"):
        balance_stages(model, torch.randn(2, 4), 4)
    stages = balance_stages(model, torch.randn(2, 4), 4, divide=divide)
    assert len(layers_of(model, divide)) == 5
    # twice the bytes where the skip goes along
    assert stages.costs.message_bytes == (32, 64, 64, 64, 32, 32)
    samples = [torch.randn(2, 4) for _ in range(5)]
    with Pipeline(stages) as pipeline:
        for answer, x in zip(pipeline.run(samples), samples, strict=True):
            assert torch.equal(answer.output, whole(x))
