"""`actionspan propose` and `load_model` give what the workflow gives, to the bit."""

import json
import shutil
import threading
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import torch

from actionspan import Proposer, load_model
from actionspan.errors import InputError
from actionspan.proposals.bundle_files import bundle_path
from actionspan.proposals.model_bundle import load_bundle
from actionspan.propose import MotionProposer, Proposed, proposed, working
from actionspan.propose.result_folder import ResultFolder
from actionspan.propose.results import Shown
from actionspan.storage.model_files import read_model, write_model
from propose.conftest import (
    EVENTS,
    SELECTION,
    Call,
    Trained,
    in_milliseconds,
    propose,
    propose_here,
    results,
    train,
)
from worlds.command import actionspan
from worlds.tables import rows_of


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Trained:
    return train(tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="module")
def by_mtn(trained, tmp_path_factory) -> Call:
    """A call on all videos, with truth, and on two files that are no videos."""
    folder = tmp_path_factory.mktemp("mtn")
    (folder / "broken.mp4").write_bytes(b"no video at all")
    files = [folder / "broken.mp4", *trained.videos, folder / "missing.mp4"]
    words = ["--model", trained.mtn, "--annotations", trained.annotations, "--json"]
    return propose(folder / "out", *files, *words)


@pytest.fixture(scope="module")
def by_span(trained, tmp_path_factory) -> Call:
    """A call on the videos that the workflow, too, shows to a member that did not learn them."""
    out = tmp_path_factory.mktemp("span") / "out"
    with propose_here():
        return propose(out, *trained.validation(), "--model", trained.span)


model_of = cache(load_model)


@cache
def proposed_by(model: Path | str, video: Path) -> Proposed:
    """Return the proposals of a model for a video, once for all tests that read them."""
    return model_of(model).propose(video)


def test_all_videos_give_the_files_of_the_workflow(trained, by_mtn):
    expected = trained.proposals()
    assert len(expected[trained.videos[1].stem]) > 1
    assert results(by_mtn.out) == expected
    assert list(results(by_mtn.out)) == list(expected)
    table = [
        (row["video_id"], float(row["start_seconds"]), float(row["end_seconds"]))
        for row in rows_of(by_mtn.out / "proposals.csv")
    ]
    assert table == [(video, *row["segment"]) for video, rows in expected.items() for row in rows]


def test_files_that_are_no_videos_are_reported_and_the_rest_done(by_mtn):
    broken, missing = (by_mtn.out.with_name(f"{name}.mp4") for name in ("broken", "missing"))
    assert by_mtn.status == 1
    named = [line.split(": ")[0] for line in by_mtn.errors[:-1] if "still for" not in line]
    assert named == [str(missing), str(broken)]
    said = f"{by_mtn.out}: proposals of 4 videos, 2 could not be read; open {by_mtn.out}/index.html"
    assert by_mtn.errors[-1] == said
    assert not list(by_mtn.out.glob("broken*"))


def test_each_video_has_chapters_a_picture_with_truth_and_a_line_of_json(trained, by_mtn):
    for path in trained.videos:
        made = by_mtn.out / path.stem
        assert made.with_suffix(".vtt").read_text().startswith("WEBVTT\n\n00:")
        picture = made.with_suffix(".svg")
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert "<!-- truth -->" in picture.read_text()
        assert made.with_suffix(".jpg").read_bytes().startswith(b"\xff\xd8")
    printed = [json.loads(line) for line in by_mtn.said]
    assert [row["video"] for row in printed] == list(map(str, trained.videos))
    events = results(by_mtn.out, "events")
    assert [row["events"] for row in printed] == [events[path.stem] for path in trained.videos]


def test_labels_come_with_the_model_and_are_in_every_file(trained, by_mtn):
    database = json.loads(trained.annotations.read_text())["database"].values()
    training = [entry for entry in database if entry["subset"] == "training"]
    known = {each["label"] for entry in training for each in entry["annotations"]}
    rows = [row for own in results(by_mtn.out).values() for row in own]
    assert {row["label"] for row in rows} <= known
    assert all(0 < row["label_score"] <= 1 for row in rows)
    table = rows_of(by_mtn.out / "proposals.csv")
    for name in ("score", "label_score"):
        found = [float(row[name]) for row in table]
        assert found == [pytest.approx(row[name], rel=1e-5) for row in rows]
    assert [row["label"] for row in table] == [row["label"] for row in rows]
    video = trained.videos[0].stem
    best = max(results(by_mtn.out)[video], key=lambda row: row["score"])
    assert f" {best['label']} (" in (by_mtn.out / f"{video}.vtt").read_text()


def test_new_videos_give_the_bits_of_the_workflow_by_span(trained, by_span):
    assert by_span.status == 0
    for table, expected in (("proposals", "span"), ("events", "events")):
        found, made = results(by_span.out, table), trained.proposals(expected)
        assert found == {path.stem: made[path.stem] for path in trained.validation()}
        assert all("label" in row for rows in found.values() for row in rows)
    assert max(map(len, results(by_span.out).values())) == SELECTION["proposals"]
    listed = rows_of(by_span.out / "events.csv")
    events = results(by_span.out, "events")
    assert [(row["video_id"], float(row["start_seconds"])) for row in listed] == [
        (video, row["segment"][0]) for video, rows in events.items() for row in rows
    ]
    assert "<!-- truth -->" not in next(by_span.out.glob("*.svg")).read_text()
    # and in Python
    (path, *_) = trained.validation()
    proposed = proposed_by(trained.span, path)
    for table, rows in (("proposals", proposed.rows()), ("events", proposed.event_rows())):
        found = in_milliseconds({path.stem: rows})
        assert json.loads(json.dumps(found)) == {path.stem: results(by_span.out, table)[path.stem]}
    assert 1 <= len(proposed.events) == len(proposed.chances) <= EVENTS["events"]
    assert len(proposed.probabilities) != 100, "a step for each snippet"


def test_top_is_the_most_events_and_chapters_of_a_video(trained, by_span, here, tmp_path):
    shutil.copytree(by_span.out, tmp_path / "out")
    listed = [results(by_span.out, "events")]
    for top in (2, 1):
        again = here(tmp_path / "out", *trained.validation(), "--model", trained.span, "--top", top)
        assert "done before" in again.said[0]
        listed.append(results(again.out, "events"))
        for video, events in listed[-1].items():
            chapters = (again.out / f"{video}.vtt").read_text().count("-->")
            assert 1 <= chapters <= len(events), "events may overlap a little, chapters may not"
    for video, events in listed[0].items():
        assert [each[video] for each in listed[1:]] == [events[:2], events[:1]]
        scores = [row["score"] for row in events]
        assert scores == sorted(scores, reverse=True)


def test_only_span_sees_what_moves(trained):
    """A model of the papers takes videos without squares, which then cost it nothing."""
    span, mtn = load_bundle(trained.span), load_bundle(trained.mtn)
    assert list(span.transform.streams) == ["rgb", "flow", "mover"]
    assert list(mtn.transform.streams) == list(span.classified.streams) == ["rgb", "flow"]
    assert (span.frames.mover_side, span.encoders.mover) == (64, True)
    assert (mtn.frames.mover_side, mtn.encoders.mover) == (64, False)


def test_a_model_in_python_gives_what_the_command_gives(trained, by_mtn):
    path = trained.videos[1]
    model = model_of(trained.mtn)
    assert isinstance(model, Proposer)
    first, again = proposed_by(trained.mtn, path), model.propose(str(path))
    # the file holds the arrays, best first
    found = in_milliseconds({path.stem: first.rows()})
    assert json.loads(json.dumps(found)) == {path.stem: results(by_mtn.out)[path.stem]}
    assert first.segments.shape == (len(first.scores), 2)
    assert first.probabilities.shape == (100, 3)
    assert first.motion is None
    # a second call starts from nothing that the first left behind
    for name in ("segments", "scores", "probabilities"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    duration = json.loads(trained.annotations.read_text())["database"][path.stem]["duration"]
    assert first.duration_seconds == pytest.approx(duration)


def test_proposals_are_a_data_frame(trained):
    pytest.importorskip("pandas", reason="pandas is not installed")
    proposed = proposed_by(trained.mtn, trained.videos[1])
    frame = proposed.to_frame()
    assert list(frame.columns) == ["start_seconds", "end_seconds", "score", "label", "label_score"]
    assert frame[["start_seconds", "end_seconds"]].to_numpy().tolist() == proposed.segments.tolist()
    assert frame["score"].is_monotonic_decreasing
    assert list(frame["label"]) == [row["label"] for row in proposed.rows()]
    plain = proposed_by("none", trained.videos[1]).to_frame()
    assert list(plain.columns) == ["start_seconds", "end_seconds", "score"]


def test_models_and_what_they_propose_print_what_they_hold(trained):
    assert repr(Proposer("none")) == "Proposer('none'): motion, untrained"
    video = trained.videos[1]
    ours, theirs = proposed_by("none", video), MotionProposer().propose(video)
    assert ours.rows() == theirs.rows()
    head, *lines = repr(ours).splitlines()
    counts = f"{len(ours.segments)} proposals and {len(ours.events)} event"
    assert head.startswith(f"Proposed: {counts}")
    assert len(lines) == min(10, len(ours.events))
    learned = model_of(trained.span)
    assert repr(learned).startswith(f"Proposer('{trained.span}'): sees ")
    assert repr(learned).endswith(f"labels: {', '.join(learned.bundle.classifier.labels)}")
    found = proposed_by(trained.span, trained.validation()[0])
    start, end = found.event_rows()[0]["segment"]
    assert repr(found).splitlines()[1].startswith(f"{start:9.2f} {end:9.2f} s")


def test_the_card_of_a_bundle_has_its_networks_and_labels(trained):
    card = trained.span.with_name("README.md").read_text()
    labels = load_bundle(trained.span).classifier.labels
    assert card.startswith('---\nlicense: "mit"\n')
    assert "\n# span\n" in card  # the folder
    assert f"| labels | {', '.join(labels)} |\n" in card
    assert "| sees | rgb (efficientnet_lite0, " in card
    assert "## Data\n\nNot stated.\n" in card


@pytest.mark.parametrize("model", ["none", "demo"])
def test_a_video_that_is_opened_is_not_opened_again(trained, tmp_path, model):
    path = Path(shutil.copy(trained.videos[1], tmp_path))
    opened = proposed.open_video(path)
    path.unlink()
    found, expected = model_of(model).propose(opened), proposed_by(model, trained.videos[1])
    assert found.duration_seconds == expected.duration_seconds
    np.testing.assert_array_equal(found.segments, expected.segments)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_the_first_video_is_opened_while_the_model_is_loaded(films, tmp_path, monkeypatch):
    opened = threading.Event()
    open_video = proposed.open_video

    def told(video):
        found = open_video(video)
        opened.set()
        return found

    def loaded(*_):
        assert opened.wait(60)
        return MotionProposer()

    monkeypatch.setattr(proposed, "open_video", told)
    monkeypatch.setattr(working, "load_proposer", loaded)
    folder = ResultFolder(tmp_path, "a model")
    worker = working._Worker(folder, Shown(), working.Loading())
    worker.load()
    worker.work(working._Propose(films[0]))
    assert folder.finished(films[0])


def test_a_missing_video_is_an_input_error_in_python(trained, tmp_path):
    with pytest.raises(InputError, match=r"none\.mp4"):
        model_of(trained.mtn).propose(tmp_path / "none.mp4")


def test_without_a_model_it_is_the_one_that_comes_with_the_package(
    trained, here, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()  # of videos, maybe
    path = trained.videos[1]
    first = here(tmp_path / "out", path)
    note = "without --model: the one that comes with actionspan, which has seen"
    assert first.errors[0].startswith(note)
    (rows,) = results(first.out).values()
    assert rows
    assert all(row.keys() == {"score", "segment"} for row in rows), "classes of rendered videos"
    assert "model demo · actionspan" in (first.out / "index.html").read_text()
    # named, it is the same model: the video is done
    Path("demo").rmdir()
    again = here(tmp_path / "out", path, "--model", "demo")
    assert again.errors == []
    assert "1 done before" in again.said[0]
    in_python = proposed_by("demo", path)
    assert [row["segment"] for row in rows] == np.round(in_python.segments, 3).tolist()


def test_the_model_of_the_package_is_small_and_a_folder_of_its_name_is_that_folder(
    trained, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert bundle_path(Path("demo")).stat().st_size < 5_000_000
    shutil.copytree(trained.mtn, "demo")
    assert bundle_path(Path("demo")) == Path("demo/model.safetensors")


def test_what_is_no_model_or_cannot_run_is_one_line(trained, here, films, tmp_path):
    (tmp_path / "empty").mkdir()
    for model, message in (
        (tmp_path / "empty", "no model.safetensors in this folder"),
        (tmp_path / "missing", "no such file"),
        (trained.folder / "pem.safetensors", "not a complete model"),
    ):
        call = here(tmp_path / "out", films[0], "--model", model)
        (line,) = call.errors
        assert call.status == 2
        assert line.startswith(f"actionspan propose: {model}: ")
        assert message in line
        assert "delete" not in line
        assert "make demo" not in line
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    call = here(tmp_path / "out", films[0], "--model", trained.mtn, "--device", "cuda")
    assert (call.status, len(call.errors)) == (2, 1)
    assert "no CUDA device is visible" in call.errors[0]


def test_a_model_of_external_features_is_no_bundle(trained, tmp_path, capsys):
    """Its features come from files: a video alone gives none."""
    features, out = tmp_path / "features.h5", tmp_path / "model.safetensors"
    shutil.copy(trained.folder / "features.h5", features)
    with h5py.File(features, "a") as file:
        del file.attrs["settings"]  # as features have that no encoder of ours made
    networks = ("--temporal", trained.folder / "temporal/model.safetensors")
    networks += ("--evaluator", trained.folder / "pem.safetensors")
    assert actionspan("proposals", "bundle", "--features", features, *networks, "--out", out) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "features.h5: no settings of encoders" in line
    assert not out.exists()


def changed(trained: Trained, path: Path, change) -> Path:
    """Write a model whose content and settings were changed."""
    content = read_model(trained.mtn / "model.safetensors").value
    settings = json.loads(content["settings"])
    change(content, settings)
    write_model(path, content | {"settings": json.dumps(settings)})
    return path


def test_a_model_of_before_has_no_ranking_and_no_classifier_and_labels_nothing(
    trained, here, tmp_path
):
    old = changed(trained, tmp_path / "old.pt", lambda content, _: content.pop("classifier"))
    path = trained.videos[1]
    assert here(tmp_path / "out", path, "--model", old).status == 0
    rows = trained.proposals()[path.stem]
    expected = [{"score": row["score"], "segment": row["segment"]} for row in rows]
    assert results(tmp_path / "out") == {path.stem: expected}
    assert "label" not in (tmp_path / "out/proposals.csv").read_text()
    old = changed(trained, tmp_path / "older.pt", lambda _, settings: settings.pop("ranking"))
    assert load_bundle(old).ranking.boundary_power == 1.0


def test_a_model_of_before_clips_loads_and_has_no_such_stream(trained, by_mtn, tmp_path):
    def older(_, settings):
        settings["encoders"]["window"] = 16  # a setting that is gone
        for section in ("frames", "encoders"):
            later = [key for key in settings[section] if key.startswith(("clip", "mover"))]
            assert later
            for key in later:
                del settings[section][key]

    model = load_model(changed(trained, tmp_path / "old.pt", older))
    assert not model.bundle.frames.clips
    assert model.bundle.encoders.clip_encoder == "none"
    assert (model.bundle.frames.mover_side, model.bundle.encoders.mover) == (0, False)
    path = trained.videos[1]
    found = in_milliseconds({path.stem: model.propose(path).rows()})
    assert found[path.stem] == results(by_mtn.out)[path.stem]


def test_a_model_trained_with_openvino_proposes_without_it(trained, tmp_path, monkeypatch):
    def by_openvino(_, settings):
        settings["encoders"]["runtime"] = "openvino"

    made = changed(trained, tmp_path / "model.safetensors", by_openvino)
    video = trained.videos[1]
    expected = proposed_by(trained.mtn, video)
    monkeypatch.setattr("actionspan.networks.runtime.find_openvino", lambda: None)
    found = load_model(made).propose(video)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, rtol=0, atol=1e-4)
