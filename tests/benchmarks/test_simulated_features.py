"""Simulated features: what is drawn, that it repeats, that training reads it, what is refused."""

import json
from typing import Any

import numpy as np
import pytest

from actionspan.annotations.tables import read_annotations
from actionspan.cli import main
from actionspan.features.store import open_features
from actionspan.storage.writing import open_h5
from simulated_features import Simulated, simulate

REAL: dict[str, Any] = {
    f"v_{number}": {
        "subset": ["training", "training", "validation", "testing"][number % 4],
        "duration": 20.0 + number,
        "annotations": []
        if number % 4 == 3
        else [{"segment": [4.0, 7.0 + number], "label": "run"}],
    }
    for number in range(12)
}


@pytest.fixture
def simulated(tmp_path):
    """Simulate videos from 12; return the folder of the files."""

    def run(name="out", videos=8, channels=5, seed=1):
        source, out = tmp_path / "real.json", tmp_path / name
        source.write_text(json.dumps({"database": REAL}))
        out.mkdir()
        how = Simulated(videos=videos, channels=channels, seed=seed)
        simulate([source], None, out / "features.h5", out / "annotations.json", how)
        return out

    return run


def durations(out):
    return [one.duration_seconds for one in read_annotations(out / "annotations.json")]


def test_the_videos_are_real_ones_under_new_names(simulated):
    out = simulated(videos=12)
    known = read_annotations(out / "annotations.json")
    assert [one.video_id for one in known] == [f"simulated_{n:05d}" for n in range(1, 13)]
    assert sorted(durations(out)) == [20.0 + number for number in range(12)]  # each once
    for one in known:
        entry = REAL[f"v_{one.duration_seconds - 20:.0f}"]
        assert one.subset == entry["subset"]
        segments = [[item.start, item.end] for item in one.instances]
        assert segments == [item["segment"] for item in entry["annotations"]]


def test_features_and_annotations_belong_together_and_say_what_they_are(simulated):
    out = simulated()
    features = open_features(out / "features.h5")
    known = read_annotations(out / "annotations.json")
    assert isinstance(features.array, np.memmap)
    assert features.array.shape == (8, 100, 5)
    assert features.video_id == [one.video_id for one in known]
    assert features.subset == [one.subset for one in known]
    assert features.duration_seconds.tolist() == durations(out)
    with open_h5(out / "features.h5") as file:
        assert file.attrs["simulated"]
    assert json.loads((out / "annotations.json").read_text())["simulated"] is True


def test_the_seed_decides_everything(simulated):
    first, again, other = (simulated(f"{n}", seed=seed) for n, seed in enumerate((1, 1, 2)))
    arrays = [open_features(out / "features.h5").array for out in (first, again, other)]
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert (first / "annotations.json").read_bytes() == (again / "annotations.json").read_bytes()
    assert not np.isin(arrays[0], arrays[2]).any()
    assert durations(first) != durations(other)


def test_real_videos_come_again_where_more_are_asked_for_with_noise_of_their_own(simulated):
    assert len(set(durations(simulated("few", videos=8)))) == 8
    many = simulated("many", videos=40)
    assert len({one.video_id for one in read_annotations(many / "annotations.json")}) == 40
    array = open_features(many / "features.h5").array
    assert len(np.unique(array[:, 0], axis=0)) == 40


@pytest.mark.parametrize("channels", [4, 400])
def test_the_features_tell_of_actions_but_weakly(simulated, channels):
    out = simulated(videos=200, channels=channels)
    array = open_features(out / "features.h5").array
    inside = np.zeros(array.shape[:2], dtype=bool)
    for row, one in enumerate(read_annotations(out / "annotations.json")):
        for item in one.instances:
            begin, end = np.array([item.start, item.end]) / one.duration_seconds * 100
            inside[row, int(begin) + 1 : int(end)] = True
    fit, test = (slice(0, 100), slice(100, 200))
    direction = array[fit][inside[fit]].mean(axis=0) - array[fit][~inside[fit]].mean(axis=0)
    scores = array[test] @ (direction / np.linalg.norm(direction))
    assert abs(array).max() < 10
    apart = scores[inside[test]].mean() - scores[~inside[test]].mean()
    assert 1 < apart / scores[~inside[test]].std() < 2


def test_training_reads_it(simulated, tmp_path):
    out = simulated(videos=12)
    words = ["--features", out / "features.h5", "--annotations", out / "annotations.json"]
    words += ["--epochs", 1, "--hidden", 4, "--out", tmp_path / "mtn"]
    assert main(["temporal", "train", *map(str, words)]) == 0
    assert (tmp_path / "mtn" / "model.safetensors").exists()
