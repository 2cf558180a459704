"""What a model proposes, as predictions of Label Studio's tasks."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats import label_studio
from actionspan.annotations.formats.records import RawInstance, Record
from actionspan.annotations.formats.registry import FORMATS, read_annotation_file
from worlds.command import actionspan

JUMP = {"score": 0.75, "segment": [1.0, 2.5], "label": "jump", "label_score": 0.9}
SIT = {"score": 0.5, "segment": [0.5, 4.0], "label": "sit", "rank": 2}
RESULTS = {"v_yard": [JUMP, {"score": 0.25, "segment": [6.0, 7.0]}], "gate": [SIT], "still": []}
EVENTS = {"version": "actionspan 1", "results": RESULTS}
MINE = "video,start,end,label,fps\nyard,1,2,jump,10\nhall,0,1,sit,10\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "span").mkdir()
    (tmp_path / "span" / "events.json").write_text(json.dumps(EVENTS))
    (tmp_path / "mine.csv").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tasks(source, *words):
    words = (source, "tasks.json", "--to=label_studio", *words)
    assert actionspan("dataset", "convert", *words) == 0
    made = json.loads(Path("tasks.json").read_text())
    assert [task["id"] for task in made] == list(range(1, len(made) + 1))
    return {task["data"]["video"].rpartition("=")[2].removesuffix(".mp4"): task for task in made}


def parsed(path):
    return {each.video_id: each.parsed() for each in read_annotation_file(Path(path)).records}


def proposed(start=0.5, end=1.5, score=0.5, **known):
    raw = RawInstance(start=start, end=end, label="run", score=score)
    return Record(video_id="a", file="span/events.json", instances=[raw], **known)


@given(
    st.lists(st.tuples(st.floats(0, 1000), st.floats(1, 500), st.floats(0, 1)), min_size=1),
    st.just(0.0) | st.floats(1, 240),
)
def test_predictions_are_frames_as_a_reader_of_annotations_counts_them(rows, fps):
    instances = [
        RawInstance(start=start, end=start + length, label="run", score=score)
        for start, length, score in rows
    ]
    record = Record(video_id="a", file="span/events.json", fps=fps, instances=instances)
    (task,) = json.loads(label_studio.write([], [record]))
    (prediction,) = task.pop("predictions")
    scores = [region["score"] for region in prediction["result"]]
    assert scores == [score for *_, score in rows]
    assert prediction["score"] == pytest.approx(sum(scores) / len(scores))
    # what somebody accepts unchanged
    task["annotations"] = [{"id": 1, "result": prediction["result"]}]
    (found,) = label_studio.read("tasks.json", json.dumps([task])).records
    times = [(start, end) for start, end, label in found.parsed() if label == "run"]
    wanted = [(start, start + length) for start, length, _ in rows]
    frame = 1 / (fps or label_studio.USUAL_RATE)
    np.testing.assert_allclose(times, wanted, rtol=0, atol=frame)


def test_a_task_with_predictions_alone_is_annotated_by_nobody():
    record = proposed(fps=10)
    assert label_studio.read("a", label_studio.write([], [record])).records == []
    other = replace(record, instances=[replace(record.instances[0], label="sit", score=None)])
    (found,) = label_studio.read("a", label_studio.write([other], [record])).records
    assert found.parsed() == [(0.5, 1.5, "sit")]


def test_events_become_predictions_beside_annotations(folder, capsys):
    made = tasks("mine.csv", "--predictions", "span/events.json")
    assert capsys.readouterr().out == "tasks.json: 3 videos, label_studio\n"
    parts = {name: ("annotations" in task, "predictions" in task) for name, task in made.items()}
    assert parts == {"yard": (True, True), "gate": (False, True), "hall": (True, False)}
    (prediction,) = made["yard"]["predictions"]
    assert prediction["model_version"] == "actionspan span/events"
    assert prediction["score"] == 0.5
    assert [
        (each["value"]["timelinelabels"], each["value"]["ranges"], each["score"])
        for each in prediction["result"]
    ] == [
        (["jump"], [{"start": 11, "end": 25}], 0.75),  # at the rate of the annotations
        (["action"], [{"start": 61, "end": 70}], 0.25),
    ]
    (annotation,) = made["yard"]["annotations"]
    ids = [each["id"] for part in (prediction, annotation) for each in part["result"]]
    assert len(set(ids)) == len(ids) == 3
    kinds = {(each["origin"], each["type"]) for each in prediction["result"]}
    assert kinds == {("prediction", "timelinelabels")}
    assert parsed("tasks.json") == {"yard": [(1, 2, "jump")], "hall": [(0, 1, "sit")]}


def test_an_annotation_that_says_that_nothing_happens_stays_one(folder):
    Path("mine.csv").write_text("video,start,end,label\nyard,,,\n")
    task = tasks("mine.csv", "--predictions", "span/events.json")["yard"]
    assert [each["result"] for each in task["annotations"]] == [[]]
    assert len(task["predictions"][0]["result"]) == 2


@pytest.mark.parametrize("name", ["span/events.json", "events.csv"])
def test_our_own_lists_become_predictions_alone(folder, name):
    Path("events.csv").write_text(
        "video_id,rank,start_seconds,end_seconds,score,label,label_score\n"
        "v_yard,1,1.0,2.5,0.75,jump,0.9\nv_yard,2,6.0,7.0,0.25,,\ngate,2,0.5,4.0,0.5,sit,\n"
    )
    made = tasks(name)
    assert set(made) == {"v_yard", "gate"}
    assert not any("annotations" in task for task in made.values())
    scores = [each["score"] for each in made["v_yard"]["predictions"][0]["result"]]
    assert scores == [0.75, 0.25]


def test_an_event_whose_chance_the_table_does_not_know_has_no_score(folder):
    header = "video_id,rank,start_seconds,end_seconds,score\n"
    Path("events.csv").write_text(f"{header}gate,1,0.5,4.0,\n")
    (prediction,) = tasks("events.csv")["gate"]["predictions"]
    assert "score" not in prediction
    assert "score" not in prediction["result"][0]


def test_annotations_have_no_scores():
    (task,) = json.loads(label_studio.write([proposed()]))
    assert "score" not in json.dumps(task)


def test_predictions_are_for_label_studio_and_beside_annotations(folder, capsys):
    for source, *more in (("mine.csv",), ("span/events.json", "--to=label_studio")):
        words = (source, "out.json", *more, "--predictions", "span/events.json")
        assert actionspan("dataset", "convert", *words) == 2
        line = "--predictions span/events.json: predictions are written with annotations"
        assert line in capsys.readouterr().err
        assert not Path("out.json").exists()


def test_results_of_a_wrong_id_are_one_line():
    text = json.dumps({"results": {"a/b": [{"score": 1, "segment": [0, 1]}] * 3}})
    reading = FORMATS["proposals"].read("p.json", text)
    assert [bad.line() for bad in reading.rejections] == [
        "p.json: results.a/b[0]: video id 'a/b' cannot be a file's stem; ids hold no '/'"
    ]


def test_two_names_of_a_video_are_no_two_predictions(folder, capsys):
    events = {"results": {"v_yard": [SIT], "yard": [SIT]}}
    (folder / "span" / "events.json").write_text(json.dumps(events))
    words = ("mine.csv", "tasks.json", "--to=label_studio", "--predictions", "span/events.json")
    assert actionspan("dataset", "convert", *words) == 2
    said = capsys.readouterr().err
    assert "span/events.json: 'v_yard' and 'yard' are both 'yard'; leave one out" in said
    assert not (folder / "tasks.json").exists()


def test_frames_are_counted_at_the_rate_that_is_known():
    for mine, theirs in ((0.0, 50.0), (50.0, 0.0)):
        records = [[proposed(1.0, 2.0, fps=fps)] for fps in (mine, theirs)]
        (task,) = json.loads(label_studio.write(*records))
        assert task["data"]["fps"] == 50.0
        (region,) = task["predictions"][0]["result"]
        assert region["value"]["ranges"] == [{"start": 51, "end": 100}]
