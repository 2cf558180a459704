"""Which rows are kept: how many, with what probability, and with what weight."""

import itertools

import pytest
import torch
from hypothesis import given
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
    assert (rows.dtype, weights.dtype) == (torch.int64, torch.float64)
    assert rows.shape == weights.shape == (kept_count(count, ratio),)
    assert bool((rows.diff() > 0).all())  # sorted and distinct
    assert 0 <= rows[0] <= rows[-1] < count
    assert bool((weights >= 1 - 1e-12).all() and weights.isfinite().all())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_exactly_k_distinct_rows_for_every_length_and_ratio(sampler):
    generator = seeded()
    for count, ratio in itertools.product((*range(1, 60), 100, 199, 200), RATIOS):
        check(draw(sampler, count, ratio, generator), count, ratio)


sizes = st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 1.0, 3.0, 1e9, float("inf"), float("nan")])


@given(
    st.sampled_from(SAMPLERS),
    st.lists(sizes, min_size=1, max_size=200).map(torch.tensor),
    st.floats(0, 1, exclude_min=True),
    st.integers(0, 2**32),
)
def test_exactly_k_distinct_rows_whatever_the_magnitudes(sampler, magnitudes, ratio, seed):
    count = len(magnitudes)
    check(draw(sampler, count, ratio, seeded(seed), magnitudes), count, ratio)


def test_the_number_kept_is_the_ratio_to_the_nearest():
    assert [kept_count(count, 0.25) for count in (1, 2, 5, 6, 10, 100)] == [1, 1, 1, 2, 3, 25]
    # of 100; a stride of ⌊1 / r⌋ keeps all at 0.6, and 34 at 0.3
    assert [kept_count(100, ratio) for ratio in (0.6, 0.3, 0.125, 1)] == [60, 30, 13, 100]


DRAWN = ("uniform_random", "diverse_feature", "importance", "checkerboard")
CASES = [(sampler, 7, 4 / 7) for sampler in (*DRAWN, "diverse_gradient")]
CASES += [(sampler, 10, 0.3) for sampler in DRAWN]
CASES += [("uniform_random", 8, 0.25), ("importance", 12, 0.5), ("checkerboard", 12, 0.25)]


@pytest.mark.parametrize(("sampler", "count", "ratio"), first_tier(CASES, *CASES[:5]))
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


@pytest.mark.parametrize("sampler", ["uniform_random", "fixed"])
def test_rows_are_one_in_each_chunk_of_time(sampler):
    generator = seeded()
    for count, ratio in itertools.product(range(1, 30), (0.25, 0.3, 0.6)):
        kept = kept_count(count, ratio)
        rows, weights = draw(sampler, count, ratio, generator)
        for i in range(kept):
            first, last = count * i // kept, count * (i + 1) // kept - 1
            assert first <= rows[i] <= (last if sampler == "uniform_random" else first)
            assert weights[i] == last - first + 1


def test_diverse_rows_are_one_in_each_chunk_of_sorted_magnitudes():
    magnitudes = torch.tensor([5.0, 1, 4, 1, 3, 1, 2, 9])
    # Sorted: 1 3 5 | 6 4 2 0 7 with equal ones in their order; k = 3 chunks of 2, 3, 3.
    chunks = [{1, 3}, {5, 6, 4}, {2, 0, 7}]
    for seed in range(20):
        rows, weights = draw("diverse_feature", 8, 3 / 8, seeded(seed), magnitudes)
        for chunk in chunks:
            (row,) = chunk & set(rows.tolist())
            assert weights[rows.tolist().index(row)] == len(chunk)
    # sorting is stable, so that the chunks of equal magnitudes are those of the rows
    plain, diverse = (
        draw(sampler, 5000, 0.25, seeded(), torch.ones(5000)).rows
        for sampler in ("uniform_random", "diverse_feature")
    )
    assert torch.equal(plain, diverse)


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


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_rows_follow_from_the_generator(sampler):
    before = torch.get_rng_state()
    found = [draw(sampler, 50, 0.3, seeded(seed)).rows for seed in (7, 7, 8, 9, 10)]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(found[0], found[1])
    assert all(torch.equal(found[0], other) for other in found) == (sampler == "fixed")
    torch.manual_seed(7)
    assert torch.equal(draw(sampler, 50, 0.3).rows, found[0])


@pytest.mark.parametrize(
    ("arguments", "how", "message"),
    [
        (("strided", 5, 0.5), {}, "sampler is 'strided'; it must be one of uniform_random, fixed"),
        (("fixed", 0, 0.5), {}, "count is 0"),
        (("fixed", 5, 0.0), {}, "keep_ratio is 0.0; it must be above 0 and at most 1"),
        (("fixed", 5, 1.01), {}, "keep_ratio is 1.01"),
        (("fixed", 5, float("nan")), {}, "keep_ratio is nan"),
        (("importance", 5, 0.5), {}, r"importance needs magnitudes of shape \(5,\), not None"),
        (("importance", 5, 0.5), {"magnitudes": torch.ones(4)}, r"not \(4,\)"),
        (("diverse_feature", 5, 0.5), {}, "diverse_feature needs magnitudes"),
        (("checkerboard", 5, 0.5), {}, r"needs a grid \(t, h, w\) of 5 tokens, not None"),
        (("checkerboard", 5, 0.5), {"grid": (2, 2, 2)}, r"not \(2, 2, 2\)"),
    ],
)
def test_a_value_that_is_not_allowed_is_one_line(arguments, how, message):
    with pytest.raises(ValueError, match=rf"^[^\n]*{message}[^\n]*\Z"):
        sample_rows(*arguments, **how)
