"""Which runs the experiments are, and their settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.workflow.runs import METHODS, Learning
from actionspan_papers.aavg.comparisons import (
    COMPARISONS,
    ExperimentSettings,
    curve_figures,
    rate_runs,
    run_of,
)

SETTINGS = ExperimentSettings(intervals=(1, 4), learning_rates=(0.00003, 0.0001, 3e-4))


@pytest.mark.parametrize(
    ("comparison", "learners", "expected"),
    [
        ("interval", 2, ["aavg1-k1-2", "aavg1-k4-2", "aavg1-epoch-2"]),
        ("batch", 3, ["aavg1-epoch-3", "aavg2-epoch-3"]),
        ("adam", 2, ["aavg3-epoch-2", "none-k1-1"]),
        ("peers", 2, ["aavg3-epoch-2", "ring-k1-2", "periodic-epoch-2", "ps_async-k1-2"]),
    ],
)
def test_the_runs_of_each_figure(comparison, learners, expected):
    assert [run.name for run in COMPARISONS[comparison].runs(SETTINGS, learners)] == expected


def test_labels_tell_the_curves_of_a_figure_apart():
    assert len(curve_figures()) == 11
    for comparison in COMPARISONS.values():
        runs = comparison.runs(SETTINGS, 2)
        labels = [comparison.label(run) for run in runs]
        assert None not in labels
        assert len(set(labels)) == len(runs)
    assert COMPARISONS["interval"].label(run_of("aavg1", 2)) == "K = -1"
    assert COMPARISONS["batch"].label(run_of("aavg3", 2)) is None


def test_rgb_of_aavg4_is_trained_as_that_of_aavg3():
    seeded = Learning.of_name("aavg4-k2-3-lr0.1-seed4")
    assert seeded.trained_as("rgb").name == "aavg3-k2-3-lr0.1-seed4"
    assert seeded.trained_as("flow") == seeded


@given(
    st.sampled_from(METHODS), st.sampled_from([-1, 1, 16]), st.integers(1, 64),
    st.sampled_from([None, "0.0003", "3e-4"]), st.integers(1, 12),
)  # fmt: skip
def test_a_run_is_known_by_its_name(method, interval, learners, rate, seed):
    run = run_of(method, learners, interval)
    run = Learning(run.exchange, interval, learners, run.variant, rate, seed)
    assert Learning.of_name(run.name) == run
    assert (run.method, run.name.startswith(f"{run.way}-{learners}")) == (method, True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"intervals": "1,2"}, r"intervals '1,2': write a list: \[1, 2\]"),
        ({"intervals": (1, 8, 4)}, r"intervals \[1, 8, 4\]: rising"),
        ({"intervals": (0, 1)}, r"intervals \[0, 1\]: rising numbers, each at least 1"),
        ({"learning_rates": (0, 0.1)}, r"rates \[0, 0.1\]: rising numbers, each above 0"),
        ({"seeds": 0}, "seeds 0: from 1 to 1000"),
        ({"rate_seeds": 0}, "rate_seeds 0: from 1 to 1000"),
        ({"resamples": 0}, "resamples 0: from 1 to 1000000"),
        ({"confidence": 1.0}, "confidence 1.0: above 0, below 1"),
    ],
)
def test_bad_settings_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        ExperimentSettings(**changed)


@given(st.lists(st.integers(1, 10**6), min_size=1, unique=True))
def test_any_rising_rates_name_runs(numbers):
    rates = tuple(number / 10**6 for number in sorted(numbers))
    settings = ExperimentSettings(learning_rates=rates)
    for run in rate_runs(settings, 2, 0.5):
        assert Learning.of_name(run.name).name == run.name
        assert run.learning_rate is None or float(run.learning_rate) in rates
