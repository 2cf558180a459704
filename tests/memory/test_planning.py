"""A plan keeps to its budget, takes what fits, and says what the least budget is."""

import json
import re
from dataclasses import dataclass
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from actionspan.memory import plan_memory
from actionspan.memory.probe import probe
from actionspan.memory.ways import Way, make_way
from memory.encoders import EXECUTIONS

MB = 2**20
each_way = pytest.mark.parametrize("way", get_args(Way))


def encoder(maps=16):
    """About 1.5 MB a row of 64 pixels with 16 maps."""
    return nn.Sequential(
        nn.Conv2d(3, maps, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(maps, 2 * maps, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(2 * maps, 2 * maps, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


@dataclass(frozen=True)
class Labels:
    values: torch.Tensor
    lengths: tuple[torch.Tensor, ...]


class Head(nn.Module):
    """Its matrix, for one length of videos, is no parameter, and its labels lie in an object."""

    def __init__(self, channels, count):
        super().__init__()
        self.resampling = torch.rand(10, count)
        self.linear = nn.Linear(channels, 1)
        self.labels = Labels(torch.rand(10, 1), (torch.ones(1),))

    def forward(self, features):
        found = self.linear(self.resampling @ features)
        return ((found - self.labels.values) / self.labels.lengths[0]).square().mean()


def video(count):
    return torch.empty(count, 3, 64, 64, dtype=torch.float32, device="meta")


def plan(count, budget, ratio=0.25, **how):
    return plan_memory(encoder(), Head(32, count), video(count), budget, ratio, **how)


def least_of(count, **how):
    """The least budget that the error of a budget of 1 MB names."""
    with pytest.raises(ValueError, match=r"^[^\n]*needs at least [^\n]*\Z") as error:
        plan(count, 1, **how)
    return int(re.search(r"at least (\d+) MB", str(error.value))[1])


@settings(max_examples=6)
@given(
    count=st.integers(1, 60),
    ratio=st.sampled_from([None, 0.1, 0.25, 0.5, 1.0]),
    above=st.floats(0, 60),
    more=st.floats(0, 60),
    execution=st.sampled_from(["auto", *EXECUTIONS]),
)
def test_a_plan_is_within_its_budget_and_grows_with_it(count, ratio, above, more, execution):
    how = {"ratio": ratio, "execution": execution}
    least = least_of(count, **how)
    first, second = (plan(count, least + each, **how) for each in (above, above + more))
    for found in (first, second):
        assert found.step_bytes < found.expected_bytes <= found.budget_bytes
        assert found.expected_bytes >= found.weight_bytes + found.picture_bytes + found.step_bytes
        assert 1 <= found.kept <= count
    sizes = [(each.execution == "split", each.kept, each.piece) for each in (first, second)]
    assert sizes[1] >= sizes[0]
    assert second.kept >= first.kept


@each_way
def test_the_least_budget_that_an_error_names_will_do(way):
    least = least_of(40, way=way)
    found = plan(40, least, way=way)
    assert found.way == way
    assert found.expected_bytes <= least * MB
    make_way(found.way, encoder(), found.keep_ratio, execution=found.execution, piece=found.piece)
    with pytest.raises(ValueError, match=f"way {way} needs at least {least} MB for 40 rows"):
        plan(40, least - 1, way=way)


def test_split_where_it_fits_and_replay_below():
    wide = plan(60, 1000)
    assert (wide.execution, wide.kept, wide.piece) == ("split", 15, 15)
    tight = plan(60, wide.expected_bytes / MB - 1)
    assert tight.execution == "replay"
    tighter = plan(60, (tight.expected_bytes / MB + least_of(60)) / 2)
    assert tighter.execution == "replay"
    assert tighter.piece < tight.piece


def test_auto_keeps_the_most_rows_that_fit():
    found = plan(60, 120, None)
    assert 1 < found.kept < 60
    assert found.keep_ratio == found.kept / 60
    read = json.loads(found.to_json())
    assert (read["kept"], read["expected_bytes"]) == (found.kept, found.expected_bytes)
    assert plan(60, 120 + 4 * found.row_bytes / MB, None).kept > found.kept
    room = found.budget_bytes - found.expected_bytes
    assert room < 4 * found.row_bytes  # another row would not have fitted
    assert plan(60, 5000, None).keep_ratio == 1


def test_replay_needs_as_much_for_any_length_but_for_pictures_and_features():
    short, long = (plan(count, 1000, execution="replay") for count in (128, 1024))
    pictures = long.picture_bytes - short.picture_bytes
    features = 8 * 896 * 32 * 4
    assert 0 <= long.expected_bytes - short.expected_bytes - pictures <= features


def test_the_probe_finds_the_bytes_of_rows_weights_and_pictures():
    network, head = encoder(), Head(32, 20)
    network[0].requires_grad_(False)
    found = probe(network, head, video(20))
    # inputs of the first two that learn, and of what comes after each
    row = 4 * (16 * 64**2 + 2 * 32 * 32**2)
    assert found.row_bytes == pytest.approx(row, rel=0.01)
    assert found.longest == 20
    assert found.picture_bytes == 20 * 3 * 64**2 * 4
    assert found.head_bytes > 0
    values = sum(p.numel() for p in (*network.parameters(), *head.parameters()))
    learn = values - sum(p.numel() for p in network[0].parameters())
    assert (found.value_bytes, found.trained_bytes) == (4 * values, 4 * learn)
    assert plan_memory(network, head, video(20), 1000).weight_bytes == 4 * (values + 3 * learn)


class Pictures:
    """8-bit pictures of two streams that are read as numbers."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, rows):
        return torch.zeros(len(rows), 3, 32, 32), torch.zeros(len(rows), 10, 32, 32)


class TwoStreams(nn.Module):
    def __init__(self):
        super().__init__()
        self.rgb, self.flow = nn.Conv2d(3, 8, 3), nn.Conv2d(10, 8, 3)

    def forward(self, rgb, flow):
        return torch.cat([self.rgb(rgb).mean((2, 3)), self.flow(flow).relu().mean((2, 3))], 1)


@each_way
def test_two_streams_of_pictures_and_a_head_that_is_a_function(way):
    weight = torch.randn(16, requires_grad=True)
    network = TwoStreams()
    found = plan_memory(network, lambda h: (h @ weight).sum(), Pictures(30), 200, way=way)
    assert found.picture_bytes == 30 * 13 * 32 * 32
    assert weight.grad is None
    assert all(p.grad is None and not p.is_meta for p in network.parameters())


def test_planning_leaves_random_numbers_and_modules_alone():
    network, head = nn.Sequential(encoder(), nn.Dropout(0.5)), Head(32, 20)
    before = [p.clone() for p in network.parameters()]
    state = torch.get_rng_state()
    first, second = (plan_memory(network, head, video(20), 90, None) for _ in range(2))
    assert first == second
    assert all(map(torch.equal, before, network.parameters()))
    assert {each.device.type for each in (head.resampling, head.labels.values)} == {"cpu"}
    plan_memory(network, lambda h: nn.functional.dropout(h, 0.5).sum(), video(20), 200)
    assert torch.equal(state, torch.get_rng_state())


def test_a_bank_counts_the_features_of_all_videos():
    one, many = (plan(20, 500, way="bank", videos=videos) for videos in (1, 1001))
    assert one.bank_bytes == 20 * 32 * 4
    assert many.expected_bytes - one.expected_bytes == 1000 * one.bank_bytes


@pytest.mark.parametrize("sampler", ["importance", "diverse_gradient"])
def test_samplers_that_look_at_gradients_are_replayed(sampler):
    assert plan(40, 2000, sampler=sampler).execution == "replay"
    with pytest.raises(ValueError, match="replay"):
        plan(40, 2000, sampler=sampler, execution="split")


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_ratio_for_each_part(execution):
    network = nn.Sequential(encoder()[:2], encoder()[2:])
    found = plan_memory(network, Head(32, 24), video(24), 500, [0.25, 0.5], execution=execution)
    assert found.keep_ratio == (0.25, 0.5)
    assert found.kept == 12


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"way": "half"}, "way is 'half'; it must be one of sbp, full"),
        ({"execution": "both"}, "execution is 'both'; it must be one of auto, split, replay"),
        ({"budget": 0}, "memory budget is 0 MB; it must be above 0"),
        ({"budget": float("nan")}, "memory budget is nan MB"),
        ({"ratio": 1.5}, "keep_ratio"),
        ({"count": 0}, "the longest video has 0 rows; it must have at least 1"),
        ({"sampler": "best"}, "sampler"),
        ({"ratio": "auto"}, "keep_ratio is 'auto'; it must be a number"),
        ({"ratio": torch.tensor(0.5)}, "keep_ratio is tensor"),
        ({"videos": 0}, "videos is 0; it must be at least 1"),
    ],
)
def test_wrong_arguments_are_one_line(wrong, line):
    with pytest.raises(ValueError, match=rf"^[^\n]*{line}[^\n]*\Z"):
        plan(**{"count": 10, "budget": 100, **wrong})


@pytest.mark.parametrize("weight", [torch.ones(2), torch.ones(2, requires_grad=True)])
def test_a_head_that_ignores_features_is_one_line(weight):
    with pytest.raises(ValueError, match=r"^the head's loss does not depend on the features$"):
        plan_memory(encoder(), lambda _: (2 * weight).sum(), video(20), 200)
