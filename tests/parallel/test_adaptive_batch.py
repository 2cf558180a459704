"""The batch that grows when validation stalls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.parallel import AdaptiveBatch


def test_it_follows_lines_13_to_21_of_algorithm_1():
    batch = AdaptiveBatch(32)
    sizes = []
    for accuracy in (0.0, 0.5, 0.5, 0.4, 0.6, 0.59, 0.61, 0.1, 0.2, 0.3):
        batch.update(accuracy)
        sizes.append(batch.size)
    assert sizes == [32, 32, 32, 64, 64, 128, 128, 256, 512, 576]
    assert batch.best == 0.61


def test_a_tie_is_no_reason_to_grow():
    batch = AdaptiveBatch(8)
    for _ in range(5):
        batch.update(0.7)
    assert batch.size == 8


def test_margins_decide_what_counts_as_no_improvement():
    strict, lenient = AdaptiveBatch(8, margin=1.1), AdaptiveBatch(8, margin=0.9)
    for accuracy in (0.5, 0.54, 0.5):
        strict.update(accuracy)
        lenient.update(accuracy)
    assert (strict.size, lenient.size) == (32, 8)
    strict.update(0.54 * 1.2)
    lenient.update(0.54 * 0.89)
    assert (strict.size, lenient.size) == (32, 16)


@given(st.lists(st.floats(0, 1), max_size=30), st.integers(1, 100), st.floats(1, 4))
def test_it_never_shrinks_nor_passes_the_cap_and_goes_on_from_its_state(seen, size, growth):
    batch = AdaptiveBatch(size, growth=growth, cap=100)
    for number, accuracy in enumerate(seen):
        before = batch.size
        twin = AdaptiveBatch(1, growth=growth, cap=100)
        twin.restore(batch.state())
        batch.update(accuracy)
        twin.update(accuracy)
        assert (twin.size, twin.best) == (batch.size, batch.best)
        assert before <= batch.size <= 100
        assert batch.best == max(seen[: number + 1])


def test_the_smallest_batch_grows_by_the_smallest_factor():
    batch = AdaptiveBatch(1, growth=1.05)
    for accuracy in (0.9, 0.1, 0.1):
        batch.update(accuracy)
    assert batch.size == 3


def test_growth_1_is_a_constant_batch():
    batch = AdaptiveBatch(24, growth=1)
    for accuracy in (0.9, 0.1, 0.2):
        batch.update(accuracy)
    assert batch.size == 24


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"size": 0}, "batch size 0"),
        ({"size": 600}, "batch size 600: from 1 to the cap, 576"),
        ({"size": 8, "margin": -1}, "margin -1"),
        ({"size": 8, "growth": 0.5}, "growth 0.5"),
    ],
)
def test_values_out_of_range_are_refused(values, line):
    with pytest.raises(ValueError, match=line):
        AdaptiveBatch(**values)


def test_an_accuracy_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="not a number"):
        AdaptiveBatch(8).update(float("nan"))
