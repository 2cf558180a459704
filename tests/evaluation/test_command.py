"""The commands from files to files, and one line with status 2 for bad input."""

import csv
import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from actionspan.proposals.grouping import group_actionness
from actionspan.storage.writing import read_tsv
from evaluation.conftest import METHODS, VIDEOS, make_baseline
from proposals.oracle import suppress
from worlds.command import actionspan


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


@pytest.fixture
def evaluations(folder):
    return [folder / f"evaluation/{method}.json" for method in METHODS]


def test_baselines_write_both_files_for_the_videos_of_the_subset(folder):
    for method in METHODS:
        results = json.loads((folder / f"{method}.json").read_text())["results"]
        assert list(results) == ["val_0", "val_1", "val_2"]
        rows = list(csv.DictReader((folder / f"{method}.csv").open()))
        assert len(rows) == sum(map(len, results.values()))
        assert float(rows[0]["score"]) == pytest.approx(results["val_0"][0]["score"], rel=1e-5)
        assert [int(row["rank"]) for row in rows[:3]] == [1, 2, 3]


@pytest.mark.parametrize("method", ["difference", "tag"])
def test_baselines_that_group_take_the_soft_nms_of_the_models(folder, method):
    thumos14 = {"low_threshold": 0.5, "slope": 0.3, "epsilon": 0.5, "full_width_seconds": 10.0}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in thumos14.items()]
    files = ("--features", folder / "features.h5", "--probabilities", folder / "probabilities.h5")
    assert make_baseline(folder, method, *files, *flags, "--proposals", 150) == 0
    made = json.loads((folder / f"{method}.json").read_text())["results"]
    for number, name in enumerate(VIDEOS[2:], start=2):
        if method == "tag":
            with h5py.File(folder / "probabilities.h5") as file:
                signal = file["probabilities"][number, :, 1].astype(np.float64)
        else:
            with h5py.File(folder / "features.h5") as file:
                signal = file["frame_difference"][number].astype(np.float64)
            signal = (signal - signal.min()) / (signal.max() - signal.min())
        steps = 0.05 * np.arange(1.0, 20)
        seconds = (20 + number) / 100
        rows = [
            (begin * seconds, end * seconds, signal[begin:end].mean())
            for begin, end in group_actionness(signal, steps, steps).tolist()
        ]
        expected = suppress(rows, 0.5, 0.3, 0.5, 150, 10.0)
        assert len(expected) == 150
        given = [(*row["segment"], row["score"]) for row in made[name]]
        np.testing.assert_allclose(given, expected, rtol=0, atol=1e-9)


def test_evaluate_writes_the_whole_record(folder, evaluations, capsys):
    record = json.loads(evaluations[1].read_text())
    assert record["method"] == "random"
    assert (record["protocol"], record["subset"]) == ("activitynet", "validation")
    assert (record["videos"], record["instances"]) == (2, 2)
    assert record["proposals"] == 200
    assert record["proposals_left_out"] == 100  # those of val_2, which has no instance
    assert record["AR@10"] == record["AR"][9]
    assert record["AN"] == list(range(1, 101))
    assert list(record["recall"])[::9] == ["0.50", "0.95"]
    np.testing.assert_allclose(np.mean(list(record["recall"].values()), axis=0), record["AR"])
    low, high = record["AUC_interval"]
    assert low <= record["AUC"] <= high
    assert score(folder, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert {**printed, "thumos14": record["thumos14"], "detection": record["detection"]} == record
    assert score(folder) == 0
    text = capsys.readouterr().out
    assert "2 videos, 2 instances, 200 proposals" in text
    assert "100 proposals left out" in text
    assert f"{printed['AUC']:.2f}" in text


def summarise(folder, *evaluations):
    outs = ("--out-json", folder / "s.json", "--out-tsv", folder / "s.tsv")
    outs += ("--out-markdown", folder / "s.md")
    return actionspan("evaluation", "summary", "--evaluations", *evaluations, *outs)


def test_summary_keeps_the_order_given(folder, evaluations):
    order = [evaluations[2], evaluations[0], evaluations[1]]
    assert summarise(folder, *order) == 0
    summary = json.loads((folder / "s.json").read_text())
    assert list(summary) == ["sliding", "difference", "random"]
    assert set(summary["random"]) == {
        *("AR@1", "AR@5", "AR@10", "AR@50", "AR@100", "AUC", "AUC_interval"),
        *("mAP@0.50", "average_mAP"),
    }
    for name, path in zip(summary, order, strict=True):
        record = json.loads(path.read_text())
        for key in ("mAP@0.50", "average_mAP"):
            assert summary[name][key] == record["detection"][key]
    rows = read_tsv(folder / "s.tsv")
    assert [row["method"] for row in rows] == list(summary)
    for key in ("AR@100", "mAP@0.50", "average_mAP"):
        assert float(rows[2][key]) == pytest.approx(100 * summary["random"][key], abs=0.005)
    lines = (folder / "s.md").read_text().splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert table[0][:2] == ["method", "AR@1"]
    assert table[0][6:] == ["AUC", "interval", "mAP@0.50", "average mAP"]
    assert {len(cells) for cells in table} == {10}
    bold = {}
    for name, *cells in table[2:]:
        assert cells[5].strip("*") == f"{summary[name]['AUC']:.2f}"
        assert cells[-1].strip("*") == f"{100 * summary[name]['average_mAP']:.2f}"
        bold[name] = cells[5].startswith("**"), cells[-1].startswith("**")
    for place, key in enumerate(("AUC", "average_mAP")):
        assert bold[max(summary, key=lambda name: summary[name][key])][place]


def test_summary_refuses_what_does_not_stand_in_one_table(folder, evaluations, refused):
    assert "method 'random' is in" in refused(summarise(folder, evaluations[1], evaluations[1]))
    line = refused(summarise(folder, folder / "annotations.json"))
    assert "not an evaluation: no 'method'" in line
    record = json.loads(evaluations[0].read_text())
    evaluations[0].write_text(json.dumps({**record, "instances": 7}))
    line = refused(summarise(folder, evaluations[1], evaluations[0]))
    assert "difference.json: instances is 7, but 2 in" in line
    assert not (folder / "s.json").exists()


def test_joined_folds_say_so_and_share_no_table_with_others(folder, capsys, refused):
    assert make_baseline(folder, "random", "--subset", "training") == 0
    files = ["--proposals", folder / "random.json", "--annotations", folder / "annotations.json"]
    for number, words in enumerate([[], ["--folds", 5]]):
        words += ["--subset", "training", "--out", folder / f"{number}.json", *files]
        assert actionspan("evaluation", "evaluate", "--method", f"random {number}", *words) == 0
    plain, joined = (json.loads((folder / f"{number}.json").read_text()) for number in (0, 1))
    assert joined == {**plain, "method": "random 1", "folds": 5}
    assert summarise(folder, folder / "1.json") == 0
    first, *_ = (folder / "s.md").read_text().splitlines()
    assert "subset training: 2 videos, each held out in one of 5 folds, 2 instances" in first
    capsys.readouterr()
    line = refused(summarise(folder, folder / "0.json", folder / "1.json"))
    assert "1.json: folds is 5, but None in" in line


def test_curves_and_timelines_are_drawn_from_the_files(folder, evaluations, capsys):
    table = folder / "recall_curves.tsv"
    figures = [folder / f"recall_curves.{suffix}" for suffix in ("svg", "png")]
    words = ["--evaluations", *evaluations, "--out-table", table, "--out-figures", *figures]
    assert actionspan("evaluation", "curves", *words) == 0
    assert all(figure.stat().st_size > 1000 for figure in figures)
    files = f"--proposals {folder}/random.json --annotations {folder}/annotations.json"
    for video, more in (
        ("val_0", f"--probabilities {folder}/probabilities.h5"),
        ("train_0", ""),  # no proposals of it
        ("x", ""),
    ):
        timeline = f"evaluation timeline --video {video} {files} {more} --out {folder}/{video}.svg"
        assert actionspan(*timeline.split()) == 0
        assert (folder / f"{video}.svg").read_text().startswith("<?xml")
    assert "annotations.json: no video 'x': it was left out" in capsys.readouterr().err


def score(folder, *more):
    files = ("--ground-truth", folder / "annotations.json", "--proposals", folder / "random.json")
    return actionspan("score", "--protocol", "activitynet", *files, *more)


def test_score_names_what_is_wrong_in_one_line(folder, refused):
    line = refused(score(folder, "--subset", "test"))
    subsets = "it has 'training' (2), 'validation' (3)"
    assert f"annotations.json: no video of subset 'test'; {subsets}" in line
    assert "resamples 0: from 1 to 1000000" in refused(score(folder, "--resamples", 0))
    (folder / "random.json").unlink()
    assert "random.json: no such file" in refused(score(folder))


def test_baseline_names_what_is_wrong_in_one_line(folder, refused):
    features, probabilities = folder / "features.h5", folder / "probabilities.h5"
    for method, words, wrong in (
        ("difference", (), "needs --features features.h5"),
        ("tag", (), "needs --probabilities probabilities.h5"),
        ("random", ("--subset", "testing"), "subset 'testing'; it has 'training' (2), "),
        ("sliding", ("--overlap", 1), "overlap 1.0: from 0 to 0.95"),
        ("tag", ("--probabilities", features), "features.h5: no probabilities; `temporal predict`"),
    ):
        assert wrong in refused(make_baseline(folder, method, *words))
    with h5py.File(features, "a") as file:
        del file["frame_difference"]
    line = refused(make_baseline(folder, "difference", "--features", features))
    assert "no 'frame_difference'" in line
    with h5py.File(probabilities, "a") as file:
        file["probabilities"][3, 7, 1] = np.nan
    line = refused(make_baseline(folder, "tag", "--probabilities", probabilities))
    assert "probabilities.h5: val_1: probabilities are not all in 0…1; make the file again" in line


@pytest.mark.parametrize(("method", "name"), [("difference", "features"), ("tag", "probabilities")])
def test_a_video_whose_decoding_broke_off_gets_no_proposals_and_others_theirs(
    folder, capsys, method, name
):
    with h5py.File(folder / f"{name}.h5", "a") as file:
        del file["video_id"]
        file["video_id"] = np.array(["x", *VIDEOS[1:4], "y"], dtype=h5py.string_dtype())
    assert make_baseline(folder, method, f"--{name}", folder / f"{name}.h5") == 0
    assert f"{name}.h5: without features: val_2" in capsys.readouterr().err
    results = json.loads((folder / f"{method}.json").read_text())["results"]
    assert results["val_2"] == []
    assert results["val_1"]
