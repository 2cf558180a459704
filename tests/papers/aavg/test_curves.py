"""Curves, learning rates and traffic of runs: exact numbers, bad files, figures."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan_papers.aavg.readers import read_run_logs
from papers.aavg.runs import T95, WORDS, named, write_log, write_scores
from papers.steps import cells, step_rows


def rows_of(folder, step, *words, logs):
    scores = write_scores(folder, "aavg1-epoch-2", "rgb", [])
    words = [*words, "--logs", *logs, "--scores", scores]
    rows = step_rows(folder, "aavg", step, *words, figure=step != "traffic")
    return [tuple(row.values()) for row in rows] if step != "traffic" else rows


@pytest.fixture
def batch(tmp_path):
    return [
        write_log(tmp_path, "aavg1-epoch-2", "rgb", [0.5, 0.25, 0.5]),
        write_log(tmp_path, "aavg2-epoch-2-seed2", "rgb", [0.5, 0.75, 0.625]),
        write_log(tmp_path, "aavg2-epoch-2", "rgb", [0.25, 0.5, 0.875]),
    ]


def test_curves_are_mean_and_range_of_the_seeds_in_percent(tmp_path, batch):
    assert rows_of(tmp_path, "curves", "--figure", "batch_rgb", logs=batch) == [
        ("constant", "aavg1-epoch-2", "1", "12", "1", "50.0", "50.0", "50.0"),
        ("constant", "aavg1-epoch-2", "2", "24", "1", "25.0", "25.0", "25.0"),
        ("constant", "aavg1-epoch-2", "3", "36", "1", "50.0", "50.0", "50.0"),
        ("adaptive", "aavg2-epoch-2", "1", "12", "2", "37.5", "25.0", "50.0"),
        ("adaptive", "aavg2-epoch-2", "2", "24", "2", "62.5", "50.0", "75.0"),
        ("adaptive", "aavg2-epoch-2", "3", "36", "2", "75.0", "62.5", "87.5"),
    ]
    header, _, one, two = cells(tmp_path / "curves.md")
    assert header[4:] == ["best accuracy", "first best epoch", "at the last"]
    assert one == ["constant", "aavg1-epoch-2", "1", "3", "50.00", "1", "50.00"]
    # best 87.5 and 75: deviation 12.5/√2, half = t·6.25, cut to what a percentage can be
    low = 81.25 - T95 * 6.25
    assert two[4:] == [f"81.25 [{max(low, 0):.2f}, 100.00]", "2.5", "75.00 [0.00, 100.00]"]
    text = (tmp_path / "curves.md").read_text()
    assert "figure 4 of paper 003" in text
    assert WORDS in text


@pytest.mark.parametrize(
    ("name", "stream", "message"),
    [
        ("aavg3-epoch-2", "rgb", "aavg3-epoch-2, rgb: not a run of the figure batch_rgb"),
        ("aavg2-epoch-2", "flow", "aavg2-epoch-2, flow: not a run of the figure batch_rgb"),
        ("aavg1-epoch-4", "rgb", "aavg1-epoch-4 and aavg1-epoch-2 are one curve of batch_rgb"),
    ],
)
def test_runs_of_other_figures_are_named(tmp_path, batch, name, stream, message):
    other = write_log(tmp_path, name, stream, [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match=message):
        rows_of(tmp_path, "curves", "--figure", "batch_rgb", logs=[batch[0], other])


@pytest.mark.parametrize("accuracies", [[0.5, 0.75], [0.25], [0.25, 0.25], [0.5, float("nan")]])
def test_the_figures_have_the_same_bytes_each_time(tmp_path, accuracies):
    logs = [
        write_log(tmp_path, "aavg3-epoch-2", "flow", [0.25] * len(accuracies)),
        write_log(tmp_path, "aavg4-epoch-2", "flow", accuracies),
    ]
    drawn = []
    for _ in range(2):
        rows_of(tmp_path, "curves", "--figure", "transfer_flow", logs=logs)
        drawn.append([(tmp_path / f"curves.{suffix}").read_bytes() for suffix in ("svg", "png")])
    assert drawn[0] == drawn[1]
    svg, png = drawn[0]
    ET.fromstring(svg)
    assert b"<dc:date>" not in svg
    without = bool(np.isnan(accuracies).any())
    assert (b"no validation accuracy in some epoch" in svg) == without
    assert (cells(tmp_path / "curves.md")[3][4] == "no validation clip") == without
    assert png.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("run", "stream", "epochs", "message"),
    [
        ("..", "flow", 3, "its path names no run; the form is results/recognition"),
        ("aavg1-epoch-2", "rgb", 3, "aavg1-epoch-2 is in .* already"),
        ("aavg1-epoch-2-seed2", "rgb", 4, r"seed2/rgb/log.tsv: 4 epochs, .* has 3"),
        ("aavg1-epoch-2-seed2", "rgb", 0, "log.tsv: no epoch"),
    ],
)
def test_logs_of_no_run_of_one_run_and_of_other_lengths_are_named(
    tmp_path, batch, run, stream, epochs, message
):
    other = write_log(tmp_path, run, stream, [0.5] * epochs)
    with pytest.raises(InputError, match=message):
        read_run_logs([batch[0], other])


def test_the_sweep_has_the_best_of_all_epochs_by_the_rate_that_was_logged(tmp_path):
    def log(name, rate, stream="rgb", best=0.5):
        rates = [rate, rate / 10]  # it falls later
        return write_log(tmp_path, name, stream, [best, best - 0.25], learning_rate=rates)

    logs = [
        log("aavg3-epoch-2", 0.0001, best=0.75),
        log("aavg3-epoch-2-lr0.00003", 0.00003),
        log("none-k1-1", 0.0001, best=0.25),
        log("none-k1-1-seed2", 0.0001, best=0.375),
        log("aavg3-epoch-2", 0.0001, "flow", 1.0),
    ]
    assert rows_of(tmp_path, "rates", logs=logs) == [
        ("aavg3", "rgb", "3e-05", "1", "50.0", "50.0", "50.0"),
        ("aavg3", "rgb", "0.0001", "1", "75.0", "75.0", "75.0"),
        ("none", "rgb", "0.0001", "2", "31.25", "25.0", "37.5"),
        ("aavg3", "flow", "0.0001", "1", "100.0", "100.0", "100.0"),
    ]
    table = cells(tmp_path / "rates.md")
    assert table[0][3:] == ["3e-05", "0.0001"]
    assert table[2] == ["aavg3", "RGB", "1", "50.00", "75.00"]
    assert table[3][:4] == ["none", "RGB", "2", ""]
    assert table[3][4].startswith("31.25 [")
    ET.fromstring((tmp_path / "rates.svg").read_bytes())
    with pytest.raises(InputError, match="none-k1-1-lr0.1, rgb: the learning rate 0.0001 a second"):
        rows_of(tmp_path, "rates", logs=[*logs, log("none-k1-1-lr0.1", 0.0001)])


def test_traffic_is_the_mean_of_epochs_and_seeds(tmp_path):
    def log(run, stream, sent, averages, exchanged, seconds=(10.0, 10.0)):
        columns = {"sent_bytes": sent, "averages": averages, "seconds": seconds}
        columns["communication_seconds"] = exchanged
        return write_log(tmp_path, run, stream, [0.5, 0.5], **columns)

    sent = [2_000_000, 4_000_000], [3, 6]
    seeds = zip(named("aavg1-k4-2", 2), ([0.0, 0.4], [0.4, 0.8]), strict=True)
    logs = [log(name, "rgb", *sent, exchanged, (10.0, 30.0)) for name, exchanged in seeds]
    unsent = [0, 0], [0, 0]
    logs.append(log("periodic-epoch-2", "flow", *unsent, [0.1, 0.1]))
    logs += [log(name, "flow", *unsent, [0.0, 0.0]) for name in ("aavg4-epoch-2", "none-k1-1")]
    mine, periodic, in_process, alone = rows_of(tmp_path, "traffic", logs=logs)
    assert list(mine.items())[:4] == [
        *(("run", "aavg1-k4-2"), ("stream", "rgb"), ("learners", "2"), ("seeds", "2")),
    ]
    assert list(mine.items())[4:9] == [
        ("averages_per_epoch", "3.00"),
        ("sent_mb_per_epoch", "2.000"),
        ("seconds_per_epoch", "20.00"),
        ("communication_seconds_per_epoch", "0.400"),
        ("communication_percent", "2.00"),  # 1 % and 3 %
    ]
    assert mine["communication_percent_low"] == "0.00"  # no share is below 0
    assert mine["communication_percent_high"] == f"{2 + T95:.2f}"
    assert (periodic["sent_mb_per_epoch"], periodic["communication_percent_low"]) == ("", "")
    assert periodic["communication_percent"] == "1.00"
    assert set(list(in_process.values())[7:]) == {""}
    assert alone["communication_percent"] == "0.00"
    assert (alone["communication_seconds_per_epoch"], alone["sent_mb_per_epoch"]) == ("0.000",) * 2
    table = cells(tmp_path / "traffic.md")
    assert (table[2][-1], table[3][1]) == (f"2.00 [0.00, {2 + T95:.2f}]", "flow")
