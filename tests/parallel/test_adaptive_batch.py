"""The batch that grows when validation stalls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.parallel import AdaptiveBatch


@pytest.mark.parametrize(
    ("settings", "accuracies", "sizes"),
    [
        (  # lines 13 to 21 of algorithm 1
            {"size": 32},
            (0.0, 0.5, 0.5, 0.4, 0.6, 0.59, 0.61, 0.1, 0.2, 0.3),
            [32, 32, 32, 64, 64, 128, 128, 256, 512, 576],
        ),
        ({"size": 8}, [0.7] * 5, [8] * 5),  # a tie is no reason to grow
        # margins decide what counts as no improvement
        ({"size": 8, "margin": 1.1}, (0.5, 0.54, 0.5, 0.54 * 1.2), [8, 16, 32, 32]),
        ({"size": 8, "margin": 0.9}, (0.5, 0.54, 0.5, 0.54 * 0.89), [8, 8, 8, 16]),
        ({"size": 1, "growth": 1.05}, (0.9, 0.1, 0.1), [1, 2, 3]),
        ({"size": 24, "growth": 1}, (0.9, 0.1, 0.2), [24] * 3),
    ],
)
def test_it_grows_where_accuracy_does_not(settings, accuracies, sizes):
    batch, found = AdaptiveBatch(**settings), []
    for accuracy in accuracies:
        batch.update(accuracy)
        found.append(batch.size)
    assert found == sizes
    assert batch.best == max(accuracies)


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


def test_values_out_of_range_are_refused():
    for values, line in (
        ({"size": 0}, "batch size 0"),
        ({"size": 600}, "batch size 600: from 1 to the cap, 576"),
        ({"size": 8, "margin": -1}, "margin -1"),
        ({"size": 8, "growth": 0.5}, "growth 0.5"),
    ):
        with pytest.raises(ValueError, match=line):
            AdaptiveBatch(**values)
    with pytest.raises(ValueError, match="not a number"):
        AdaptiveBatch(8).update(float("nan"))
