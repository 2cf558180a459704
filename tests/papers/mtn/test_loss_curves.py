"""Loss curves: the table over seeds, bad logs, and a figure of the same bytes each time."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv, write_tsv
from actionspan_papers.mtn.loss_curves import read_losses
from papers.mtn.features import write_features
from papers.steps import cells, outputs, run_step


def log(folder, name, losses):
    path = folder / "temporal" / name / "none-1" / "log.tsv"
    path.parent.mkdir(parents=True)
    rows = [(epoch, loss + 1, loss) for epoch, loss in enumerate(losses, start=1)]
    write_tsv(path, ("epoch", "training_loss", "validation_loss"), rows)
    return path


def run(folder, *logs):
    words = ["--features", write_features(folder, "features of X", "the set Y")]
    words += outputs(folder, "loss_curves", figure=True)
    run_step("mtn", "loss-curves", *words, "--logs", *logs)


@pytest.fixture
def logs(tmp_path):
    return [
        log(tmp_path, "origin", (3.0, 2.0, 2.25)),
        log(tmp_path, "mtn-seed2", (2.0, 1.0, 1.5)),
        log(tmp_path, "mtn", (3.0, 2.0, 1.0)),
    ]


def test_the_table_holds_mean_and_range_of_the_seeds(tmp_path, logs):
    path = tmp_path / "loss_curves.tsv"
    run(tmp_path, *logs)
    rows = [tuple(row.values()) for row in read_tsv(path)]
    assert rows == [
        ("origin", "1", "1", "3.0", "3.0", "3.0"),
        ("origin", "2", "1", "2.0", "2.0", "2.0"),
        ("origin", "3", "1", "2.25", "2.25", "2.25"),
        ("mtn", "1", "2", "2.5", "2.0", "3.0"),
        ("mtn", "2", "2", "1.5", "1.0", "2.0"),
        ("mtn", "3", "2", "1.25", "1.0", "1.5"),
    ]


def test_the_markdown_has_lowest_and_last_losses_with_their_t_interval(tmp_path):
    losses = {"mtn": (3.0, 1.0, 1.5), "mtn-seed2": (2.0, 1.5, 1.7), "mtn-seed3": (2.0, 2.0, 1.9)}
    paths = [log(tmp_path, name, values) for name, values in losses.items()]
    run(tmp_path, log(tmp_path, "origin", (3.0, 2.0, 2.25)), *paths)
    path = tmp_path / "loss_curves.md"
    text = path.read_text()
    assert "features of X, on the set Y" in text
    assert "the 95 % interval over seeds" in text
    # lowest 1, 1.5 and 1.9, last 1.5, 1.7 and 1.9; t with 2 degrees of freedom is 4.302653
    half = [4.302653 * np.std(of, ddof=1) / 3**0.5 for of in ((1, 1.5, 1.9), (1.5, 1.7, 1.9))]
    assert cells(path)[2:] == [
        ["origin", "1", "3", "2.0000", "2.2500"],
        [
            *("mtn", "3", "3"),
            f"1.4667 [{4.4 / 3 - half[0]:.4f}, {4.4 / 3 + half[0]:.4f}]",
            f"1.7000 [{1.7 - half[1]:.4f}, {1.7 + half[1]:.4f}]",
        ],
    ]


@pytest.mark.parametrize("others", [(), ("origin",)])
def test_logs_without_validation_losses_leave_their_models_out(tmp_path, others):
    paths = [log(tmp_path, "mtn", (float("nan"), float("nan")))]
    paths += [log(tmp_path, name, (2.0, 1.0)) for name in others]
    run(tmp_path, *paths)
    table = cells(tmp_path / "loss_curves.md")
    assert table[2][3:] == ["no validation loss"] * 2
    assert [row[3] for row in table[3:]] == ["1.0000" for _ in others]
    rows = read_tsv(tmp_path / "loss_curves.tsv")
    assert [row["validation_loss"] for row in rows if row["model"] == "mtn"] == ["nan", "nan"]
    text = (tmp_path / "loss_curves.svg").read_text()
    assert "no validation loss in some epoch: mtn" in text
    assert text.count("<!-- origin -->") == len(others)


def test_a_log_whose_path_names_no_model_is_named(tmp_path):
    # a path that ends above its third folder, whatever the folder of this test
    with pytest.raises(InputError) as error:
        run(tmp_path, "/log.tsv")
    assert str(error.value) == (
        "/log.tsv: its path names no method; the form is results/temporal/{model}/{run}/log.tsv"
    )
    with pytest.raises(InputError, match="/tmp/log.tsv: its path names no method"):
        read_losses([Path("/tmp/log.tsv")])


def test_seeds_are_in_order(logs):
    assert read_losses(logs)["mtn"].tolist() == [[3.0, 2.0, 1.0], [2.0, 1.0, 1.5]]


def test_seeds_of_unequal_length_are_refused(tmp_path):
    paths = [log(tmp_path, "mtn", (1, 2)), log(tmp_path, "mtn-seed2", (1, 2, 3))]
    with pytest.raises(InputError, match=r"mtn-seed2/.*log.tsv: 3 epochs, .*mtn/.* has 2"):
        read_losses(paths)


@pytest.mark.parametrize(
    ("text", "message"),
    [
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


def test_the_figures_have_the_same_bytes_each_time(tmp_path, logs):
    drawn = []
    for _ in range(2):
        run(tmp_path, *logs)
        drawn.append([(tmp_path / f"loss_curves.{name}").read_bytes() for name in ("svg", "png")])
    assert drawn[0] == drawn[1]
    assert b"<dc:date>" not in drawn[0][0]
    assert drawn[0][0].startswith(b"<?xml")
    assert drawn[0][1].startswith(b"\x89PNG")


@pytest.mark.parametrize("losses", [(2.0,), (2.0, 2.0)])
def test_one_epoch_and_level_curves_have_a_figure(tmp_path, losses):
    run(tmp_path, log(tmp_path, "mtn", losses))
    ET.parse(tmp_path / "loss_curves.svg")
