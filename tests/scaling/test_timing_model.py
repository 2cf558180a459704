"""The time models: exact on exact data, honest about what run times do not tell; crossovers."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.scaling import fit_times
from actionspan.scaling.times import EXCHANGES, RING_EXCHANGES, SERVER_EXCHANGES, Run
from actionspan.scaling.timing_model import faster_ranges, fit_runs
from scaling.oracle import (
    PAPER_PS,
    PAPER_RING,
    flat,
    model_seconds,
    noisy_runs,
    runs_of,
    single_runs,
)

SECONDS = st.floats(1, 1e4)
RANKS = st.lists(st.integers(1, 64), min_size=3, max_size=8, unique=True)


@pytest.mark.parametrize("exchange", SERVER_EXCHANGES)
@pytest.mark.parametrize("ranks", [(2, 3, 4), range(1, 9), (1, 2, 4, 8, 16, 64)])
def test_a_server_s_parameters_come_back(exchange, ranks):
    entry = fit_times(runs_of(exchange, PAPER_PS, ranks))[exchange]
    assert [entry["T"], entry["C"], entry["P"]] == pytest.approx(PAPER_PS, rel=1e-9)
    assert (entry["rank"], entry["fitted"]) == (3, ["T", "C", "P"])
    assert entry["r2"] == pytest.approx(1)
    assert [entry["paper_fit"][name] for name in "TCP"] == pytest.approx(PAPER_PS, rel=1e-9)
    assert entry["measured"] == {"t1": None, "t2": None, "t3": None}
    assert 1 < entry["condition"] < 1e4


@pytest.mark.parametrize("exchange", RING_EXCHANGES)
def test_a_ring_s_parameters_are_not_made_up(exchange):
    entry = fit_times(runs_of(exchange, PAPER_RING))[exchange]
    assert [entry["T"], entry["C"], entry["P"]] == [None, None, None]
    assert [entry["intervals"][name] for name in "TCP"] == [None, None, None]
    assert entry["identifiable"] == pytest.approx({"T - C": 4340.5, "C + P": 423.1}, rel=1e-9)
    assert (entry["rank"], entry["condition"]) == (2, None)
    assert entry["singular_values"][2] == 0
    assert "not determined separately" in entry["note"]


def test_with_measured_compute_time_the_ring_is_determined():
    entry = fit_times(runs_of("ring", PAPER_RING) + single_runs(PAPER_RING[0], 363.5))["ring"]
    assert [entry["T"], entry["C"], entry["P"]] == pytest.approx(PAPER_RING, rel=1e-9)
    assert (entry["rank"], entry["fitted"]) == (2, ["C", "P"])
    assert entry["identifiable"]["T - C"] == pytest.approx(4340.5)
    single = {"runs": 3, "seconds": 4763.6, "t1": 4400.1, "t2": 0.0, "t3": 363.5}
    assert entry["single_rank"] == pytest.approx(single)
    # the mean of 4398.1, 4400.1 and 4402.1: 4.302653 standard errors of 2/√3 to each side
    aside = 4.302653 * 2 / 3**0.5
    assert entry["intervals"]["T"] == pytest.approx([4400.1 - aside, 4400.1 + aside])
    # a wrong T would move C by as much, and P by as much the other way; T - C would stay
    assert np.diff(entry["intervals"]["C"]) == pytest.approx(np.diff(entry["intervals"]["T"]))
    assert np.diff(entry["intervals"]["T - C"]) == pytest.approx(0, abs=1e-6)
    assert "3 single-rank runs" in entry["note"]


def test_the_measured_single_rank_time_is_what_is_used():
    """A T that contradicts the run times is believed; C and P take what is left."""
    entry = fit_times(runs_of("ring", PAPER_RING) + single_runs(4410.1, 363.5))["ring"]
    assert [entry["T"], entry["C"], entry["P"]] == pytest.approx([4410.1, 69.6, 353.5])


def test_measured_parts_are_means_by_number_of_ranks():
    runs = [
        Run(exchange="ring", ranks=4, seconds=9, t1=5, t2=1),
        Run(exchange="ring", ranks=2, seconds=9, t1=7),
        Run(exchange="ring", ranks=4, seconds=9, t1=6, t2=2),
    ]
    measured = fit_times(runs)["ring"]["measured"]
    assert measured == {"t1": {"2": 7.0, "4": 5.5}, "t2": {"4": 1.5}, "t3": None}
    assert list(measured["t1"]) == ["2", "4"]


def test_the_papers_fit_of_a_ring_names_others_as_good():
    runs = runs_of("ring", PAPER_RING)
    paper = fit_times(runs)["ring"]["paper_fit"]
    assert paper["rank"] == 2
    assert "T = 4340.5 + C and P = 423.1 - C" in paper["note"]
    other = paper["alternative"]
    for found in (paper, other):
        values = [found[name] for name in "TCP"]
        predicted = [model_seconds("ring", values, run.ranks) for run in runs]
        assert predicted == pytest.approx([run.seconds for run in runs])
    norms = [np.linalg.norm([found[name] for name in "TCP"]) for found in (paper, other)]
    assert norms[0] < norms[1]
    assert norms[0] < np.linalg.norm(PAPER_RING)


@pytest.mark.parametrize(
    ("exchange", "ranks", "known", "missing"),
    [
        ("ps", (4,), {"t(4)": 1395.15}, "at least 3"),
        ("ps", (2, 4), {"t(2)": 2426.9, "t(4)": 1395.15}, "2, 4"),
        ("ring", (4,), {"t(4)": 1508.225}, "at least 2"),
    ],
)
def test_too_few_numbers_of_ranks_are_said_to_be(exchange, ranks, known, missing):
    parameters = PAPER_PS if exchange == "ps" else PAPER_RING
    runs = [
        replace(run, seconds=run.seconds + error)
        for run in runs_of(exchange, parameters, ranks)
        for error in (-1, 1)
    ]
    entry = fit_times(runs)[exchange]
    assert [entry["T"], entry["C"], entry["P"], entry["curve"]] == [None] * 4
    assert entry["identifiable"] == pytest.approx(known)
    assert all(entry["intervals"][name] for name in known)
    assert missing in entry["note"]
    assert entry["paper_fit"]["T"] is not None
    assert "infinitely many" in entry["paper_fit"]["note"]
    assert (entry["crossover"], entry["faster_than"]) == ({}, {})


def test_runs_on_one_number_of_ranks_borrow_the_single_rank_runs():
    for exchange, parameters in (("ps", PAPER_PS), ("ring", PAPER_RING)):
        runs = runs_of(exchange, parameters, (2,)) + single_runs(parameters[0], parameters[2])
        entry = fit_times(runs)[exchange]
        assert [entry["T"], entry["C"], entry["P"]] == pytest.approx(parameters)
        assert (entry["rows"], entry["single_rank_rows"], entry["ranks"]) == (1, 3, [2])
        assert "taken from the single-rank runs" in entry["note"]
        # P is what is left of runs whose own t1 is known, so an error of T does not reach it;
        # C is (t - T/2 - P)/2 or twice that
        assert np.diff(entry["intervals"]["P"]) == pytest.approx(0, abs=1e-6)
        width = np.diff(entry["intervals"]["T"]) / (4 if exchange == "ps" else 1)
        assert np.diff(entry["intervals"]["C"]) == pytest.approx(width)


def test_a_ring_of_one_rank_and_measured_compute_time_leave_c_open():
    entry = fit_times(runs_of("ring", PAPER_RING, (1,)) + single_runs(4400.1, 363.5))["ring"]
    assert (entry["T"], entry["C"], entry["P"]) == (pytest.approx(4400.1), None, None)
    assert entry["intervals"]["T"] is not None
    assert "Not determined: C and P" in entry["note"]


def test_a_single_measurement_of_t_gives_no_interval_of_what_it_enters():
    runs = runs_of("ring", PAPER_RING) + single_runs(4400.1, 363.5, errors=(0.0,))
    entry = fit_times(runs)["ring"]
    assert [entry["intervals"][name] for name in "TCP"] == [None, None, None]
    assert entry["intervals"]["T - C"] is not None
    assert "measured once" in entry["note"]


def test_as_many_runs_as_parameters_give_no_intervals():
    entry = fit_times(runs_of("ps", PAPER_PS, (2, 4, 8)))["ps"]
    assert list(entry["intervals"].values()) == [None, None, None]
    assert "no intervals" in entry["note"]


def test_notes_on_what_looks_wrong_and_a_table_of_single_ranks():
    assert "below zero" in fit_times(runs_of("ps", (4000, -3.8, 300)))["ps"]["note"]
    assert "condition number" in fit_times(runs_of("ps", PAPER_PS, (500, 501, 502)))["ps"]["note"]
    with pytest.raises(ValueError, match="no run of an exchange"):
        fit_runs(single_runs(10, 1))


@pytest.mark.parametrize("single", [0, 3])
def test_the_record_is_json_of_exchange_names_in_their_order(single):
    runs = [run for name in EXCHANGES for run in runs_of(name, PAPER_PS)]
    random.Random(1).shuffle(runs)
    model = fit_times(runs + single_runs(4223.8, 290.8)[:single])
    assert list(model) == list(EXCHANGES)
    assert json.loads(json.dumps(model, allow_nan=False)) == model
    assert list(model["ps"])[:7] == ["T", "C", "P", "rank", "r2", "measured", "paper_fit"]


@settings(max_examples=40)
@given(
    exchange=st.sampled_from(EXCHANGES),
    parameters=st.tuples(SECONDS, SECONDS, SECONDS),
    ranks=RANKS,
    errors=st.lists(st.floats(-0.05, 0.05), min_size=24, max_size=24),
    single=st.booleans(),
    unit=st.sampled_from([1 / 3600, 0.001, 60.0, 1000.0]),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_rows_and_the_unit_of_time_do_not_matter(
    exchange, parameters, ranks, errors, single, unit, order
):
    runs = [
        replace(run, seconds=run.seconds * (1 + error))
        for run, error in zip(3 * runs_of(exchange, parameters, ranks), errors, strict=False)
    ]
    if single:
        runs += single_runs(parameters[0], parameters[2], errors=(-0.5, 0.5))
    entry = fit_times(runs)[exchange]
    mixed = list(runs)
    order.shuffle(mixed)
    scaled = [
        replace(run, seconds=run.seconds * unit, t1=run.t1 and run.t1 * unit) for run in mixed
    ]
    changed = fit_times(scaled)[exchange]
    size = max(run.seconds for run in runs) * (entry["condition"] or 1)
    close = {"rel": 1e-6, "abs": 1e-9 * size * unit}
    for key in ("T", "C", "P", "identifiable", "intervals"):
        assert flat(changed[key]) == pytest.approx(flat(entry[key]) * unit, **close)
    for key in ("rank", "rows", "ranks", "condition", "singular_values"):
        assert flat(changed[key]) == pytest.approx(flat(entry[key]), rel=1e-6, abs=1e-12)
    assert changed["r2"] == (entry["r2"] and pytest.approx(entry["r2"], abs=1e-6))


@settings(max_examples=40)
@given(parameters=st.tuples(SECONDS, SECONDS, SECONDS), shift=st.floats(-500, 500), ranks=RANKS)
def test_a_ring_is_the_same_for_every_split_of_its_parameters(parameters, shift, ranks):
    """T + d, C + d, P - d: the same run times, so the same answer."""
    compute, communication, constant = parameters
    other = (compute + shift, communication + shift, constant - shift)
    runs, moved = runs_of("ring", parameters, ranks), runs_of("ring", other, ranks)
    moved = [replace(run, seconds=max(run.seconds, 1e-3)) for run in moved]
    assert [run.seconds for run in moved] == pytest.approx([run.seconds for run in runs])
    one, two = fit_times(runs)["ring"], fit_times(moved)["ring"]
    for key in ("identifiable", "paper_fit"):
        assert flat(one[key])[:2] == pytest.approx(flat(two[key])[:2], rel=1e-6, abs=1e-5)


@pytest.mark.parametrize(
    ("exchange", "single", "ranks", "names"),
    [
        ("ps", 0, (2, 3, 4, 6), ["T", "C", "P"]),
        ("ps", 4, (2, 3, 4, 6), ["T", "C", "P"]),
        ("ring", 0, (2, 3, 4, 6), ["T - C", "C + P"]),
        ("ring", 4, (2, 3, 4, 6), ["T", "C", "P", "T - C", "C + P"]),
        ("ps", 4, (2,), ["T", "C", "P"]),
        ("ring", 4, (2,), ["T", "C", "P", "T - C", "C + P"]),
    ],
)
def test_the_intervals_hold_the_truth_as_often_as_they_say(exchange, single, ranks, names):
    """95 % of 500 draws, within 4 standard errors of that share (3.9 points)."""
    rng = np.random.default_rng(20)
    parameters = (400.0, 12.0, 30.0)
    truth = dict(zip("TCP", parameters, strict=True)) | {"T - C": 388.0, "C + P": 42.0}
    inside = dict.fromkeys(names, 0)
    draws = 500
    for _ in range(draws):
        runs = noisy_runs(
            rng, exchange, parameters, ranks=ranks, repeats=2, deviation=3, single=single
        )
        intervals = fit_times(runs)[exchange]["intervals"]
        for name in names:
            low, high = intervals[name]
            inside[name] += low <= truth[name] <= high
    for name, count in inside.items():
        assert 0.911 <= count / draws <= 0.989, (name, count)


COEFFICIENTS = st.tuples(
    st.integers(-2000, 5000), st.integers(-40, 60), st.integers(-500, 500)
).map(lambda values: tuple(float(value) for value in values))


def test_by_the_papers_numbers_the_server_is_faster_up_to_11_ranks():
    model = fit_times(runs_of("ps", PAPER_PS) + runs_of("ring", PAPER_RING))
    assert model["ps"]["crossover"] == {"ring": 11}
    assert model["ps"]["faster_than"] == {"ring": [[2, 11]]}
    assert model["ring"]["crossover"] == {"ps": None}
    assert model["ring"]["faster_than"] == {"ps": [[12, None]]}


def test_an_exchange_without_a_curve_is_not_compared():
    runs = runs_of("ps", PAPER_PS) + runs_of("ring", PAPER_RING, (3,)) + runs_of("mpi", PAPER_RING)
    model = fit_times(runs)
    assert model["ring"]["crossover"] == {}
    assert list(model["ps"]["crossover"]) == ["mpi"]
    # with T measured, one number of ranks is enough
    model = fit_times(runs + single_runs(4400.1, 363.5))
    assert list(model["ps"]["crossover"]) == ["ring", "mpi"]


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
