"""The figures: the same bytes each time, what they show, and models of other runs."""

import json
import xml.etree.ElementTree as ET
from itertools import islice

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.scaling import fit_times
from actionspan.scaling.figures import (
    _short,
    _values,
    curve_with_band,
    draw_fit,
    draw_speedup,
    exchange_colour,
    numbers_apart,
    read_model,
)
from actionspan.scaling.plot_speedup import speed_panels, speed_ratios
from actionspan.scaling.times import EXCHANGES, Run
from scaling.oracle import PAPER_PS, PAPER_RING, noisy_runs, runs_of, single_runs
from storage.changed import changes

SINGLE = single_runs(400.0, 30.0)
RUNS = [
    run
    for seed, (exchange, communication) in enumerate([("ring", 60), ("ps", 8)])
    for run in noisy_runs(
        np.random.default_rng(seed), exchange, (400, communication, 30),
        ranks=(2, 4), repeats=3, deviation=3,
    )
]  # fmt: skip


def texts(path):
    """The texts of an SVG: each is a comment beside its glyphs."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    root = ET.parse(path, parser)
    return [node.text.strip() for node in root.iter(ET.Comment)]


def test_speed_ratios_are_against_the_median_single_rank_run(tmp_path):
    runs = [Run(exchange="none", ranks=1, seconds=s) for s in (8, 10, 60)]
    runs += [Run(exchange="ring", ranks=n, seconds=s) for n, s in ((4, 4), (2, 5), (2, 8))]
    ratios = speed_ratios(tmp_path, runs)
    assert ratios == {"none": {1: [1.25, 1.0, 1 / 6]}, "ring": {2: [2.0, 1.25], 4: [2.5]}}
    assert list(ratios["ring"]) == [2, 4]


def test_steps_alone_are_a_panel_of_their_own_where_they_were_measured(tmp_path):
    timed = [
        Run(exchange="none", ranks=1, seconds=10, t1=6, t2=0, t3=4),
        Run(exchange="ring", ranks=2, seconds=8, t1=3, t2=1, t3=4),
    ]
    panels = speed_panels(tmp_path, timed)
    assert [ratios["ring"][2] for ratios in panels.values()] == [[1.25], [1.5]]
    untimed = [*timed, Run(exchange="ring", ranks=3, seconds=8)]
    assert list(speed_panels(tmp_path, untimed)) == ["whole run"]


def draw_both(folder, suffix, runs):
    """Draw the two figures of a table of runs; return their paths."""
    speedup, fit = folder / f"speedup.{suffix}", folder / f"fit.{suffix}"
    draw_speedup(speedup, speed_panels(folder, runs))
    draw_fit(fit, runs, fit_times(runs))
    return speedup, fit


def test_figures_have_the_same_bytes_each_time_and_no_date(tmp_path):
    one, two = (
        [path.read_bytes() for path in draw_both(tmp_path, "svg", RUNS + SINGLE)] for _ in range(2)
    )
    assert one == two
    assert all(b"<dc:date>" not in content for content in one)


def test_lines_and_panels_are_named(tmp_path):
    speedup, fit = map(texts, draw_both(tmp_path, "svg", RUNS + SINGLE))
    assert {"ring", "ps", "ideal", "ranks"} <= set(speedup)
    assert {"ring: rank 2 of 2 (C, P)", "ps: rank 2 of 2 (C, P)", "t1 compute"} <= set(fit)
    draw_fit(tmp_path / "times.svg", RUNS, fit_times(RUNS))
    shown = texts(tmp_path / "times.svg")
    assert {"ring: rank 2 of 3 (T, C, P)", "ps: rank 2 of 3 (T, C, P)"} <= set(shown)
    assert "t1 compute" not in shown


@pytest.mark.parametrize(
    "runs",
    [
        runs_of("ring", PAPER_RING, (2,)) + single_runs(4400, 363),  # one number of ranks
        # slower than one rank, one run
        runs_of("ps", (0.001, 5.0, 2.0), (2, 3, 4)) + single_runs(1.0, 0.1, errors=(0.0,)),
        pytest.param(  # all exchanges, hundreds of ranks
            [run for name in EXCHANGES for run in runs_of(name, PAPER_PS, (2, 3, 250, 256))]
            + single_runs(4223, 290),
            marks=pytest.mark.full,
        ),
        [Run(exchange="mpi", ranks=1, seconds=3.0), Run(exchange="none", ranks=1, seconds=2.0)],
    ],
)
def test_odd_tables_can_be_drawn(tmp_path, runs):
    assert all(path.stat().st_size > 5000 for path in draw_both(tmp_path, "png", runs))


def test_every_exchange_has_a_colour_and_the_main_ones_their_own():
    colours = [exchange_colour(name) for name in EXCHANGES]
    assert len(set(colours)) == 6
    main = ("ring", "ps", "mpi", "ps_sharded", "gloo", "ps_async")
    assert len({exchange_colour(name) for name in main}) == 6


def test_the_band_is_the_interval_of_the_curve():
    """At n = 2 and 4 the curve of a ring and its band are those of the two values there."""
    entry = fit_times(RUNS)["ring"]
    ranks = np.array([1.0, 2.0, 4.0, 64.0])
    middle, low, high = curve_with_band(entry["curve"], ranks)
    values = entry["identifiable"]
    assert middle == pytest.approx(values["T - C"] / ranks + values["C + P"])
    assert ((low < middle) & (middle < high)).all()
    assert high - middle == pytest.approx(middle - low)
    # far out only the constant is left
    far = curve_with_band(entry["curve"], np.array([1e9]))
    assert [far[1][0], far[2][0]] == pytest.approx(entry["intervals"]["C + P"], rel=1e-6)


def test_a_band_that_is_not_known_is_nan():
    entry = fit_times(runs_of("ps", PAPER_PS, (2, 3, 4)))["ps"]
    middle, low, high = curve_with_band(entry["curve"], np.array([2.0]))
    assert middle == pytest.approx([2426.9])
    assert np.isnan([low, high]).all()


def test_values_are_shown_short_and_with_half_their_interval():
    assert [_short(value) for value in (0, 0.012345, 1.5, 12.34, 4223.8, -3.81)] == [
        *("0", "0.0123", "1.50", "12.3", "4,224", "−3.81")
    ]
    shown = _values(fit_times(runs_of("ring", PAPER_RING))["ring"])
    assert shown.startswith("T − C = 4,340 ± ")
    assert "C + P = 423 ± " in shown
    shown = _values(fit_times(runs_of("ps", PAPER_PS, (2, 4)))["ps"])
    assert shown == "t(2) = 2,427 s\nt(4) = 1,395 s"


def test_ticks_that_are_too_close_are_left_out():
    assert numbers_apart([1, 2, 3, 4, 8, 16], 2) == [2, 4, 8, 16]
    assert numbers_apart([1], 1) == [1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model.pop("ps"), "not fitted to these times, which have ps, ring"),
        (lambda model: model["ring"].pop("curve"), "ring has no 'curve'; fit it again"),
        (lambda model: model["ps"].update(ranks=[2, 3]), r"on \[2, 3\] ranks, not \[2, 4\]"),
        (lambda model: model.update(ring=7), "ring has no 'T'"),
    ],
)
def test_a_model_of_other_runs_is_refused(tmp_path, change, message):
    model, path = fit_times(RUNS), tmp_path / "model.json"
    path.write_text(json.dumps(model))
    assert read_model(path, RUNS) == model
    change(model)
    path.write_text(json.dumps(model))
    with pytest.raises(InputError, match=message):
        read_model(path, RUNS)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_changed_model_is_refused_or_drawn(tmp_path):
    model, path = fit_times(RUNS), tmp_path / "model.json"
    drawn, refused = 0, []
    some = islice(changes({"ring": model["ring"]}), 0, None, 3)  # each draws
    for number, (change, content) in enumerate(some):
        path.write_text(json.dumps({**content, "ps": model["ps"]}))
        try:
            read = read_model(path, RUNS)
        except InputError as error:
            refused.append((change, str(error)))
        else:
            drawn += 1
            if number % 20 == 0:  # a figure takes a while
                draw_fit(tmp_path / "fit.svg", RUNS, read)
    assert drawn > 30
    assert len(refused) > 100
    assert all("fit it again" in line for _, line in refused)
