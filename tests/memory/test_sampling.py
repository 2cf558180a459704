"""Which rows are kept: how many, with what probability, and with what weight."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from actionspan.memory import sample_rows
from actionspan.memory.sampling import inclusion, kept_count, systematic
from memory.encoders import SAMPLERS, seeded
from tiers import first_tier

RATIOS = (0.005, 0.1, 0.125, 0.2, 0.25, 0.3, 0.34, 0.5, 0.6, 0.75, 0.9, 1.0)
DRAWS = 4000


def draw(sampler, count, ratio, generator=None, magnitudes=None):
    if magnitudes is None:
        magnitudes = torch.linspace(3, 0.1, count) ** 2
    grid = (count, 1, 1)
    return sample_rows(sampler, count, ratio, generator, magnitudes=magnitudes, grid=grid)


def check(found, count, ratio):
    rows, weights = found
    kept = kept_count(count, ratio)
    assert rows.dtype == torch.int64
    assert weights.dtype == torch.float64
    assert rows.shape == weights.shape == (kept,)
    assert bool((rows.diff() > 0).all())  # sorted and distinct
    assert rows[0] >= 0
    assert rows[-1] < count
    assert bool((weights >= 1 - 1e-12).all())
    assert bool(weights.isfinite().all())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_exactly_k_distinct_rows_for_every_length_and_ratio(sampler):
    generator = seeded()
    for count, ratio in itertools.product(range(1, 201), RATIOS):
        check(draw(sampler, count, ratio, generator), count, ratio)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SAMPLERS),
    st.integers(1, 200),
    st.floats(0, 1, exclude_min=True),
    st.integers(0, 2**32),
    st.data(),
)
def test_exactly_k_distinct_rows_whatever_the_magnitudes(sampler, count, ratio, seed, data):
    sizes = st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 1.0, 3.0, 1e9, float("inf"), float("nan")])
    magnitudes = torch.tensor(data.draw(st.lists(sizes, min_size=count, max_size=count)))
    check(draw(sampler, count, ratio, seeded(seed), magnitudes), count, ratio)


def test_the_number_kept_is_the_ratio_to_the_nearest():
    assert [kept_count(count, 0.25) for count in (1, 2, 5, 6, 10, 100)] == [1, 1, 1, 2, 3, 25]
    assert kept_count(100, 0.6) == 60  # a stride of ⌊1 / r⌋ keeps all
    assert kept_count(100, 0.3) == 30  # and 34 of 100 here
    assert kept_count(100, 0.125) == 13
    assert kept_count(7, 1) == 7


CASES = {
    "uniform_random": [(7, 4 / 7), (8, 0.25), (10, 0.3)],
    "diverse_feature": [(7, 4 / 7), (10, 0.3)],
    "diverse_gradient": [(7, 4 / 7)],
    "importance": [(7, 4 / 7), (10, 0.3), (12, 0.5)],
    "checkerboard": [(7, 4 / 7), (12, 0.25), (10, 0.3)],
}


@pytest.mark.parametrize(
    ("sampler", "count", "ratio"),
    first_tier(
        [(sampler, *case) for sampler, cases in CASES.items() for case in cases],
        *((sampler, *cases[0]) for sampler, cases in CASES.items()),
    ),
)
def test_rows_are_kept_as_often_as_their_weights_say(sampler, count, ratio):
    generator, times = seeded(11), torch.zeros(count, dtype=torch.float64)
    weights = torch.full((count,), float("nan"), dtype=torch.float64)
    for _ in range(DRAWS):
        rows, found = draw(sampler, count, ratio, generator)
        times[rows] += 1
        known = ~weights[rows].isnan()
        assert torch.equal(weights[rows][known], found[known])  # a row's weight never changes
        weights[rows] = found
    expected = DRAWS / weights
    assert float(expected.sum()) == pytest.approx(DRAWS * kept_count(count, ratio), rel=1e-9)
    # Of counts without replacement this is too small, if anything; both ends are looked at.
    often = expected < DRAWS - 1e-6
    assert torch.equal(times[~often], expected[~often])
    variance = expected * (1 - 1 / weights)
    assert float(((times - expected)[often].abs() / variance[often].sqrt()).max()) < 4.5
    statistic = float(((times - expected)[often] ** 2 / expected[often]).sum())
    assert stats.chi2.sf(statistic, df=count - 1) > 1e-4


def test_rows_of_uniform_random_are_one_in_each_chunk():
    generator = seeded()
    for count, ratio in itertools.product(range(1, 30), (0.25, 0.3, 0.6)):
        kept = kept_count(count, ratio)
        rows, weights = draw("uniform_random", count, ratio, generator)
        for i in range(kept):
            first, last = count * i // kept, count * (i + 1) // kept - 1
            assert first <= rows[i] <= last
            assert weights[i] == last - first + 1


def test_fixed_is_the_first_row_of_each_chunk():
    rows, weights = draw("fixed", 7, 4 / 7)
    assert rows.tolist() == [0, 1, 3, 5]
    assert weights.tolist() == [1, 2, 2, 2]


def test_diverse_rows_are_one_in_each_chunk_of_sorted_magnitudes():
    magnitudes = torch.tensor([5.0, 1, 4, 1, 3, 1, 2, 9])
    # Sorted: 1 3 5 | 6 4 2 0 7 with equal ones in their order; k = 3 chunks of 2, 3, 3.
    chunks = [{1, 3}, {5, 6, 4}, {2, 0, 7}]
    for seed in range(20):
        rows, weights = draw("diverse_feature", 8, 3 / 8, seeded(seed), magnitudes)
        for chunk in chunks:
            (row,) = chunk & set(rows.tolist())
            assert weights[rows.tolist().index(row)] == len(chunk)


def test_probabilities_are_in_proportion_to_magnitudes_and_at_most_1():
    magnitudes = torch.tensor([8.0, 1, 1, 2, 0, 4, 1, 1], dtype=torch.float64)
    found = inclusion(magnitudes, 3)
    assert float(found.sum()) == pytest.approx(3, abs=1e-12)
    # 8 of 18 three times is above 1; of the other 10, 4 takes 0.8 of two.
    expected = torch.tensor([1, 0.2, 0.2, 0.4, 0, 0.8, 0.2, 0.2], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert found[4] > 0
    assert inclusion(torch.zeros(8).double(), 2).tolist() == [0.25] * 8
    overflow = torch.tensor([1.0, float("inf"), 2, float("nan"), 5, 5], dtype=torch.float64)
    found = inclusion(overflow, 2)
    assert bool((found[[1, 3]] > 0.99).all())
    assert bool((found > 0).all())  # no weight is infinite
    assert float(found.sum()) == pytest.approx(2, abs=1e-4)


def test_systematic_points_take_each_row_as_often_as_its_length():
    lengths = inclusion(torch.tensor([8.0, 1, 1, 2, 0.5, 4, 1, 1.5], dtype=torch.float64), 3)
    starts = (torch.arange(20000, dtype=torch.float64) + 0.5) / 20000
    times = torch.zeros(8, dtype=torch.float64)
    for start in starts.tolist():
        times[systematic(lengths, 3, start)] += 1
    assert float((times / 20000 - lengths).abs().max()) < 2e-4
    last = float(torch.nextafter(torch.tensor(1.0).double(), torch.tensor(0.0).double()))
    many = inclusion(torch.rand(200, generator=seeded()).double() + 0.1, 120)
    assert len(set(systematic(many, 120, last).tolist())) == 120


def test_a_checkerboard_takes_whole_diagonals_where_the_number_allows():
    grid = (4, 4, 4)
    diagonal = torch.cartesian_prod(*map(torch.arange, grid)).sum(1)
    seen = set()
    for seed in range(40):
        rows, weights = sample_rows("checkerboard", 64, 0.25, seeded(seed), grid=grid)
        (shift,) = set((diagonal[rows] % 4).tolist())  # every fourth diagonal
        seen.add(shift)
        assert weights.tolist() == [4] * 16
    assert seen == {0, 1, 2, 3}


def test_rows_follow_from_the_generator():
    for sampler in SAMPLERS:
        assert torch.equal(
            draw(sampler, 50, 0.3, seeded(7)).rows, draw(sampler, 50, 0.3, seeded(7))[0]
        )
        if sampler != "fixed":
            others = [draw(sampler, 50, 0.3, seeded(seed)).rows for seed in range(5)]
            assert not all(torch.equal(others[0], other) for other in others)
    before = torch.get_rng_state()
    draw("uniform_random", 50, 0.3, seeded(7))
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(7)
    assert torch.equal(
        draw("uniform_random", 50, 0.3).rows, draw("uniform_random", 50, 0.3, seeded(7)).rows
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("strided", 5, 0.5), "sampler is 'strided'; it must be one of uniform_random, fixed"),
        (("fixed", 0, 0.5), "count is 0"),
        (("fixed", 5, 0.0), "keep_ratio is 0.0; it must be above 0 and at most 1"),
        (("fixed", 5, 1.01), "keep_ratio is 1.01"),
        (("fixed", 5, float("nan")), "keep_ratio is nan"),
        (("importance", 5, 0.5), r"importance needs magnitudes of shape \(5,\), not None"),
        (("diverse_feature", 5, 0.5), "diverse_feature needs magnitudes"),
        (("checkerboard", 5, 0.5), r"checkerboard needs a grid \(t, h, w\) of 5 tokens, not None"),
    ],
)
def test_a_value_that_is_not_allowed_is_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        sample_rows(*arguments)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"not \(2, 2, 2\)"):
        sample_rows("checkerboard", 5, 0.5, grid=(2, 2, 2))
    with pytest.raises(ValueError, match=r"not \(4,\)"):
        sample_rows("importance", 5, 0.5, magnitudes=torch.ones(4))


def test_equal_magnitudes_stay_in_their_order():
    """Sorting is stable, so that the chunks are those of the rows."""
    plain, diverse = (
        sample_rows(sampler, 5000, 0.25, torch.Generator().manual_seed(1), magnitudes=magnitudes)
        for sampler, magnitudes in (("uniform_random", None), ("diverse_feature", torch.ones(5000)))
    )
    assert torch.equal(plain.rows, diverse.rows)
