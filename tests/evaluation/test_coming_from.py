"""Files of OpenTAD, ActionFormer and MMAction2: read as they are, scored as there."""

import json
import pickle
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml
from snakemake.utils import update_config

from actionspan.cli import main
from actionspan.evaluation.files import read_labelled_truth
from actionspan.evaluation.recall import DETECTION_THRESHOLDS
from actionspan.proposals.segments import write_proposals
from actionspan.workflow.checking import check_config
from actionspan.workflow.sections import defaults
from evaluation.oracle import literal_auc, literal_average_precision, literal_recall

DOCS = Path(__file__).parents[2] / "docs" / "coming_from.md"
CLASSES = ("BaseballPitch", "Billiards", "Diving")
FPS, SECONDS, WIDTH = 30.0, 100.0, 12


def by_class(table: Mapping[str, Any], label: str) -> dict[str, list[Any]]:
    return {video: [row[:-1] for row in rows if row[-1] == label] for video, rows in table.items()}


def literal_map(truth: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean over classes of average precision, as the public evaluation defines it."""
    labels = sorted({row[-1] for rows in truth.values() for row in rows})
    found = {}
    for threshold in DETECTION_THRESHOLDS:
        each = [
            literal_average_precision(by_class(truth, one), by_class(results, one), threshold)
            for one in labels
        ]
        found[f"mAP@{threshold:.2f}"] = sum(each) / len(each)
    return found


@pytest.fixture
def thumos(tmp_path, rng):
    """ActionFormer's and OpenTAD's files of a small THUMOS14: annotations, features, results."""
    database, results = {}, {}
    for number in range(8):
        subset = ("validation", "test")[number // 4]
        name = f"video_{subset}_{number:07d}"
        annotations = []
        for _ in range(4):
            start, label = round(rng.uniform(0, 80), 1), int(rng.integers(3))
            segment = [start, round(start + rng.uniform(2, 8), 1)]
            frames = [time * FPS for time in segment]
            one = {"label": CLASSES[label], "segment": segment, "segment(frames)": frames}
            annotations.append({**one, "label_id": label})
        facts = {"subset": subset.capitalize(), "duration": SECONDS, "fps": FPS}
        database[name] = {**facts, "annotations": annotations}
        rows = rng.normal(size=(int((FPS * SECONDS - 16) / 4) + 1, WIDTH)).astype(np.float32)
        np.save(tmp_path / f"{name}.npy", rows)
        if subset == "test":
            results[name] = [
                (*np.sort(np.float32(segment) + rng.normal(0, 1, 2)), score, CLASSES[label])
                for segment, score, label in zip(
                    [one["segment"] for one in annotations] * 10,
                    rng.permutation(40) / 40 + number / 1000,
                    [one["label_id"] for one in annotations] * 5 + [0, 1, 2, 1] * 5,
                    strict=True,
                )
            ]
    (tmp_path / "thumos14.json").write_text(json.dumps({"database": database}))
    return tmp_path, {
        name: [(*map(float, row[:3]), row[3]) for row in rows] for name, rows in results.items()
    }


def score(capsys: Any, *words: object) -> dict[str, Any]:
    assert main(["score", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def check(record: Mapping[str, Any], expected: Mapping[str, float]) -> None:
    for name, value in expected.items():
        assert record[name] == pytest.approx(value, abs=1e-6), name


def test_opentads_results_have_the_map_of_the_public_evaluation(thumos, capsys):
    folder, results = thumos
    rows = {
        name: [{"segment": [a, b], "label": label, "score": s} for a, b, s, label in each]
        for name, each in results.items()
    }
    (folder / "result_detection.json").write_text(json.dumps({"results": rows}))
    (command,) = re.findall(r"`actionspan (score .*result_detection.json)`", DOCS.read_text())
    words = [str(folder / one) if one.endswith(".json") else one for one in shlex.split(command)]
    record = score(capsys, *words[1:])
    expected = literal_map(read_labelled_truth(folder / "thumos14.json", "test"), results)
    check(record, expected)
    assert 0.02 < expected["mAP@0.95"] + 0.1 < expected["mAP@0.30"] < 1


def test_actionformers_pickle_is_refused_and_the_printed_command_converts_it(thumos, capsys):
    folder, results = thumos
    flat = [(name, *row) for name, rows in results.items() for row in rows]
    columns = zip(*flat, strict=True)
    content = dict(zip(("video-id", "t-start", "t-end", "score", "label"), columns, strict=True))
    arrays = {key: np.array(content[key], np.float32) for key in ("t-start", "t-end", "score")}
    labels = np.array([CLASSES.index(label) for label in content["label"]])
    content = {"video-id": list(content["video-id"]), "label": labels, **arrays}
    (folder / "eval_results.pkl").write_bytes(pickle.dumps(content))
    truth, given = folder / "thumos14.json", folder / "eval_results.pkl"
    words = ["--protocol", "detection_by_class", "--ground-truth", str(truth), "--subset", "test"]
    assert main(["score", *words, "--proposals", str(given)]) == 2
    line = capsys.readouterr().err
    assert "eval_results.pkl: a pickle can run any code, so it is not read" in line
    (command,) = re.findall(r'python -c ".*"', line)
    subprocess.run(["bash", "-c", command], check=True)
    record = score(capsys, *words, "--proposals", given.with_suffix(".json"))
    rounded = {
        name: [(*map(float, np.float32(row[:3])), row[3]) for row in rows]
        for name, rows in results.items()
    }
    check(record, literal_map(read_labelled_truth(truth, "test"), rounded))


def test_their_features_are_where_they_were_computed(thumos):
    folder, _ = thumos
    text = DOCS.read_text()
    (sed,) = re.findall(r"^sed 's/\"subset.*?mine\.json$", text, re.S | re.M)
    subprocess.run(["bash", "-c", sed], cwd=folder, check=True)
    assert main(["dataset", "index", "--annotations", str(folder / "mine.json"), "--out",
                 str(folder)]) == 0  # fmt: skip
    tables = (folder / "videos.tsv").read_text()
    assert tables.count("\ttraining\n") == tables.count("\tvalidation\n") == 4
    (block,) = re.findall(r"^```yaml\n(.*?)^```", text, re.S | re.M)
    config = yaml.safe_load(block)
    merged = defaults()
    update_config(merged, config)
    check_config(merged, "docs")
    how = config["features"]["external"]
    words = ["--folder", folder, "--videos", folder / "videos.tsv", "--out", folder / "all.h5"]
    words += ["--stride", how["stride"], "--offset", how["offset"]]
    assert main(["features", "external", *map(str, words)]) == 0
    name = "video_test_0000005"
    with h5py.File(folder / "all.h5") as file:
        times, values = file[name]["time"][:], file[name]["external"][:]
    np.testing.assert_array_equal(values, np.load(folder / f"{name}.npy"))
    # the middle of 16 frames, which begin at every fourth
    np.testing.assert_allclose(times, (4 * np.arange(len(values)) + 8) / FPS)


def test_mmaction2s_dump_has_the_recall_of_the_public_evaluation(tmp_path, rng, capsys):
    truth: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for number in range(12):
        segments = np.sort(rng.uniform(0, 60, (3, 2)), axis=1)
        truth[f"v_{number}"] = {
            **{"duration_second": 60.0, "duration_frame": 1800, "rfps": 30.0, "fps": 30.0},
            "annotations": [{"segment": each, "label": "Surf"} for each in segments.tolist()],
        }
        near = np.sort(np.repeat(segments, 10, axis=0) + rng.normal(0, 2, (30, 2)), axis=1)
        results[f"{number}"] = [(*row, score) for row, score in zip(near, rng.random(30),
                                                                      strict=True)]  # fmt: skip
    (tmp_path / "anet_anno_val.json").write_text(json.dumps(truth))
    rows = {
        name: [{"score": float(s), "segment": [float(a), float(b)]} for a, b, s in each]
        for name, each in results.items()
    }
    content = {"version": "VERSION 1.3", "results": rows, "external_data": {}}
    (tmp_path / "results.json").write_text(json.dumps(content))
    (command,) = re.findall(r"`actionspan (score .*anet_anno_val.*results\.json)`",
                            DOCS.read_text())  # fmt: skip
    words = [str(tmp_path / one) if one.endswith(".json") else one for one in shlex.split(command)]
    record = score(capsys, *words[1:])
    wanted = {k[2:]: [one["segment"] for one in v["annotations"]] for k, v in truth.items()}
    recall = literal_recall(wanted, results)
    check(record, {"AUC": literal_auc(recall)})
    for number in (1, 5, 10, 100):
        check(record, {f"AR@{number}": sum(row[number - 1] for row in recall) / len(recall)})


def test_mmaction2s_split_files_are_one_data_set(tmp_path):
    entry = {"duration_second": 60.0, "duration_frame": 1800, "feature_frame": 1792, "fps": 30.0,
             "annotations": [{"segment": [1.0, 9.0], "label": "Surf"}]}  # fmt: skip
    for subset in ("train", "val"):
        (tmp_path / f"anet_anno_{subset}.json").write_text(json.dumps({f"v_{subset}": entry}))
    info = "video,numFrame,seconds,fps,rfps,subset,featureFrame\n"
    info += "v_train,1800,60,30,30,training,1792\nv_val,1800,60,30,30,validation,1792\n"
    (tmp_path / "video_info_new.csv").write_text(info)
    files = [tmp_path / f"anet_anno_{subset}.json" for subset in ("train", "val")]
    words = ["--annotations", *files, "--video-info", tmp_path / "video_info_new.csv"]
    assert main(["dataset", "index", *map(str, words), "--out", str(tmp_path)]) == 0
    rows = (tmp_path / "videos.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[-1] for row in rows] == ["training", "validation"]


def test_our_results_lose_the_v_of_their_ids_by_the_line_of_the_docs(tmp_path):
    rows = [{"segment": [1.0, 2.0], "score": 0.5, "label": "v_1"}]
    path = tmp_path / "results/proposals/mtn/proposals.json"
    path.parent.mkdir(parents=True)
    write_proposals([("v_a", rows), ("v_b", [])], path)
    (sed,) = re.findall(r"^sed 's/\^.*$", DOCS.read_text(), re.M)
    subprocess.run(["bash", "-c", sed], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "theirs.json").read_text())["results"] == {"a": rows, "b": []}


@pytest.mark.full
def test_a_real_result_file_of_activitynet_has_the_scores_of_the_public_evaluation(
    shared_data, tmp_path, capsys
):
    folder = shared_data / "activitynet"
    given = json.loads((folder / "sample_detection_prediction.json").read_text())["results"]
    annotated = read_labelled_truth(folder / "anet_anno_action.json")
    truth = {f"v_{name}": annotated.get(f"v_{name}") for name in given}
    truth = dict(sorted((name, rows) for name, rows in truth.items() if rows)[::4])
    assert len(truth) > 1000
    # scores of one value have no order there: give each its own
    results = {
        name: [
            (*row["segment"], row["score"] - place * 1e-4, row["label"])
            for row in given[name.removeprefix("v_")]
        ]
        for place, name in enumerate(truth)
    }
    database = {
        name: {
            "subset": "validation",
            "duration": 1000.0,
            "annotations": [{"segment": row[:2], "label": row[2]} for row in rows],
        }
        for name, rows in truth.items()
    }
    (tmp_path / "truth.json").write_text(json.dumps({"database": database}))
    found = {
        name: [{"segment": list(row[:2]), "score": row[2], "label": row[3]} for row in rows]
        for name, rows in results.items()
    }
    write_proposals(found.items(), tmp_path / "found.json")
    words = ["--ground-truth", tmp_path / "truth.json", "--proposals", tmp_path / "found.json"]
    check(score(capsys, "--protocol", "detection_by_class", *words), literal_map(truth, results))
