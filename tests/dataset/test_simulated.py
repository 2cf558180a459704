"""Simulated features: what is drawn, that it repeats, that training reads it, what is refused."""

import json
import shutil
from collections import Counter, namedtuple
from typing import Any

import h5py
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.dataset.tables import read_annotations
from actionspan.features.store import open_features
from actionspan.files.storage import open_h5

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
def simulate(tmp_path):
    """Run the command on 12 videos; return its exit status and the folder of its files."""

    def run(name="out", videos=8, channels=5, seed=1, real=REAL):
        source, out = tmp_path / "real.json", tmp_path / name
        source.write_text(json.dumps({"database": real}))
        words = ["--annotations", source, "--videos", videos, "--channels", channels]
        words += ["--seed", seed, "--out-features", out / "features.h5"]
        words += ["--out-annotations", out / "annotations.json"]
        return main(["dataset", "simulate", *map(str, words)]), out

    return run


def durations(out):
    return [one.duration_seconds for one in read_annotations(out / "annotations.json")]


def test_the_videos_are_real_ones_under_new_names(simulate):
    status, out = simulate(videos=12)
    assert status == 0
    known = read_annotations(out / "annotations.json")
    assert [one.video_id for one in known] == [f"simulated_{n:05d}" for n in range(1, 13)]
    assert sorted(durations(out)) == [20.0 + number for number in range(12)]  # each once
    for one in known:
        entry = REAL[f"v_{one.duration_seconds - 20:.0f}"]
        assert one.subset == entry["subset"]
        segments = [[item.start, item.end] for item in one.instances]
        assert segments == [item["segment"] for item in entry["annotations"]]


def test_videos_come_again_only_when_more_are_asked_for_than_there_are(simulate):
    _, few = simulate("few", videos=8)
    _, many = simulate("many", videos=40)
    assert len(set(durations(few))) == 8
    assert len(durations(many)) == 40
    assert len({one.video_id for one in read_annotations(many / "annotations.json")}) == 40


def test_features_and_annotations_belong_together_and_say_what_they_are(simulate):
    _, out = simulate()
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


def test_the_seed_decides_everything(simulate):
    first, again, other = (simulate(f"{n}", seed=seed)[1] for n, seed in enumerate((1, 1, 2)))
    arrays = [open_features(out / "features.h5").array for out in (first, again, other)]
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert (first / "annotations.json").read_bytes() == (again / "annotations.json").read_bytes()
    assert not np.isin(arrays[0], arrays[2]).any()
    assert durations(first) != durations(other)


def test_no_two_videos_have_the_same_noise(simulate):
    _, out = simulate(videos=40)  # some of them the same real video
    array = open_features(out / "features.h5").array
    assert len(np.unique(array[:, 0], axis=0)) == 40


@pytest.mark.parametrize("channels", [4, 400])
def test_the_features_tell_of_actions_but_weakly(simulate, channels):
    _, out = simulate(videos=200, channels=channels)
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


def test_training_reads_it(simulate, tmp_path):
    _, out = simulate(videos=12)
    words = ["--features", out / "features.h5", "--annotations", out / "annotations.json"]
    words += ["--epochs", 1, "--hidden", 4, "--out", tmp_path / "mtn"]
    assert main(["temporal", "train", *map(str, words)]) == 0
    assert (tmp_path / "mtn" / "model.pt").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"videos": 0}, "videos 0: at least 1"),
        ({"channels": -3}, "channels -3: at least 1"),
        ({"seed": -1}, "seed -1: at least 0"),
        (
            {"real": {"v": {"subset": "training", "duration": 9, "annotations": []}}},
            "real.json: no segment in 1 video to draw from",
        ),
    ],
)
def test_bad_input_is_one_line(simulate, capsys, options, message):
    status, out = simulate(**options)
    error = capsys.readouterr().err
    assert status == 2
    assert error.startswith("actionspan dataset: ")
    assert error.endswith(message + "\n")
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_missing_file_is_one_line(tmp_path, capsys):
    words = ["--annotations", "none.json", "--out-features", str(tmp_path / "f.h5")]
    assert main(["dataset", "simulate", *words, "--out-annotations", str(tmp_path / "a")]) == 2
    error = capsys.readouterr().err
    assert error == "actionspan dataset: none.json: cannot be read: No such file or directory\n"


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(simulate, capsys, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 10**12, 10**9))
    status, out = simulate(videos=20000, channels=400)
    error = capsys.readouterr().err
    assert status == 2
    assert "features.h5: 3.22 GB are needed, 1.00 GB are free in" in error
    assert error.count("\n") == 1
    assert not out.exists()
    assert simulate(videos=20, channels=400)[0] == 0


def test_what_is_not_usable_is_counted(simulate, capsys):
    bad = {"subset": "training", "duration": 9, "annotations": [{"segment": [5, 2], "label": "a"}]}
    assert simulate(real=REAL | {"bad": bad})[0] == 0
    line = capsys.readouterr().err.splitlines()[0]
    assert line.startswith("left out: 2 entries of the annotations, the first: ")
    assert "start 5 is not before end 2" in line


def test_an_interrupted_run_leaves_nothing(simulate, monkeypatch):
    monkeypatch.setattr("actionspan.dataset.simulate.simulate_features", interrupt)
    status, out = simulate()
    assert status == 130
    assert list(out.iterdir()) == []


def interrupt(*_):
    raise KeyboardInterrupt


def test_real_annotations_keep_their_subsets(shared_data, tmp_path):
    folder = shared_data / "activitynet"
    words = ["--annotations", folder / "anet_anno_action.json"]
    words += ["--video-info", folder / "video_info_new.csv", "--videos", 2000, "--channels", 2]
    words += ["--out-features", tmp_path / "f.h5", "--out-annotations", tmp_path / "a.json"]
    assert main(["dataset", "simulate", *map(str, words)]) == 0
    known = read_annotations(tmp_path / "a.json")
    counts = Counter(one.subset for one in known)
    assert 900 < counts["training"] < 1100  # 9,649 of 19,228
    assert 400 < counts["validation"] < 600
    assert all(one.instances for one in known if one.subset == "validation")
    with h5py.File(tmp_path / "f.h5") as file:
        assert np.isfinite(file["features"][:]).all()
