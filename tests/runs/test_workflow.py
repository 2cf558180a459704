"""Whole runs: every file is made, and only what changed is made again."""

import csv
import importlib
import json
import re
import shlex
import shutil
import sys

import h5py
import numpy as np
import pytest

from runs.conftest import EXTERNAL, ROOT, copy_program, write_external, write_features

pytestmark = pytest.mark.workflow


def test_a_run_gives_features_proposals_and_a_table(project):
    with h5py.File(project.folder / "results/features/features.h5") as file:
        assert file["features"].shape == (6, 100, 16)
        assert np.isfinite(file["features"][:]).all()
    annotations = json.loads(project.text("results/dataset/annotations.json"))["database"]
    validation = {video for video, entry in annotations.items() if entry["subset"] == "validation"}
    summary = json.loads(project.text("results/evaluation/summary.json"))
    assert set(summary) == {"origin", "span", "mtn", "random", "sliding", "difference", "tag"}
    for scores in summary.values():
        assert 0 <= scores["AR@1"] <= scores["AR@10"] <= scores["AR@100"] <= 1
        assert 0 <= scores["AUC"] <= 100
    for method in summary:
        record = json.loads(project.text(f"results/evaluation/{method}.json"))
        videos = read_table(project.text(f"results/evaluation/videos/{method}.tsv"))
        assert len(videos) == record["videos"]
        assert 0 <= record["detection"]["average_mAP"] <= 1
    # lists of 100 proposals, and frame rates from videos.tsv
    random = json.loads(project.text("results/evaluation/random.json"))
    assert 0 <= random["thumos14"]["AR@50"] <= random["thumos14"]["AR@100"] <= 1
    assert random["thumos14"]["AR@200"] is None
    for model in ("origin", "span", "mtn"):
        proposals = json.loads(project.text(f"results/proposals/{model}/proposals.json"))["results"]
        assert validation <= set(proposals)
        for video, rows in proposals.items():
            assert all(
                0 <= row["segment"][0] < row["segment"][1] <= annotations[video]["duration"] + 1e-6
                for row in rows
            )
            scores = [row["score"] for row in rows]
            assert scores == sorted(scores, reverse=True)
        known = {
            each["label"]
            for entry in annotations.values()
            if entry["subset"] == "training"
            for each in entry["annotations"]
        }
        assert {row["label"] for rows in proposals.values() for row in rows} <= known
        reader = json.loads(project.text(f"results/evaluation/reader/{model}.json"))["lists"]
        events = ["events"] if model == "span" else []
        assert list(reader) == [*events, "chapters", "proposals"]
        assert reader["chapters"]["per_video"] <= 10 < reader["proposals"]["per_video"]
    assert project.text("results/proposals/mtn/chapters/demo_000.vtt").startswith("WEBVTT")


def test_span_gives_sequences_and_a_list_for_a_reader(project):
    with h5py.File(project.folder / "results/features/sequences.h5") as file:
        assert file["features"].shape == (6, 512, 1 + 3 * 128 + 3 * 4 + 2)
        np.testing.assert_array_equal(file["features"][..., 0].sum(axis=1), file["length"][:])
    with h5py.File(project.folder / "results/features/features.h5") as file:
        assert file["features"].shape == (6, 100, 2 * 8)  # what the papers' models see
    assert (project.folder / "results/proposals/span/density.safetensors").is_file()
    proposals, events = (
        json.loads(project.text(f"results/proposals/span/{name}.json"))["results"]
        for name in ("proposals", "events")
    )
    assert set(proposals) == set(events)
    for video, rows in events.items():
        assert len(rows) <= 10
        assert all(0 <= row["score"] <= 1 for row in rows)
        chapters = project.text(f"results/proposals/span/chapters/{video}.vtt")
        assert chapters.count("-->") <= len(rows)
    table = read_table(project.text("results/proposals/span/events.csv"))
    assert len(table) == sum(map(len, events.values()))


def test_temporary_files_are_gone_and_each_job_has_a_log(project):
    results = project.folder / "results"
    assert not list(results.glob("video/**/*.h5"))
    assert len(list(results.glob("logs/video_frames/new/*.log"))) == 2
    with (results / "benchmarks/temporal_train/mtn/none-1.tsv").open() as file:
        assert float(next(csv.DictReader(file, delimiter="\t"))["s"]) > 0


@pytest.mark.full
def test_the_rule_of_cuts_is_scored_as_the_others(project):
    wanted, named = "results/evaluation/cuts.json", {"evaluation": {"baselines": ["cuts"]}}
    project.make(wanted, config=named)
    record = json.loads(project.text(wanted))
    assert record["method"] == "cuts"
    assert project.planned(wanted, config=named) == {}


@pytest.fixture
def benchmark(project, monkeypatch):
    """The script that trains models outside of the workflow, and the run's configuration."""
    # last, so that no test package is hidden by a script of the same name
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    accuracy = importlib.import_module("accuracy")
    return accuracy, accuracy.changed_config([project.folder / "tiny.yaml"], [])


@pytest.mark.full
@pytest.mark.parametrize("model", ["span", "origin"])
def test_the_first_seed_of_a_benchmark_is_the_model_of_the_run(project, benchmark, model, tmp_path):
    accuracy, config = benchmark
    accuracy.run_model(project.folder / "results", config, model, 1, tmp_path)
    for name in ["proposals.json", *["events.json"] * (model == "span")]:
        lists = [
            {
                video: [(row["segment"], row["score"]) for row in rows]
                for video, rows in json.loads((folder / name).read_text())["results"].items()
            }
            for folder in (project.folder / f"results/proposals/{model}", tmp_path)
        ]
        assert any(lists[0].values())
        assert lists[0] == lists[1]


@pytest.mark.full
@pytest.mark.parametrize("model", ["span", "origin"])
def test_seed_3_of_a_benchmark_is_that_of_the_run(project, benchmark, model, monkeypatch, tmp_path):
    accuracy, config = benchmark
    called = []
    monkeypatch.setattr(accuracy, "call", lambda *words: called.append(list(map(str, words))))
    monkeypatch.setattr(accuracy, "score", lambda *_: {})
    monkeypatch.setattr(accuracy, "read", lambda *_: {})
    accuracy.run_model(project.folder / "results", config, model, 3, tmp_path)
    learned = "density" if model == "span" else "pem"
    wanted = f"results/proposals/{model}-seed3/{learned}.safetensors"
    _, text = project.dry_run("--printshellcmds", wanted)
    commands = r"((?:temporal|proposals) (?:train|density) .*?)(?= --then|$)"
    run = re.findall(commands, text, re.MULTILINE)
    ours = [words for words in called if words[1] in ("train", "density")]
    assert len(run) == len(ours) == 2
    paths = ("--out", "--features", "--probabilities", "--annotations", "--candidates", "--code")
    for line, words in zip(run, ours, strict=True):
        both = [[w for w in each if re.match("--.*=", w)] for each in (shlex.split(line), words)]
        settings = [{w for w in each if not w.startswith(paths)} for each in both]
        assert settings[0] - settings[1] == set()


def losses(text: str) -> np.ndarray:
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return np.array([[float(row["training_loss"]), float(row["validation_loss"])] for row in rows])


@pytest.mark.full
def test_ranks_that_are_named_train_the_same_network(project):
    project.make(
        "results/temporal/mtn/ring-2/probabilities.h5",
        "results/temporal/mtn/ps-2/model.safetensors",
        "results/temporal/mtn-seed5/none-1/model.safetensors",
    )
    alone = losses(project.text("results/temporal/mtn/none-1/log.tsv"))
    assert (alone != losses(project.text("results/temporal/mtn-seed5/none-1/log.tsv"))).any()
    for run, roles in (("ring-2", ["worker"] * 2), ("ps-2", ["server", "worker", "worker"])):
        together = losses(project.text(f"results/temporal/mtn/{run}/log.tsv"))
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-4)
        timing = json.loads(project.text(f"results/temporal/mtn/{run}/timing.json"))
        assert [rank["role"] for rank in timing["per_rank"]] == roles
        assert all(rank["t2"] > 0 for rank in timing["per_rank"])
    assert project.planned() == {}


@pytest.mark.full
def test_training_times_are_measured_fitted_and_drawn(project):
    config = {"scaling": {"exchanges": ["ring"], "ranks": [2], "repeats": 2, "epochs": 1}}
    wanted = ("results/scaling/speedup.svg", "results/scaling/fit.svg")
    project.make(*wanted, config=config)
    rows = [line.split("\t") for line in project.text("results/scaling/times.tsv").splitlines()]
    assert [row[:3] for row in rows[1:]] == [
        ["none", "1", "1"],
        ["none", "1", "2"],
        ["ring", "2", "1"],
        ["ring", "2", "2"],
    ]
    for row in rows[1:]:
        seconds, *parts = (float(cell) for cell in row[3:])
        assert seconds == pytest.approx(sum(parts), rel=1e-6)
    model = json.loads(project.text("results/scaling/timing_model.json"))
    assert set(model) == {"ring"}
    assert model["ring"]["paper_fit"]["rank"] < 3
    assert all(project.text(name).startswith("<?xml") for name in wanted)
    assert project.planned(*wanted, config=config) == {}


METHODS = ("origin", "se", "dense", "mtn", "random", "tag")
TABLE_RULES = ("papers_mtn_table", "papers_mtn_claims", "papers_mtn_loss_curves")
TABLES = [f"results/papers/mtn/{name}" for name in ("table3.md", "claims.md", "loss_curves.md")]


@pytest.mark.full
def test_the_tables_of_the_paper_plan_several_seeds(project):
    planned = project.planned(*TABLES, config={"evaluation": {"seeds": 2}})
    # of origin and mtn the first seed is there; 2 + 2 of cnn2 and cnn4 are trained only
    assert planned["temporal_train"] == 2 + 4 + 4
    assert planned["proposals_generate"] == 2 + 4
    assert {rule: planned[rule] for rule in TABLE_RULES} == dict.fromkeys(TABLE_RULES, 1)


@pytest.mark.full
def test_the_tables_of_the_paper_are_made_of_several_seeds(project, tmp_path):
    own = copy_program(tmp_path)
    copies = {"features/features.h5": "features/features.h5"}
    # scores and losses of a run that has two models stand for each method and seed
    for name in (*METHODS, *(f"{name}-seed2" for name in METHODS), "sliding", "difference"):
        file = f"evaluation/videos/{name}.tsv"
        known = (project.folder / "results" / file).exists()
        copies[file] = file if known else "evaluation/videos/origin.tsv"
    for model in ("origin", "cnn2", "cnn4", "mtn"):
        for name, source in ((model, "origin"), (f"{model}-seed2", "mtn")):
            copies[f"temporal/{name}/none-1/log.tsv"] = f"temporal/{source}/none-1/log.tsv"
    for name, source in copies.items():
        (tmp_path / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project.folder / "results" / source, tmp_path / "results" / name)
    config = {"evaluation": {"seeds": 2}}
    own.make(*TABLES, "--allowed-rules", *TABLE_RULES, config=config)
    table = read_table(own.text("results/papers/mtn/table3.tsv"))
    baselines = ["random", "sliding", "difference", "tag"]
    assert [row["method"] for row in table] == ["origin", "se", "dense", "mtn", *baselines]
    assert [row["seeds"] for row in table] == ["2"] * 5 + ["1", "1", "2"]
    caption = own.text("results/papers/mtn/table3.md").split("|")[0]
    assert "efficientnet_lite0 on RGB, efficientnet_lite0 on dis flow" in caption
    assert "the rendered demo set, subset validation (2 videos" in caption
    losses_read = own.text("results/papers/mtn/loss_curves.md")
    assert "the rendered demo set" in losses_read
    assert all(f"| {model} | 2 |" in losses_read for model in ("origin", "cnn2", "cnn4", "mtn"))
    claims = read_table(own.text("results/papers/mtn/claims.tsv"))
    assert all(row["difference"] for row in claims if row["source"] == "001, figure 10")


def read_table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


@pytest.mark.full
def test_features_from_elsewhere_need_no_video_and_a_changed_file_re_runs(tmp_path):
    own = copy_program(tmp_path)
    subsets = ["training"] * 4 + ["validation"] * 2
    write_external(tmp_path, {f"v{number}": subset for number, subset in enumerate(subsets)})
    own.make(config=EXTERNAL)
    # origin, which tag groups, is trained beside mtn
    methods = json.loads(own.text("results/evaluation/summary.json"))
    assert set(methods) == {"mtn", "random", "sliding", "tag"}
    record = json.loads(own.text("results/evaluation/mtn.json"))
    assert set(record["thumos14"].values()) == {None}, "no frame rates"
    assert record["detection"]["average_mAP"] >= 0
    assert own.planned(config=EXTERNAL) == {}
    # the page of worst videos names a timeline of each, whose ids are those of the annotations
    names = ("videos/mtn.md", "timelines/mtn/v5.svg")
    page, timeline = (f"results/evaluation/{name}" for name in names)
    own.make(page, timeline, config=EXTERNAL)
    assert "results/evaluation/timelines/mtn/" in own.text(page)
    assert own.text(timeline).startswith("<?xml")
    write_features(tmp_path, "v0")
    planned = own.planned(config=EXTERNAL)
    assert {"features_external", "features_rescale", "temporal_train"} <= set(planned)
    assert "dataset_index" not in planned
