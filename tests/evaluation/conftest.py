"""What the commands of this stage share: how they are called and how they refuse."""

from collections.abc import Callable

import numpy as np
import pytest

from actionspan.annotations.tables import write_annotations
from proposals.conftest import write_probabilities
from worlds.command import actionspan
from worlds.features import write_features
from worlds.scored import annotated

VIDEOS = ["train_0", "train_1", "val_0", "val_1", "val_2"]
METHODS = ["difference", "random", "sliding", "tag"]


def make_baseline(folder, method, *more):
    files = f"--annotations {folder}/annotations.json"
    files += f" --out-json {folder}/{method}.json --out-csv {folder}/{method}.csv"
    return actionspan(*f"evaluation baseline --method {method} {files}".split(), *more)


def evaluate(folder, method):
    files = f"--proposals {folder}/{method}.json --annotations {folder}/annotations.json"
    files += f" --out {folder}/evaluation/{method}.json"
    return actionspan(*f"evaluation evaluate {files}".split())


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
    facts = VIDEOS, 20.0 + np.arange(5), [one.subset for one in known]
    motion = rng.uniform(size=(5, 100)).astype(np.float32)
    still = np.zeros((5, 100, 2), np.float32)
    write_features(folder / "features.h5", still, *facts, frame_difference=motion)
    write_probabilities(folder / "probabilities.h5", rng.uniform(size=(5, 100, 3)), *facts)
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
