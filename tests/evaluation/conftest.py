"""What the commands of this stage share: how they are called and how they refuse."""

from collections.abc import Callable

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import write_annotations
from actionspan.cli import main
from worlds.scored import annotated

VIDEOS = ["train_0", "train_1", "val_0", "val_1", "val_2"]
METHODS = ["difference", "random", "sliding", "tag"]


def run(*words: object) -> int:
    """Call `actionspan` with these words and return its status."""
    return main([str(word) for word in words])


def make_baseline(folder, method, *more):
    return run(
        *("evaluation", "baseline", "--method", method),
        *("--annotations", folder / "annotations.json"),
        *("--out-json", folder / f"{method}.json", "--out-csv", folder / f"{method}.csv", *more),
    )


def evaluate(folder, method):
    return run(
        *("evaluation", "evaluate", "--proposals", folder / f"{method}.json"),
        *("--annotations", folder / "annotations.json"),
        *("--out", folder / f"evaluation/{method}.json"),
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A small data set, its baselines and their evaluations."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    known = [
        annotated(
            name,
            *([] if name == "val_2" else [(2, 6 + number)]),  # without an instance
            subset="training" if name.startswith("train") else "validation",
            duration=20 + number,
        )
        for number, name in enumerate(VIDEOS)
    ]
    write_annotations(folder / "annotations.json", known)
    for file_name, key, values in (
        ("features.h5", "frame_difference", rng.uniform(size=(5, 100))),
        ("probabilities.h5", "probabilities", rng.uniform(size=(5, 100, 3))),
    ):
        with h5py.File(folder / file_name, "w") as file:
            file[key] = values.astype(np.float32)
            file["video_id"] = np.array(VIDEOS, dtype=h5py.string_dtype())
            file["duration_seconds"] = 20.0 + np.arange(5)
            file["subset"] = np.array([one.subset for one in known], dtype=h5py.string_dtype())
            if file_name == "features.h5":
                file["features"] = np.zeros((5, 100, 2), np.float32)
    assert make_baseline(folder, "random", "--features") == 0  # as the workflow writes no file
    assert make_baseline(folder, "sliding") == 0
    assert make_baseline(folder, "difference", "--features", folder / "features.h5") == 0
    probabilities = ("--features", "--probabilities", folder / "probabilities.h5")
    assert make_baseline(folder, "tag", *probabilities) == 0
    assert [evaluate(folder, method) for method in METHODS] == [0, 0, 0, 0]
    return folder


@pytest.fixture
def refused(capsys) -> Callable[[int], str]:
    """Return a function that asserts status 2 and one line on standard error; it returns it."""

    def line_of(status: int) -> str:
        printed = capsys.readouterr()
        assert status == 2
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        return printed.err

    return line_of
