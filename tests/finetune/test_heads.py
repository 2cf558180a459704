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


@pytest.mark.parametrize("name", HEADS)
@given(rows=st.integers(1, 3 * BLOCK), first=st.integers(0, 3 * BLOCK), nan=st.booleans())
@settings(max_examples=25, deadline=None)
def test_later_rows_leave_earlier_scores_the_same_bits(name, rows, first, nan):
    head, seen = made(name, 3), features(rows)
    first = min(first, rows - 1)
    changed = seen.clone()
    changed[first + 1 :] = torch.nan if nan else 100 * features(rows, 1)[first + 1 :]
    with torch.no_grad():
        before, after = head(seen), head(changed)
    assert same_bits(before[: first + 1], after[: first + 1])


@pytest.mark.parametrize("name", HEADS)
@given(rows=st.integers(2, 4 * BLOCK), kept=st.integers(1, 4 * BLOCK))
@settings(max_examples=25, deadline=None)
def test_a_prefix_of_any_length_has_the_same_bits(name, rows, kept):
    head, seen, kept = made(name), features(rows), min(kept, rows)
    with torch.no_grad():
        assert same_bits(head(seen)[:kept], head(seen[:kept].clone()))


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("rows", [1, BLOCK, 2 * BLOCK + 3])
def test_every_earlier_row_counts(name, rows):
    head, seen = made(name), features(rows).requires_grad_()
    head(seen)[-1].sum().backward()
    # beyond attention's window too: the running means hold all that has left it
    assert (seen.grad.abs().sum(dim=1) > 0).all()
    assert all(parameter.grad is not None for parameter in head.parameters())


def test_recurrence_is_that_of_one_pass():
    head, seen = made("recurrent", 2), features(2 * BLOCK + 5)
    states, _ = head.gru(seen)
    torch.testing.assert_close(head(seen), head.dense(states))


def test_attention_is_that_of_its_definition():
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
@pytest.mark.parametrize("name", HEADS)
def test_a_head_learns_what_only_the_past_can_tell(name):
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


def test_what_cannot_be_built_or_scored_is_named():
    with pytest.raises(ValueError, match=r"head 'lstm': one of recurrent, attention"):
        build_head("lstm", CHANNELS)
    with pytest.raises(ValueError, match=r"hidden 10: must be a multiple of 4"):
        build_head("attention", CHANNELS, hidden=10)
    with pytest.raises(ValueError, match=r"window 0: 1 row at least"):
        build_head("attention", CHANNELS, window=0)
    for wrong in (torch.zeros(0, CHANNELS), torch.zeros(4, CHANNELS + 1), torch.zeros(1, 4, 6)):
        with pytest.raises(ValueError, match=r"features of shape .*: \(T, 6\), T 1 at least"):
            made("recurrent")(wrong)
