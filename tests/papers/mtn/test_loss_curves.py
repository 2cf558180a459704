"""Loss curves: the table over seeds, bad logs, and a figure of the same bytes each time."""

from pathlib import Path

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan_papers.mtn.loss_curves import read_losses
from papers.mtn.runs import write_features, write_log
from papers.steps import cells, step_rows


def run(folder, *logs):
    words = ["--features", write_features(folder, "features of X", "the set Y"), "--logs", *logs]
    return step_rows(folder, "mtn", "loss-curves", *words, figure=True)


@pytest.fixture
def logs(tmp_path):
    losses = {"origin": (3.0, 2.0, 2.25), "mtn-seed2": (2.0, 1.0, 1.5), "mtn": (3.0, 2.0, 1.0)}
    return [write_log(tmp_path, *own) for own in losses.items()]


def test_the_table_holds_mean_and_range_of_the_seeds(tmp_path, logs):
    assert [tuple(row.values()) for row in run(tmp_path, *logs)] == [
        ("origin", "1", "1", "3.0", "3.0", "3.0"),
        ("origin", "2", "1", "2.0", "2.0", "2.0"),
        ("origin", "3", "1", "2.25", "2.25", "2.25"),
        ("mtn", "1", "2", "2.5", "2.0", "3.0"),
        ("mtn", "2", "2", "1.5", "1.0", "2.0"),
        ("mtn", "3", "2", "1.25", "1.0", "1.5"),
    ]
    assert read_losses(logs)["mtn"].tolist() == [[3.0, 2.0, 1.0], [2.0, 1.0, 1.5]]


def test_the_markdown_has_lowest_and_last_losses_with_their_t_interval(tmp_path):
    losses = {"mtn": (3.0, 1.0, 1.5), "mtn-seed2": (2.0, 1.5, 1.7), "mtn-seed3": (2.0, 2.0, 1.9)}
    losses = {"origin": (3.0, 2.0, 2.25), **losses}
    run(tmp_path, *(write_log(tmp_path, *own) for own in losses.items()))
    path = tmp_path / "loss-curves.md"
    text = path.read_text()
    assert "features of X, on the set Y" in text
    assert "the 95 % interval over seeds" in text
    # lowest 1, 1.5 and 1.9, last 1.5, 1.7 and 1.9; t with 2 degrees of freedom is 4.302653
    half = [4.302653 * np.std(of, ddof=1) / 3**0.5 for of in ((1, 1.5, 1.9), (1.5, 1.7, 1.9))]
    lowest = f"1.4667 [{4.4 / 3 - half[0]:.4f}, {4.4 / 3 + half[0]:.4f}]"
    last = f"1.7000 [{1.7 - half[1]:.4f}, {1.7 + half[1]:.4f}]"
    rows = [["origin", "1", "3", "2.0000", "2.2500"], ["mtn", "3", "3", lowest, last]]
    assert cells(path)[2:] == rows


@pytest.mark.parametrize("others", [(), ("origin",)])
def test_logs_without_validation_losses_leave_their_models_out(tmp_path, others):
    paths = [write_log(tmp_path, "mtn", (float("nan"), float("nan")))]
    rows = run(tmp_path, *paths, *(write_log(tmp_path, name, (2.0, 1.0)) for name in others))
    table = cells(tmp_path / "loss-curves.md")
    assert table[2][3:] == ["no validation loss"] * 2
    assert [row[3] for row in table[3:]] == ["1.0000" for _ in others]
    assert [row["validation_loss"] for row in rows if row["model"] == "mtn"] == ["nan", "nan"]
    text = (tmp_path / "loss-curves.svg").read_text()
    assert "no validation loss in some epoch: mtn" in text
    assert text.count("<!-- origin -->") == len(others)


def test_a_log_whose_path_names_no_model_is_named():
    # a path that ends above its third folder
    form = "results/temporal/{model}/{run}/log.tsv"
    with pytest.raises(
        InputError, match=f"^/log.tsv: its path names no method; the form is {form}"
    ):
        read_losses([Path("/log.tsv")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch\tvalidation_loss\n1\tlow\n", "row 2: no number 'validation_loss'"),
        ("epoch\tvalidation_loss\n", "log.tsv: no epoch"),
        (
            "epoch\tvalidation_loss\n1\t2\n2\t1\n",
            "mtn-seed2/.*log.tsv: 2 epochs, .*mtn/.* has 3",
        ),
    ],
)
def test_a_bad_log_and_seeds_of_unequal_length_are_refused(tmp_path, text, message):
    paths = [write_log(tmp_path, name, (3, 2, 1)) for name in ("mtn", "mtn-seed2")]
    paths[1].write_text(text)
    with pytest.raises(InputError, match=message):
        read_losses(paths)
