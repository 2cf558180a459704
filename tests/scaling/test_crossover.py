"""Which exchange is the faster one on how many ranks: the papers' numbers, and brute force."""

from hypothesis import given
from hypothesis import strategies as st

from actionspan.scaling import fit_times
from actionspan.scaling.timing_model import crossovers, faster_ranges
from scaling.oracle import PAPER_PS, PAPER_RING, runs_of, single_runs

COEFFICIENTS = st.tuples(
    st.integers(-2000, 5000), st.integers(-40, 60), st.integers(-500, 500)
).map(lambda values: tuple(float(value) for value in values))


def test_by_the_papers_numbers_the_server_is_faster_up_to_11_ranks():
    model = fit_times(runs_of("ps", PAPER_PS) + runs_of("ring", PAPER_RING))
    assert model["ps"]["crossover"] == {"ring": 11}
    assert model["ps"]["faster_than"] == {"ring": [[2, 11]]}
    assert model["ring"]["crossover"] == {"ps": None}
    assert model["ring"]["faster_than"] == {"ps": [[12, None]]}


def test_it_needs_no_parameter_that_is_not_identifiable():
    """Any split of the ring's parameters and a measured T give the same crossover."""
    other = (PAPER_RING[0] + 100, PAPER_RING[1] + 100, PAPER_RING[2] - 100)
    runs = runs_of("ps", PAPER_PS) + runs_of("ring", other)
    assert fit_times(runs)["ps"]["crossover"] == {"ring": 11}


def test_an_exchange_without_a_curve_is_not_compared():
    runs = runs_of("ps", PAPER_PS) + runs_of("ring", PAPER_RING, (3,)) + runs_of("mpi", PAPER_RING)
    model = fit_times(runs)
    assert model["ring"]["crossover"] == {}
    assert list(model["ps"]["crossover"]) == ["mpi"]
    # with T measured, one number of ranks is enough
    model = fit_times(runs + single_runs(4400.1, 363.5))
    assert list(model["ps"]["crossover"]) == ["ring", "mpi"]


def test_faster_everywhere_is_a_range_without_end_and_no_crossover():
    compared = crossovers({"a": (100.0, 0.0, 10.0), "b": (100.0, 0.0, 20.0)})
    assert compared["a"] == {"crossover": {"b": None}, "faster_than": {"b": [[2, None]]}}
    assert compared["b"] == {"crossover": {"a": None}, "faster_than": {"a": []}}


def test_equal_curves_are_faster_nowhere():
    """Also where rounding tells them apart."""
    curve, rounded = (100.0, 0.1 + 0.2, 7.0), (100.0, 0.3, 7.0)
    assert curve != rounded
    assert faster_ranges(curve, rounded) == faster_ranges(rounded, curve) == []


@given(COEFFICIENTS, COEFFICIENTS)
def test_the_ranges_are_those_of_every_number_tried(curve, against):
    def seconds(values, ranks):  # times ranks, so that whole numbers stay whole
        return values[0] + values[1] * ranks**2 + values[2] * ranks

    ranges = faster_ranges(curve, against)
    for ranks in [*range(2, 3000), 10**4, 10**5]:
        inside = any(first <= ranks and (last is None or ranks <= last) for first, last in ranges)
        assert inside == (seconds(curve, ranks) < seconds(against, ranks)), ranks
