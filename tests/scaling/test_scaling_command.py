"""`actionspan scaling` and `actionspan fit-timing`: from files to files and to the terminal."""

import json

import pytest

from actionspan.storage.writing import read_tsv, write_tsv
from scaling.oracle import PAPER_PS, PAPER_RING, runs_of, single_runs
from worlds.command import actionspan


def write_runs(path, runs):
    columns = ("exchange", "ranks", "seconds")
    write_tsv(path, columns, [(run.exchange, run.ranks, run.seconds) for run in runs])
    return path


@pytest.fixture
def paper_table(tmp_path):
    """Run times made from the papers' parameters."""
    runs = runs_of("ps", PAPER_PS) + runs_of("ring", PAPER_RING)
    return write_runs(tmp_path / "paper.tsv", runs)


@pytest.fixture
def timings(tmp_path):
    """timing.json of 2 repeats of 4 runs."""
    paths = []
    for exchange, ranks in (("none", 1), ("ring", 2), ("ring", 4), ("ps", 2)):
        for repeat in (1, 2):
            parts = [80 / ranks + repeat, 4.0 * (ranks > 1), 3.0]
            timing = {"exchange": exchange, "ranks": ranks, "epochs": 3, "epochs_here": 3}
            timing |= {f"t{i}_seconds": part for i, part in enumerate(parts, 1)}
            timing |= {"seconds": sum(parts), "per_rank": []}
            paths.append(tmp_path / f"{exchange}-{ranks}-{repeat}" / "timing.json")
            paths[-1].parent.mkdir()
            paths[-1].write_text(json.dumps(timing))
    return paths


def test_fit_timing_in_words(paper_table, capsys):
    assert actionspan("fit-timing", paper_table) == 0
    text = capsys.readouterr().out
    assert "ps: t = T/n + C*n + P\n" in text
    assert "rank 3 of 3" in text
    assert "rank 2 of 3, condition number infinite" in text
    for value in ("4,223.8000 s", "12.1000 s", "290.8000 s", "4,340.5000 s", "423.1000 s"):
        assert value in text
    assert text.count("not determined\n") == 3
    assert "faster than ring up to 11 ranks, beyond the measured ranks" in text
    assert max(map(len, text.splitlines())) <= 110


def test_fit_timing_in_words_with_single_rank_runs_and_with_too_few(tmp_path, timings, capsys):
    times = tmp_path / "times.tsv"
    assert actionspan("scaling", "times", "--timings", *timings, "--out", times) == 0
    assert actionspan("fit-timing", times) == 0
    text = capsys.readouterr().out
    assert "ps: t = T/n + C*n + P\n  2 runs on 2 ranks and 2 on one; fitted: C, P" in text
    one = write_runs(tmp_path / "one.tsv", runs_of("ring", PAPER_RING, (3,)))
    assert actionspan("fit-timing", one) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "r2 - " in text
    assert "t(3) 1,869.9333 s" in text
    assert "Not determined: T and C and P" in text


def test_the_whole_stage(tmp_path, timings, capsys):
    times, model = tmp_path / "scaling/times.tsv", tmp_path / "scaling/timing_model.json"
    assert actionspan("scaling", "times", "--timings", *timings, "--out", times) == 0
    rows = read_tsv(times)
    assert list(rows[0]) == ["exchange", "ranks", "repeat", "seconds", "t1", "t2", "t3"]
    assert [row["repeat"] for row in rows] == ["1", "2"] * 4
    assert actionspan("scaling", "fit", "--times", times, "--out", model) == 0
    fitted = json.loads(model.read_text())
    assert list(fitted) == ["ps", "ring"]
    assert fitted["ring"]["T"] == 81.5
    assert fitted["ring"]["measured"]["t2"] == {"2": 4.0, "4": 4.0}
    assert actionspan("fit-timing", times, "--json") == 0
    assert json.loads(capsys.readouterr().out) == fitted
    speedup, fit = tmp_path / "speedup.svg", tmp_path / "fit.svg"
    assert actionspan("scaling", "plot-speedup", "--times", times, "--out", speedup) == 0
    assert actionspan("scaling", "plot-fit", "--times", times, "--model", model, "--out", fit) == 0
    assert speedup.stat().st_size > 1000
    assert fit.stat().st_size > 1000


def test_bad_input_is_one_line_and_status_2(tmp_path, paper_table, timings, capsys):
    alone = write_runs(tmp_path / "alone.tsv", single_runs(10, 1))
    model, out = tmp_path / "model.json", tmp_path / "out.svg"
    assert actionspan("scaling", "fit", "--times", paper_table, "--out", model) == 0
    interrupted = timings[0]
    interrupted.write_text(interrupted.read_text().replace('"epochs_here": 3', '"epochs_here": 1'))
    plot = ("scaling", "plot-fit", "--times")
    cases = [
        (("fit-timing", alone), "only single-rank runs"),
        (("scaling", "fit", "--times", alone, "--out", out), "only single-rank runs"),
        (("scaling", "plot-speedup", "--times", alone, "--out", out), "only single-rank runs"),
        (("scaling", "plot-speedup", "--times", paper_table, "--out", out), "no row of exchange"),
        (("scaling", "times", "--timings", *timings, "--out", out), "only 1 of 3 epochs"),
        ((*plot, alone, "--model", model, "--out", out), "not fitted to these times"),
        (
            (*plot, paper_table, "--model", model, "--out", tmp_path / "fit.pdf"),
            "figures are written as .svg, .png, .jpg",
        ),
    ]
    for words, message in cases:
        assert actionspan(*words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not out.exists()
