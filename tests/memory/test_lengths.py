"""What a plan says of the longest video holds for every shorter one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from actionspan.memory.counting import AllocatedBytes
from actionspan.memory.probe import light_copies, probe
from actionspan.memory.rehearsal import Choice, Rehearsal
from actionspan.memory.ways import make_way
from memory.encoders import EXECUTIONS, seeded
from tiers import first_tier

OTHERS = ("full", "frozen", "frame_dropout", "checkpoint", "bank", "sbp_checkpoint")
CASES = [
    *(("sbp", execution, ratio) for execution in EXECUTIONS for ratio in (0.1, 0.4, 1.0)),
    *(("sbp", execution, (0.2, 0.5, 0.9)) for execution in EXECUTIONS),
    *((way, "split", 0.4) for way in OTHERS),
    ("sbp_checkpoint", "split", (0.2, 0.5, 0.9)),
]


def encoder(wide, features, *, random=False):
    """Weights of many bytes, or of few next to those of a row; and features likewise."""
    return nn.Sequential(
        nn.Sequential(nn.Linear(6, wide), nn.ReLU()),
        nn.Sequential(nn.Linear(wide, 7), nn.Dropout(0.5 if random else 0.0), nn.Tanh()),
        nn.Sequential(nn.Unflatten(1, (7, 1)), nn.Linear(1, features), nn.Flatten()),
    )


class Head(nn.Module):
    def forward(self, features):
        return features.square().sum()


def step_bytes(network, case, piece, count, sampler="uniform_random", seed=1):
    """Return the most bytes of a step with a video of so many rows."""
    way, execution, ratio = case
    module = make_way(way, network, ratio, execution=execution, piece=piece, sampler=sampler)
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    frames, head = torch.empty(count, 6, device="meta"), Head()
    with AllocatedBytes() as counted:
        features = module(frames, generator=seeded(seed), key="a")
        loss = head(features)
        if loss.requires_grad:
            loss.backward()
    kept = features.nbytes if way == "bank" else 0  # counted apart: it stays between steps
    return counted.peak - kept


def check(network, case, piece, longest, sampler="uniform_random", seed=1):
    """Check that no video up to the longest takes more than is promised; return both."""
    way, execution, ratio = case
    found = probe(network, Head(), frames := torch.empty(longest, 6, device="meta"))
    rehearsal = Rehearsal(network, Head(), frames, found, way=way, sampler=sampler)
    promised = rehearsal.step_bytes(Choice(execution, ratio, piece))
    light, _ = light_copies(network, Head())
    for count in range(1, longest + 1):
        taken = step_bytes(light, case, piece, count, sampler, seed)
        assert taken <= promised, f"{count} of {longest} rows in pieces of {piece}"
    return promised, taken


@pytest.mark.parametrize("number", first_tier(range(len(CASES)), 1, 7))
def test_no_video_up_to_the_longest_needs_more(number):
    check(encoder(40, 1), CASES[number], 4, 17)
    check(encoder(3, 60), CASES[number], 3, 11)
    check(encoder(3, 60), CASES[number], 16, 5)


@pytest.mark.full
@settings(max_examples=8)
@given(
    case=st.sampled_from(CASES),
    network=st.builds(encoder, st.integers(1, 50), st.integers(1, 50), random=st.booleans()),
    piece=st.integers(1, 16),
    longest=st.integers(1, 24),
    seed=st.integers(0, 9),
    by_feature=st.booleans(),
)
def test_nor_with_other_sizes_and_draws(case, network, piece, longest, seed, by_feature):
    sampler = "diverse_feature" if by_feature and case[0] == "sbp" else "uniform_random"
    check(network, case, piece, longest, sampler, seed)


@pytest.mark.parametrize("case", [("sbp", "replay", 1.0), ("checkpoint", "split", 1.0)])
def test_rows_in_full_pieces_need_no_more_than_they_take(case):
    promised, taken = check(encoder(40, 1), case, 4, 16)
    assert promised <= 1.05 * taken


def test_a_shorter_video_may_need_more_than_the_longest():
    light, _ = light_copies(encoder(40, 1), Head())
    short, long = (step_bytes(light, ("sbp", "replay", 1.0), 16, n) for n in (16, 17))
    assert short > 1.2 * long
