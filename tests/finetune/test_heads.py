import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from actionspan.finetune.heads import BLOCK, build_head
from actionspan.finetune.settings import HEADS

CHANNELS = 6


def made(name, outputs=1, window=5):
    torch.manual_seed(3)
    more = {"window": window} if name == "attention" else {}
    head = build_head(name, CHANNELS, outputs, 8, **more)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # biases and distances are not 0
    return head.eval()


def features(rows, seed=0):
    return torch.randn(rows, CHANNELS, generator=torch.Generator().manual_seed(seed))


def same_bits(left, right):
    return torch.equal(left.view(torch.int32), right.view(torch.int32))


each_head = pytest.mark.parametrize("name", HEADS)


@each_head
@given(rows=st.integers(1, 4 * BLOCK), kept=st.integers(1, 4 * BLOCK), nan=st.booleans())
@settings(max_examples=25, deadline=None)
def test_later_rows_or_their_lack_leave_earlier_scores_the_same_bits(name, rows, kept, nan):
    head, seen, kept = made(name, 3), features(rows), min(kept, rows)
    changed = seen.clone()
    changed[kept:] = torch.nan if nan else 100 * features(rows, 1)[kept:]
    with torch.no_grad():
        before, after = head(seen), head(changed)
        assert same_bits(before[:kept], after[:kept])
        assert same_bits(before[:kept], head(seen[:kept].clone()))


@each_head
@pytest.mark.parametrize("rows", [1, BLOCK, 2 * BLOCK + 3])
def test_every_earlier_row_counts(name, rows):
    head, seen = made(name), features(rows).requires_grad_()
    head(seen)[-1].sum().backward()
    # beyond attention's window too: the running means hold all that has left it
    assert (seen.grad.abs().sum(dim=1) > 0).all()
    assert all(parameter.grad is not None for parameter in head.parameters())


def test_recurrence_agrees_with_one_pass():
    head, seen = made("recurrent", 2), features(2 * BLOCK + 5)
    states, _ = head.gru(seen)
    torch.testing.assert_close(head(seen), head.dense(states))


def test_attention_agrees_with_its_definition():
    head, seen = made("attention", 2, window=4), features(BLOCK + 7)
    torch.testing.assert_close(head(seen), _by_definition(head, seen), rtol=1e-4, atol=1e-5)


def _by_definition(head, seen):
    steps = head.project(seen)
    query, keys, values = head.attend(head.norm1(steps)).chunk(3, dim=1)
    shares, rows = [1 / (2 * 4), 1 / (8 * 4)], []
    for row in range(len(seen)):
        old = range(max(0, row - 3))
        means = []
        for share in shares if len(old) else []:
            weights = [share * (1 - share) ** (old[-1] - place) for place in old]
            means.append(
                [sum(w * m[p] for w, p in zip(weights, old, strict=True)) for m in (keys, values)]
            )
        recent = [(keys[place], values[place]) for place in range(len(old), row + 1)]
        pairs = [*means, *recent]
        bias = torch.cat([head.distance[:, : len(means)], head.distance[:, -len(recent) :]], dim=1)
        heads = []
        for number, part in enumerate(torch.arange(8).split(2)):
            scores = torch.stack([query[row, part] @ key[part] for key, _ in pairs]) / 2**0.5
            weights = (scores + bias[number]).softmax(dim=0)
            heads.append(sum(w * value[part] for w, (_, value) in zip(weights, pairs, strict=True)))
        rows.append(torch.cat(heads))
    steps = steps + head.merge(torch.stack(rows))
    steps = steps + head.dense2(head.dense1(head.norm2(steps)).relu())
    return head.dense(head.norm(steps))


@pytest.mark.full
@each_head
def test_a_head_learns_from_the_past_alone(name):
    torch.manual_seed(1)
    head = build_head(name, 1, hidden=16)
    seen = torch.randn(8, 40, 1).sign()
    wanted = (torch.cat([torch.zeros(8, 1, 1), seen[:, :-1]], dim=1) > 0).float()  # the row before
    optimiser = torch.optim.Adam(head.parameters(), lr=0.03)
    for _ in range(50):
        logits = torch.stack([head(rows) for rows in seen])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert ((logits > 0) == (wanted > 0)).float().mean() > 0.9


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("lstm", {}, "head is 'lstm'; it must be one of recurrent, attention"),
        ("attention", {"hidden": 10}, "hidden is 10; it must be a multiple of 4"),
        ("attention", {"window": 0}, "window is 0; it must be at least 1 row"),
    ],
)
def test_a_head_that_cannot_be_built_is_refused(name, how, message):
    with pytest.raises(ValueError, match=message):
        build_head(name, CHANNELS, **how)


@pytest.mark.parametrize("shape", [(0, CHANNELS), (4, CHANNELS + 1), (1, 4, 6)])
def test_features_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"features have the shape .*; it must be \(T, 6\) with"):
        made("recurrent")(torch.zeros(shape))
