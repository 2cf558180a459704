"""What the page of a data set is given: gathered from the files of a run, whatever is missing."""

import json
import os
import shutil
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from actionspan.annotations.tables import (
    VIDEO_COLUMNS,
    Instance,
    write_annotations,
    write_videos,
)
from actionspan.cli import main
from actionspan.dataset.video_facts import probe_video
from actionspan.evaluation.misses import TABLE_COLUMNS, break_down, instance_outcomes, table_row
from actionspan.report import index as index_module
from actionspan.report.content import choose_videos, details_of
from actionspan.report.index import curves
from actionspan.storage.writing import write_json, write_tsv
from actionspan.temporal.probabilities import Prediction, write_probabilities
from video.numbered import encode
from video.test_decode import H265
from worlds.scored import annotated

WAVE = Instance(start=0.5, end=1.0, label="wave")


@pytest.fixture
def pages(monkeypatch):
    """The pages that were written, in place of the writer."""
    written = []
    module = ModuleType("actionspan.report.page")
    vars(module)["write_page"] = lambda path, page: written.append((path, page))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return written


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Three videos: one plays, one is H.265, one will be gone."""
    folder = tmp_path_factory.mktemp("films")
    encode(folder / "plain.mp4", 50)
    encode(folder / "it's new.mp4", 50, **H265)
    shutil.copy(folder / "plain.mp4", folder / "gone.mp4")
    return folder


@pytest.fixture
def run_files(films, tmp_path, monkeypatch):
    """A run of these videos, of one of which the file is gone."""
    monkeypatch.chdir(tmp_path)
    names = ("plain", "it's new", "gone")
    shutil.copytree(films, tmp_path, dirs_exist_ok=True)
    rows = [replace(probe_video(tmp_path / f"{name}.mp4"), subset="validation") for name in names]
    write_videos(tmp_path / "videos.tsv", rows, VIDEO_COLUMNS)
    (tmp_path / "gone.mp4").unlink()
    subsets = ("validation", "training", "testing")
    annotations = [
        annotated(name, *spans, subset=subset, duration=2.0)
        for name, subset, spans in zip(names, subsets, ([(0.5, 1.0)], (), ()), strict=True)
    ]
    write_annotations(tmp_path / "annotations.json", annotations, "three videos")
    plain = [
        {"segment": [0.1, 0.2], "score": 0.25, "label": "sit"},
        {"segment": [0.50004, 1.0], "score": 0.876543},
    ]
    write_json(tmp_path / "proposals.json", {"results": {"plain": plain, "unknown": plain}})
    values = np.linspace(0, 1, 3 * 4 * 3, dtype=np.float32).reshape(3, 4, 3)
    predictions = [Prediction(each) for each in values]
    out = tmp_path / "probabilities.h5"
    write_probabilities(out, "", names, [2.0] * 3, subsets, [4] * 3, predictions)
    return tmp_path


def index(*more):
    files = ("--annotations=annotations.json", "--proposals=proposals.json")
    return main(
        ["report", "index", "--model=span", *files, "--out=results/report/index.html", *more]
    )


def test_each_video_has_its_truth_proposals_curves_and_pictures(run_files, pages):
    more = ["--videos=videos.tsv", "--probabilities=probabilities.h5", "--thumbnails=4"]
    assert index(*more, "--events", "proposals.json") == 0
    ((path, page),) = pages
    assert str(path) == "results/report/index.html"
    assert page.title == "three videos"
    assert page.subtitle.startswith("span, actionspan ")
    gone, new, plain = page.videos
    assert [each.video_id for each in page.videos] == ["gone", "it's new", "plain"]
    assert plain.file == "../../plain.mp4"
    assert (plain.duration_seconds, plain.frames_per_second, plain.subset) == (2, 25, "validation")
    assert (plain.note, plain.recall) == ("", None)
    assert plain.truth == (WAVE,)
    details = details_of(plain)
    assert details["truth"] == [[0.5, 1, "wave", None]]
    assert details["proposals"] == [[0.5, 1, "", 0.8765], [0.1, 0.2, "sit", 0.25]]  # best first
    assert details["events"] == details["proposals"]
    assert plain.curves["start"] == [0.0, 0.086, 0.171, 0.257]
    assert [
        0.5 * place <= seconds < 0.5 * (place + 1)
        for place, (seconds, _) in enumerate(plain.thumbnails)
    ] == [True] * 4
    assert all(jpeg.startswith(b"\xff\xd8") for _, jpeg in plain.thumbnails)
    # not every browser plays it: the note says what makes a copy that it does
    assert new.file == "../../it's new.mp4"
    assert "(H.265 in MP4)" in new.note
    assert new.note.endswith("snakemake --cores 1 'results/report/videos/it'\"'\"'s new.mp4'")
    assert len(new.thumbnails) == 4
    assert new.proposals == ()
    assert (gone.file, gone.thumbnails, gone.duration_seconds) == ("", (), 2.0)
    assert gone.note == f"The video file was not found: {run_files / 'gone.mp4'}"
    assert len(gone.curves["end"]) == 4


def test_thresholds_are_counted_on_videos_that_nothing_learned(run_files, pages):
    """The density and the classifier have learned every training video."""
    events = [{"segment": [0.5, 1.0], "score": 0.4, "label": "wave"}]
    write_json(run_files / "events.json", {"results": {"plain": events}})
    content = json.loads((run_files / "annotations.json").read_text())
    for subset, points in (
        ("validation", {"": [(0.4, 1.0, 1.0)]}),
        ("training", {}),
        ("testing", {"": [(0.4, 1.0, 1.0)]}),
    ):
        content["database"]["plain"]["subset"] = subset
        (run_files / "annotations.json").write_text(json.dumps(content))
        assert index("--events", "events.json") == 0
        assert pages[-1][1].thresholds == points


def test_a_copy_that_is_there_is_what_the_page_plays(run_files, pages):
    out = "results/report/videos/it's new.mp4"
    assert main(["report", "video", "--video=it's new.mp4", f"--out={out}"]) == 0
    assert index("--videos=videos.tsv") == 0
    new = pages[0][1].videos[1]
    assert (new.file, new.note) == ("videos/it's new.mp4", "")


def test_without_video_files_there_is_still_a_page(run_files, pages):
    assert index("--subsets", "training", "validation") == 0
    new, plain = pages[0][1].videos
    assert [(each.file, each.note, each.thumbnails, each.curves) for each in (new, plain)] == [
        ("", "", (), {})
    ] * 2
    assert plain.frames_per_second is None
    assert (pages[0][1].charts, pages[0][1].tables) == ([], [])


def test_a_video_that_crashes_its_decoder_is_shown_without_pictures(run_files, pages, monkeypatch):
    monkeypatch.setattr(index_module, "_look", crash_at_the_plain_one)
    assert index("--videos=videos.tsv") == 0
    _, new, plain = pages[0][1].videos
    assert len(new.thumbnails) == 16
    assert plain.thumbnails == ()
    assert "plain.mp4: the work on it crashed: ended with status 9" in plain.note


LOOK = index_module._look


def crash_at_the_plain_one(item):
    if item[0] == "plain":
        os._exit(9)
    return LOOK(item)


def test_a_damaged_copy_says_where_it_ends(tmp_path, capsys):
    path = encode(tmp_path / "v.mp4", 100, container_options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    out = tmp_path / "copy.mp4"
    assert main(["report", "video", f"--video={path}", f"--out={out}"]) == 0
    assert "the copy ends there" in capsys.readouterr().err


def test_the_summary_has_curves_misses_losses_and_seconds(run_files, pages):
    rows = [{"segment": [0.5, 1.0], "score": 0.9}]
    write_json(run_files / "other.json", {"results": {"plain": rows}})
    scored = "--annotations=annotations.json", "--subset=validation"
    for name in ("proposals", "other"):
        files = [f"--proposals={name}.json", f"--out={name}.record.json"]
        assert main(["evaluation", "evaluate", *scored, *files, f"--out-videos={name}.tsv"]) == 0
    annotation = annotated("v", (0.5, 1.0), (1, 6, ""), duration=9)
    outcomes = instance_outcomes([annotation], {"v": [(0.5, 1.0, 1.0)]})
    write_tsv(run_files / "misses.tsv", TABLE_COLUMNS, map(table_row, break_down(outcomes)))
    log = run_files / "mtn/none-1/log.tsv"
    write_tsv(log, ["epoch", "training_loss", "validation_loss"], [[1, 2.5, ""], [2, 1.5, ""]])
    texts = {"video_flow/cut.tsv": "s\th", "odd_thing.tsv": "nothing here"}
    times = {"dataset_demo": 1.5, "temporal_train/a/b": 10, "temporal_train/c": 20.25}
    texts |= {f"{name}.tsv": f"s\th:m:s\n{seconds}\t0\n" for name, seconds in times.items()}
    for name, text in texts.items():
        path = run_files / "benchmarks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    first = {"precision": 0.25, "recall": 0.75, "most": 1.0}
    found = {"per_video": 2.0, "precision": 0.5, "recall": 1.0, "repeats": None, "as_many": 0.5}
    found |= {"end_errors": {"start": 0.25, "end": None}, "first": {"1": first, "5": first}}
    write_json(run_files / "reader.json", {"method": "mtn", "lists": {"events": found}})
    done = index(
        *("--evaluations", "proposals.record.json", "other.record.json"),
        *("--scores=proposals.tsv", "--misses=misses.tsv", "--readers", "reader.json"),
        *("--logs", "mtn/none-1/log.tsv", "--benchmarks=benchmarks"),
    )
    assert done == 0
    page = pages[0][1]
    record = json.loads((run_files / "proposals.record.json").read_text())
    charts = {chart.title: chart for chart in page.charts}
    average = charts["Average recall"]
    assert [each.name for each in average.series] == ["proposals.record", "other.record"]
    assert average.series[0].values == record["AR"]
    assert (average.series[0].low, average.series[0].high) == ((), ()), "of one video"
    by_tiou = charts["Recall at AN = 100"]
    assert by_tiou.x == [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    assert "validation, videos: 1, instances: 1" in average.note
    misses = charts["What span misses, by length"]
    assert (misses.kind, misses.x) == ("bars", ["≤ 3", "3–6"])
    assert [(each.name, each.values) for each in misses.series][0] == ("tIoU 0.5", [0.0, 1.0])
    losses = charts["Loss of mtn"]
    assert [(each.name, each.values) for each in losses.series] == [("training", [2.5, 1.5])]
    seconds = charts["Seconds by stage"]
    assert (seconds.x, seconds.series[0].values) == (["dataset", "temporal"], [1.5, 30.2])
    methods, reader = page.tables
    assert methods.rows[0][0] == "proposals.record"
    assert reader.rows == [
        "mtn events 2.0 50.0 100.0 25.0 75.0 25.0 75.0 50.0 –".split() + ["0.25 / –"]
    ]
    (recall,) = [each.recall for each in page.videos if each.video_id == "plain"]
    assert recall == pytest.approx(record["AR@100"])


def test_a_wrong_file_is_one_line(run_files, pages, capsys):
    for flag, message in (
        ("--misses=videos.tsv", "videos.tsv: not a table of misses"),
        ("--logs=videos.tsv", "videos.tsv: not a log of a training"),
        ("--readers=proposals.json", "proposals.json: not a record of a reader's lists"),
    ):
        assert index(flag) == 2
        assert message in capsys.readouterr().err
    assert not pages


def test_of_many_videos_the_worst_the_best_and_some_by_chance_are_shown():
    videos = [f"v{number:03d}" for number in range(300)]
    recalls = {video: (37 * place % 100) / 100 for place, video in enumerate(videos[:100])}
    chosen, said = choose_videos(videos, recalls, 30)
    ranked = sorted(recalls, key=recalls.__getitem__)
    assert len(chosen) == 30
    assert chosen == sorted(chosen)
    assert {*ranked[:10], *ranked[-10:]} <= set(chosen)
    assert said == (
        "30 of 300 videos: 10 chosen at random, the 10 with the lowest and the 10 with the highest "
        "recall"
    )
    more, _ = choose_videos([*videos, "another"], recalls, 30)
    assert len(set(more) ^ set(chosen)) <= 2
    assert choose_videos(videos, recalls, 300) == (videos, "")
    assert choose_videos(videos, {}, 7)[1] == "7 of 300 videos: 7 chosen at random"
    few, _ = choose_videos(videos[:5], {"v000": 0.5}, 4)
    assert len(few) == 4


def test_a_long_curve_keeps_its_peaks():
    values = np.zeros((9001, 3), np.float32)
    values[4321, 1] = 0.75
    made = curves(values)
    assert [len(points) for points in made.values()] == [500] * 3
    assert max(made["actionness"]) == 0.75
    assert made["actionness"].index(0.75) == pytest.approx(500 * 4321 / 9001, abs=1)
