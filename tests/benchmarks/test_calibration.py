"""Costs are found again from rows made with them; what was not fitted is only judged."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.calibration import Row, calibrate, errors
from simulation.ranks import Costs
from simulation.rounds import ALGORITHMS, simulated_seconds


def rows_of(costs, noise=0.0):
    random = np.random.default_rng(1)
    rows = []
    for algorithm, n, size in product(ALGORITHMS, (2, 3, 4, 5, 8), (1024, 65_536, 2**20)):
        seconds = float(simulated_seconds(algorithm, n, size, costs).max())
        factor = float(np.exp(noise * random.standard_normal()))
        rows.append(Row(algorithm, n, size, seconds * factor))
    return rows


@settings(max_examples=10)
@given(st.floats(10, 1e5), st.floats(1e-10, 1e-6), st.floats(0.01, 0.3))
def test_exact_rows_give_their_costs_back(bytes_of_alpha, beta, share):
    """As long as additions are faster than the network, as they are."""
    rows = rows_of(Costs(bytes_of_alpha * beta, beta, share * beta))
    assert max(abs(error) for _, error in errors(rows, calibrate(rows))) < 1e-5


def test_noise_moves_costs_by_no_more_than_itself():
    costs = Costs(3e-4, 9e-8, 2e-8)
    found = calibrate(rows_of(costs, noise=0.05))
    np.testing.assert_allclose(found[:2], costs[:2], rtol=0.05)
    assert found.gamma == pytest.approx(costs.gamma, rel=0.3)


@pytest.mark.parametrize("costs", [Costs(1e-4, 1e-8, 0.0), Costs(0.0, 1e-8, 1e-9)])
def test_a_cost_of_nothing_stays_nothing(costs):
    np.testing.assert_allclose(calibrate(rows_of(costs)), costs, rtol=1e-4, atol=1e-12)


def test_bursts_of_the_links_are_taken_into_account():
    costs = Costs(1e-4, 8e-8, 1e-9, burst=32_768.0)
    rows = rows_of(costs)
    np.testing.assert_allclose(calibrate(rows, costs.burst), costs, rtol=1e-3)
    assert max(abs(error) for _, error in errors(rows, calibrate(rows))) > 0.2


def test_rows_on_more_ranks_are_not_fitted_but_judged():
    rows = rows_of(Costs(3e-4, 9e-8, 1e-9))
    rows = [row._replace(seconds=row.seconds * (2 if row.ranks > 4 else 1)) for row in rows]
    judged = errors(rows, calibrate(rows))
    assert {row.ranks for row, _ in judged} == {5, 8}
    assert [error for _, error in judged] == pytest.approx([-0.5] * len(judged), rel=1e-4)


def test_bad_rows():
    rows = rows_of(Costs(1e-4, 1e-8, 1e-9))
    with pytest.raises(ValueError, match="0 rows on 4 ranks or fewer"):
        calibrate([row for row in rows if row.ranks > 4])
    with pytest.raises(ValueError, match="above 0"):
        calibrate([rows[0]._replace(seconds=0.0), *rows])
