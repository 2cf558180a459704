"""Nodes in two parts and back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan_papers.sbp.transformer import (
    KeepGradient,
    TransformerEncoder,
    divide_nodes,
    put_together,
    take,
)


@given(st.integers(1, 20), st.data())
def test_divided_nodes_come_back_in_their_places(count, data):
    kept = torch.tensor(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1))))
    nodes = torch.randn(3, count, 2, 4)
    rows = divide_nodes(kept, count)
    assert torch.equal(rows.kept, kept)
    assert sorted([*rows.kept.tolist(), *rows.dropped.tolist()]) == list(range(count))
    back = put_together(take(nodes, rows.kept), take(nodes, rows.dropped), rows)
    assert torch.equal(back, nodes)


@given(st.integers(1, 12), st.integers(1, 4), st.randoms(use_true_random=False))
def test_so_do_those_of_each_example_its_own(count, examples, random):
    size = random.randint(1, count)
    kept = torch.tensor([random.sample(range(count), size) for _ in range(examples)])
    nodes = torch.randn(examples, count, 5)
    rows = divide_nodes(kept, count)
    assert torch.equal(rows.kept, kept.sort(dim=1).values)
    for example in range(examples):
        expected = nodes[example][rows.kept[example]]
        assert torch.equal(take(nodes, rows.kept)[example], expected)
    back = put_together(take(nodes, rows.kept), take(nodes, rows.dropped), rows)
    assert torch.equal(back, nodes)


def test_nodes_can_be_divided_without_values():
    rows = divide_nodes(torch.empty(3, dtype=torch.int64, device="meta"), 12)
    assert [tuple(part.shape) for part in rows] == [(3,), (9,), (12,)]


def test_the_gradient_of_dropped_nodes_is_zero_even_where_it_is_not_finite():
    nodes = torch.randn(2, 4, 3, requires_grad=True)
    passed = KeepGradient.apply(nodes, torch.tensor([[1], [3]]))
    assert torch.equal(passed, nodes)
    given = torch.full((2, 4, 3), torch.inf)
    given[0, 1], given[1, 3] = 5.0, 7.0
    passed.backward(given)
    expected = torch.zeros(2, 4, 3)
    expected[0, 1], expected[1, 3] = 5.0, 7.0
    assert torch.equal(nodes.grad, expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1.0], "float32 of shape"),
        ([True, False, True], "bool of shape"),
        ([], "of shape"),
        ([9], "from 9 to 9; they must be from 0 to 5"),
        ([-1, 2], "from -1 to 2; they must be"),
        ([1, 1], "one is there twice"),
        ([0, 0, 0, 0, 0, 0], "one is there twice"),
        ([[1], [2], [3]], "of 3 examples: there are 2"),
    ],
)
def test_rows_that_are_refused(rows, message):
    encoder = TransformerEncoder(8, 2, 3, top=1)
    with pytest.raises(ValueError, match=f"^rows of nodes.*{message}") as error:
        encoder(torch.randn(2, 6, 8), torch.tensor(rows))
    assert "\n" not in str(error.value)
