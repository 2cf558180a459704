"""The stage's commands on a toy run, and the same proposals to the bit without them."""

import json
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

from actionspan.annotations.tables import write_annotations
from actionspan.proposals import propose_video, temporal_iou
from actionspan.proposals.candidates import open_candidates
from actionspan.proposals.evaluator import load_evaluator
from actionspan.proposals.segments import read_proposals
from actionspan.storage.writing import read_tsv
from proposals.conftest import run, write_probabilities, write_toy
from worlds.scored import annotated, write_results


def candidates(folder, *more):
    files = {"probabilities": "probabilities.h5", "out": "candidates.h5"}
    return run(folder, "candidates", *more, **files)


def train(folder, *more):
    files = {"candidates": "candidates.h5", "annotations": "annotations.json", "out_log": "log.tsv"}
    return run(folder, "train", "--epochs", "5", *more, out="pem.safetensors", **files)


def generate(folder, *more):
    given = {"candidates": "candidates.h5", "evaluator": "pem.safetensors"}
    made = {"out_json": "proposals.json", "out_csv": "proposals.csv"}
    return run(folder, "generate", *more, **given, **made)


def suppress(folder, **more):
    return run(folder, "suppress", proposals="in.json", out="out.json", **more)


def chapters(folder, *more, proposals="in.json"):
    return run(folder, "chapters", *more, proposals=proposals, out_folder="chapters")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A folder with all files of the stage, and the instances of its videos."""
    folder = tmp_path_factory.mktemp("stage")
    truth = write_toy(folder)
    assert candidates(folder) == train(folder) == generate(folder) == 0
    return folder, truth


@pytest.fixture
def finished(stage, tmp_path):
    """A copy of the stage's files for a test that changes some."""
    return shutil.copytree(stage[0], tmp_path, dirs_exist_ok=True)


def test_the_truth_is_found(stage):
    finished, truth = stage
    results = read_proposals(finished / "proposals.json")
    assert list(results) == list(truth)
    found = total = 0
    for name in list(truth)[30:]:
        scores = [row["score"] for row in results[name]]
        assert scores == sorted(scores, reverse=True)
        best = [row["segment"] for row in results[name]][: len(truth[name]) + 1]
        found += (temporal_iou(truth[name], best).max(axis=1) > 0.999).sum()
        total += len(truth[name])
    assert found / total > 0.7  # by p_start · p_end alone: below a half
    table = (finished / "proposals.csv").read_text().splitlines()
    assert len(table) == 1 + sum(map(len, results.values()))


def test_the_boundaries_count_by_their_power(finished):
    keep = ("--keep", "1000", "--low-threshold", "1", "--slope", "0")  # nothing is suppressed
    table = open_candidates(finished / "candidates.h5")
    evaluator = load_evaluator(finished / "pem.safetensors")
    for power in (0, 2):
        assert generate(finished, *keep, "--boundary-power", str(power)) == 0
        results = read_proposals(finished / "proposals.json")
        for index, rows in enumerate(results.values()):
            found = table.video(index)
            product = found.scores[:, 0].astype(float) * found.scores[:, 1]
            expected = product**power * evaluator.evaluate_candidates(found)
            assert [row["score"] for row in rows] == pytest.approx(sorted(expected, reverse=True))


def test_an_evaluator_that_sees_the_boundaries_ranks_by_them(finished):
    before = (finished / "proposals.json").read_bytes()
    assert train(finished, "--boundary-scores") == 0
    assert generate(finished) == 0
    assert (finished / "proposals.json").read_bytes() != before
    assert load_evaluator(finished / "pem.safetensors").hidden.in_features == 35


def test_one_video_alone_gives_the_same_bits_on_more_threads(stage):
    finished, _ = stage
    results = read_proposals(finished / "proposals.json")
    evaluator = load_evaluator(finished / "pem.safetensors")
    torch.set_num_threads(2)
    with h5py.File(finished / "probabilities.h5") as file:
        for index, name in enumerate(file["video_id"].asstr()[:]):
            segments, scores = propose_video(
                file["probabilities"][index], float(file["duration_seconds"][index]), evaluator
            )
            assert [row["segment"] for row in results[name]] == segments.tolist()
            assert [row["score"] for row in results[name]] == scores.tolist()


def test_settings_reach_the_work(toy, tmp_path):
    assert candidates(tmp_path, "--candidates", "7") == 0
    assert np.diff(open_candidates(tmp_path / "candidates.h5").offsets).tolist() == [7] * 40
    assert train(tmp_path, "--hidden", "4", "--training-candidates", "2") == 0
    assert generate(tmp_path, "--keep", "3") == 0
    results = read_proposals(tmp_path / "proposals.json")
    assert {len(rows) for rows in results.values()} == {3}


def test_functions_on_arrays_import_no_torch():
    code = (
        "import sys\n"
        "from actionspan.proposals import soft_nms, generate_candidates, bsp_features\n"
        "from actionspan.temporal import boundary_labels\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_losses_fall_and_are_drawn(finished, capsys):
    log = read_tsv(finished / "log.tsv")
    assert float(log[-1]["validation_loss"]) < float(log[0]["validation_loss"])
    drawn = []
    for _ in range(2):
        assert run(finished, "losses", log="log.tsv", out="losses.svg") == 0
        drawn.append((finished / "losses.svg").read_text())
    assert drawn[0] == drawn[1]
    assert all(text in drawn[0] for text in ("training", "validation", "epoch"))
    assert run(finished, "losses", log="annotations.json", out="x.svg") == 2
    assert "annotations.json: " in capsys.readouterr().err


def test_the_files_have_the_same_bytes_again_and_bin_centres_in_full(finished):
    names = ["pem.safetensors", "proposals.json", "proposals.csv"]
    first = {name: (finished / name).read_bytes() for name in names}
    assert candidates(finished) == train(finished) == generate(finished) == 0
    assert {name: (finished / name).read_bytes() for name in names} == first
    table = open_candidates(finished / "candidates.h5")
    duration = table.duration_seconds[0]
    centres = (np.arange(100) + 0.5) / 100 * duration
    for row in read_proposals(finished / "proposals.json")["video 00"]:
        assert abs(centres - row["segment"][0]).min() < 1e-12 * duration
    with h5py.File(finished / "candidates.h5") as file:
        for name, width in (("segments", 2), ("scores", 2), ("features", 32)):
            assert file[name].shape == (file["offsets"][-1], width)
            assert file[name].dtype == np.float32
        assert file["offsets"].dtype == np.int64


def write_random(folder, bins, subset="training"):
    """Write the probabilities of 70 videos: more than are read at once."""
    values = np.random.default_rng(0).random((70, bins, 3), dtype=np.float32)
    names = [f"v{index}" for index in range(70)]
    path = folder / "probabilities.h5"
    write_probabilities(path, values, names, [9.0] * 70, [subset] * 70)
    return values, names


def test_more_videos_than_a_block_and_one_that_is_wrong(tmp_path, capsys):
    values, names = write_random(tmp_path, 12)
    assert candidates(tmp_path) == 0
    table = open_candidates(tmp_path / "candidates.h5")
    assert table.video_id == names
    assert (table.video(69).segments[:, 0] < table.video(69).segments[:, 1]).all()
    (tmp_path / "candidates.h5").unlink()
    with h5py.File(tmp_path / "probabilities.h5", "a") as file:
        file["probabilities"][66, 1, 1] = np.nan
    assert candidates(tmp_path) == 2
    assert "probabilities.h5: v66: probabilities are not all in 0…1" in capsys.readouterr().err
    assert not (tmp_path / "candidates.h5").exists()


def test_videos_of_one_bin_have_no_proposals(tmp_path, capsys):
    _, names = write_random(tmp_path, 1)
    (tmp_path / "annotations.json").write_text('{"database": {}}')
    assert candidates(tmp_path) == train(tmp_path) == generate(tmp_path) == 0
    assert "no candidates of training videos" in capsys.readouterr().err
    assert read_proposals(tmp_path / "proposals.json") == {name: [] for name in names}


def test_wrong_files_are_one_line(toy, tmp_path, capsys):
    assert generate(tmp_path) == 2
    assert candidates(tmp_path, "--peak-ratio", "2") == 2
    with h5py.File(tmp_path / "candidates.h5", "w"):
        pass
    assert train(tmp_path) == 2
    lines = capsys.readouterr().err.splitlines()
    wrong = ("no such file", "peak_ratio 2.0: from 0 to 1", "no candidates in it")
    assert [text in line for text, line in zip(wrong, lines, strict=True)] == [True] * 3


# ---- anybody's files ----


def test_suppress_on_anybodys_file(tmp_path, capsys):
    rows = [{"score": 0.8, "segment": [0, 8], "label": "x"}, {"score": 0.9, "segment": [0, 10]}]
    (tmp_path / "in.json").write_text(json.dumps({"results": {"a": rows, "b": []}}))
    assert suppress(tmp_path) == 0
    # The last proposal ends at 10, so that the best one is of full width: 0.8 is not above 0.9.
    assert read_proposals(tmp_path / "out.json")["a"][1] == rows[0]
    write_annotations(tmp_path / "known.json", [annotated(name, duration=100.0) for name in "ab"])
    assert suppress(tmp_path, annotations="known.json") == 0
    decayed = read_proposals(tmp_path / "out.json")["a"][1]
    assert decayed == {**rows[0], "score": pytest.approx(0.8 * np.exp(-0.64 / 0.75))}
    (tmp_path / "in.json").write_text(json.dumps({"results": {"c": rows}}))
    assert suppress(tmp_path, annotations="known.json") == 2
    assert "no video 'c'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [suppress, chapters])
def test_a_bad_row_is_named(tmp_path, capsys, command):
    """Scores are more than an order here."""
    path = write_results(tmp_path / "in.json", {"a": [(0, 8, 0.8), (1, 3, -0.5)]})
    assert command(tmp_path) == 2
    wrong = "[1, 3] with score -0.5: a score of 0 or more is needed here"
    line = f"actionspan proposals: {path}: video 'a', proposal 2: {wrong}\n"
    assert capsys.readouterr().err == line
    assert list(tmp_path.iterdir()) == [path]


def test_chapters_of_all_and_of_named_videos(finished, capsys):
    folder = finished / "chapters"
    assert chapters(finished, "--videos", "video 03", "unheard of", proposals="proposals.json") == 0
    assert sorted(path.name for path in folder.iterdir()) == ["unheard of.vtt", "video 03.vtt"]
    assert (folder / "unheard of.vtt").read_text() == "WEBVTT\n"
    assert chapters(finished, proposals="proposals.json") == 0
    assert len(list(folder.glob("video *.vtt"))) == 40
    assert (folder / "video 00.vtt").read_text().startswith("WEBVTT\n\n00:")
    write_results(finished / "in.json", {"../a": []})
    assert chapters(finished) == 2
    assert "'../a' is not a file name" in capsys.readouterr().err
