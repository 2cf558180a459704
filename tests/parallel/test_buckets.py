"""Gradients of one backward pass, and of several, in buckets."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from actionspan.parallel import ParallelSettings, make_replica
from actionspan.parallel.buckets import GradientBuckets

KINDS = 4


def parameters() -> list[nn.Parameter]:
    torch.manual_seed(1)
    return [nn.Parameter(torch.randn(3, dtype=torch.float64)) for _ in range(KINDS)]


def loss(own: list[nn.Parameter], uses: set[int], factor: float) -> torch.Tensor:
    return sum((factor * (own[each] ** 3).sum() for each in uses), torch.zeros(()))


class Exchange:
    """Buckets of one or two parameters, and the order in which they became ready."""

    def __init__(self, own: list[nn.Parameter], bucket_bytes: int) -> None:
        self.ready: list[int] = []
        self.buckets = GradientBuckets(own, bucket_bytes, self.ready.append)

    def step(self) -> None:
        """As a step of one rank: what is exchanged stays as it is."""
        self.buckets.fill()
        assert sorted(self.ready) == list(range(len(self.buckets.buckets)))
        self.ready.clear()
        self.buckets.hand_out()


PASSES = st.lists(st.sets(st.integers(0, KINDS - 1), min_size=1), max_size=4)


@given(PASSES, st.booleans(), st.booleans(), st.sampled_from((24, 48)))
def test_several_passes_give_what_one_gives(passes, last_outside, to_none, bucket_bytes):
    own, alone = parameters(), parameters()
    exchange = Exchange(own, bucket_bytes)
    for step in range(2):  # the second step begins with gradients that are views of the buckets
        for each in (*own, *alone):
            if to_none or each.grad is None:
                each.grad = None
            else:
                each.grad.zero_()
        for number, uses in enumerate(passes):
            value = loss(own, uses, number + step + 1.0)
            if last_outside and number == len(passes) - 1:
                value.backward()
            else:
                with exchange.buckets.accumulating():
                    value.backward()
                assert not exchange.ready, "nothing is complete before the last pass"
        exchange.step()
        whole = [loss(alone, uses, number + step + 1.0) for number, uses in enumerate(passes)]
        if whole:
            torch.stack(whole).sum().backward()
        used = set().union(*passes)
        for number, (one, two) in enumerate(zip(own, alone, strict=True)):
            if number not in used:
                assert one.grad is None, "zeros would let momentum and weight decay move it"
            else:
                torch.testing.assert_close(one.grad, two.grad, rtol=1e-14, atol=0)


def test_the_last_pass_completes_buckets_where_gradients_of_earlier_ones_lie():
    own = parameters()
    exchange = Exchange(own, 48)
    with exchange.buckets.accumulating():
        loss(own, {0, 1, 2, 3}, 1.0).backward()
    assert exchange.ready == []
    assert own[3].grad is exchange.buckets.buckets[0].views[0], "there is no second copy"
    loss(own, {2, 3}, 1.0).backward()
    assert exchange.ready == [0], "the bucket of the last two parameters; the other waits"
    with pytest.raises(RuntimeError, match="a second backward pass"):
        loss(own, {3}, 1.0).backward()
    with exchange.buckets.accumulating(), pytest.raises(RuntimeError, match="a second backward"):
        loss(own, {3}, 1.0).backward()


def test_an_error_inside_ends_accumulating():
    own = parameters()
    exchange = Exchange(own, 24)
    with pytest.raises(ZeroDivisionError), exchange.buckets.accumulating():
        raise ZeroDivisionError
    loss(own, {0}, 1.0).backward()
    assert exchange.ready == [3]


def test_gradients_that_were_dropped_after_an_early_pass_do_not_count():
    own = parameters()
    exchange = Exchange(own, 24)
    with exchange.buckets.accumulating():
        loss(own, {0, 1}, 1.0).backward()
    own[0].grad = None
    exchange.step()
    assert own[0].grad is None
    assert own[1].grad is not None


def test_a_sparse_gradient_is_refused():
    table = nn.Embedding(4, 2, sparse=True)
    buckets = GradientBuckets(table.parameters(), 24, lambda number: None)
    with buckets.accumulating(), pytest.raises(ValueError, match="sparse"):
        table(torch.tensor([1])).sum().backward()


def test_one_process_accumulates_as_torch_does():
    own = parameters()
    replica = make_replica(
        "none", nn.ParameterList(own), torch.optim.SGD(own, lr=1.0), ParallelSettings()
    )
    before = own[0].detach().clone()
    with replica.accumulating():
        loss(own, {0}, 1.0).backward()
    loss(own, {0}, 2.0).backward()
    replica.step()
    torch.testing.assert_close(own[0].detach(), before - 9 * before**2)
