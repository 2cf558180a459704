"""Loss curves: the table over seeds, bad logs, and a figure of the same bytes each time."""

import xml.etree.ElementTree as ET

import pytest

from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.evaluation.loss_curves import (
    draw_loss_curves,
    read_loss_curves,
    read_losses,
    write_loss_curves,
)
from actionspan.storage import read_tsv, write_tsv


def log(folder, name, losses):
    path = folder / "temporal" / name / "none-1" / "log.tsv"
    path.parent.mkdir(parents=True)
    rows = [(epoch, loss + 1, loss) for epoch, loss in enumerate(losses, start=1)]
    write_tsv(path, ("epoch", "training_loss", "validation_loss"), rows)
    return path


@pytest.fixture
def logs(tmp_path):
    return [
        log(tmp_path, "origin", (3.0, 2.0, 2.25)),
        log(tmp_path, "mtn-seed2", (2.0, 1.0, 1.5)),
        log(tmp_path, "mtn", (3.0, 2.0, 1.0)),
    ]


def test_the_table_holds_mean_and_range_of_the_seeds(tmp_path, logs):
    path = tmp_path / "loss_curves.tsv"
    words = ["--out-table", str(path), "--logs", *map(str, logs)]
    assert main(["evaluation", "loss-curves", *words]) == 0
    rows = [tuple(row.values()) for row in read_tsv(path)]
    assert rows == [
        ("origin", "1", "1", "3.0", "3.0", "3.0"),
        ("origin", "2", "1", "2.0", "2.0", "2.0"),
        ("origin", "3", "1", "2.25", "2.25", "2.25"),
        ("mtn", "1", "2", "2.5", "2.0", "3.0"),
        ("mtn", "2", "2", "1.5", "1.0", "2.0"),
        ("mtn", "3", "2", "1.25", "1.0", "1.5"),
    ]
    epochs, mean, low, high = read_loss_curves(path)["mtn"]
    assert epochs.tolist() == [1, 2, 3]
    assert (low <= mean).all()
    assert (mean <= high).all()


def test_seeds_are_in_order(logs):
    assert read_losses(logs)["mtn"].tolist() == [[3.0, 2.0, 1.0], [2.0, 1.0, 1.5]]


def test_seeds_of_unequal_length_are_refused(tmp_path):
    paths = [log(tmp_path, "mtn", (1, 2)), log(tmp_path, "mtn-seed2", (1, 2, 3))]
    with pytest.raises(InputError, match=r"mtn-seed2/.*log.tsv: 3 epochs, .*mtn/.* has 2"):
        read_losses(paths)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch\tvalidation_loss\n1\tnan\n", "row 2: validation_loss is nan; validation videos"),
        ("epoch\tvalidation_loss\n1\tlow\n", "row 2: no number 'validation_loss'"),
        ("epoch\tloss\n1\t2\n", "row 2: no number 'validation_loss'"),
        ("epoch\tvalidation_loss\n", "log.tsv: no epoch"),
    ],
)
def test_a_bad_log_is_named(tmp_path, text, message):
    path = log(tmp_path, "mtn", ())
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_losses([path])


@pytest.mark.parametrize(
    ("text", "message"),
    [("model\tepoch\nmtn\t1\n", "row 2: not a row of model, epoch"), ("model\n", "no row")],
)
def test_a_bad_table_is_named(tmp_path, text, message):
    path = tmp_path / "loss_curves.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_loss_curves(path)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_figure_has_the_same_bytes_each_time(tmp_path, logs, suffix):
    table = tmp_path / "loss_curves.tsv"
    write_loss_curves(table, read_losses(logs))
    first, second = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    for path in (first, second):
        assert main(["evaluation", "plot-loss", "--table", str(table), "--out", str(path)]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert b"<dc:date>" not in first.read_bytes()


@pytest.mark.parametrize("losses", [(2.0,), (2.0, 2.0)])
def test_one_epoch_and_level_curves_have_a_figure(tmp_path, losses):
    table = tmp_path / "loss_curves.tsv"
    write_loss_curves(table, read_losses([log(tmp_path, "mtn", losses)]))
    draw_loss_curves(tmp_path / "loss.svg", read_loss_curves(table))
    ET.parse(tmp_path / "loss.svg")
